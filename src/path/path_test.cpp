// Runs the Path kit on every path and decorator, and on paths that break the contract, which the kit must notice.
#include <gtest/gtest.h>

#include "conformance/path_suite.hpp"
#include "path/file_rig.hpp"
#include "support/decorators/count.hpp"
#include "support/decorators/fault.hpp"
#include "support/decorators/throttle.hpp"
#include "support/decorators/trace.hpp"

namespace penstock::conformance {
namespace {

// If this machine or build lacks the path, the test is skipped and prints the path's own reason.
PathCase on_files(const std::string& name, PathKind kind, const std::string& folder) {
    return {name, [=](std::string& why) -> std::unique_ptr<Rig> {
                try {
                    auto rig = std::make_unique<FileRig>(kind, folder);
                    rig->path(1);
                    return rig;
                } catch (const std::exception& error) {
                    why = error.what();
                    return nullptr;
                }
            }};
}

PathCase wrapped(const std::string& name, const WrappedRig::Wrap& wrap) {
    return {name, [=](std::string&) { return std::make_unique<WrappedRig>(std::make_unique<StoreRig>(), wrap); }};
}

std::vector<PathCase> file_cases() {
    std::vector<PathCase> cases;
    const std::vector<std::pair<std::string, std::string>> folders{{"disk", test_folder()}, {"shm", "/dev/shm"}};
    for (const auto& [place, folder] : folders) {
        cases.push_back(on_files("buffered_" + place, PathKind::buffered, folder));
        cases.push_back(on_files("direct_" + place, PathKind::direct, folder));
        cases.push_back(on_files("aio_" + place, PathKind::aio, folder));
        cases.push_back(on_files("uring_" + place, PathKind::uring, folder));
        cases.push_back(on_files("uring_buffered_" + place, PathKind::uring_buffered, folder));
        cases.push_back(on_files("mmap_" + place, PathKind::mmap, folder));
    }
    return cases;
}

const WrappedRig::Wrap kTraced = [](auto inner) {
    return path::traced(std::move(inner), std::make_shared<path::TraceLog>());
};
const WrappedRig::Wrap kCounted = [](auto inner) {
    return path::counted(std::move(inner), std::make_shared<path::PathCounters>());
};
WrappedRig::Wrap with_faults(const path::FaultOptions& options) {
    return [=](auto inner) { return path::faulty(std::move(inner), options); };
}
WrappedRig::Wrap with_throttle(const path::ThrottleOptions& options) {
    return [=](auto inner) { return path::throttled(std::move(inner), options); };
}

INSTANTIATE_TEST_SUITE_P(Files, PathSuite, path_values(file_cases()), path_test_name);

INSTANTIATE_TEST_SUITE_P(
    Memory, PathSuite,
    path_values({{"memory", [](std::string&) { return std::make_unique<StoreRig>(); }},
                 wrapped("traced", kTraced),
                 wrapped("counted", kCounted),
                 wrapped("throttle_idle", with_throttle({})),
                 wrapped("throttled", with_throttle({.bandwidth_bytes_per_s = 1e9, .latency_ns = 20'000})),
                 wrapped("fault_idle", with_faults({})),
                 wrapped("faults_within_the_contract", with_faults({.seed = 11,
                                                                    .short_count = 0.2,
                                                                    .interrupted = 0.1,
                                                                    .again = 0.1,
                                                                    .delayed = 0.1,
                                                                    .delay = std::chrono::microseconds(300)}))}),
    path_test_name);

// Returns the name of the first check of the kit that fails for a memory path with these faults, or nothing.
std::string verdict(const path::FaultOptions& faults) {
    WrappedRig rig(std::make_unique<StoreRig>(), with_faults(faults));
    rig.traits.patience = std::chrono::milliseconds(50);
    for (const PathCheck& check : kPathChecks) {
        if (const std::string why = check.holds(rig); !why.empty()) return check.name + (": " + why);
    }
    return {};
}

TEST(PathKit, notices_one_wrong_byte) {
    EXPECT_EQ(verdict({}), "");
    EXPECT_NE(verdict({.script = {{3, path::FaultKind::corrupt}}}).find("first wrong byte"), std::string::npos);
}

TEST(PathKit, notices_a_lost_completion) {
    EXPECT_NE(verdict({.seed = 5, .lose = 0.3}).find("never came"), std::string::npos);
}

TEST(PathKit, notices_an_error_that_should_not_be) {
    EXPECT_NE(verdict({.bad_from = 4096}).find("errno 5"), std::string::npos);
    EXPECT_NE(verdict({.full_from = 4096}).find("errno 28"), std::string::npos);
}

// Breaks the contract in ways that the fault decorator cannot.
class Sloppy final : public Path {
  public:
    enum class Habit { takes_too_many, writes_past_the_range, throws_tags_away };
    Sloppy(std::unique_ptr<Path> inner, Habit habit) : inner_(std::move(inner)), habit_(habit) {
        capabilities_ = inner_->capabilities();
        if (habit_ == Habit::takes_too_many) capabilities_.max_in_flight = 1;
    }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t submit(std::span<const Operation> operations) override {
        for (const Operation& operation : operations) {
            Operation longer = operation;
            if (habit_ == Habit::writes_past_the_range && operation.direction == Direction::write)
                --longer.offset_bytes;
            if (habit_ == Habit::throws_tags_away) longer.tag = 0;
            inner_->submit({&longer, 1});
        }
        return operations.size();
    }
    std::size_t reap(std::span<Completion> completions, Deadline deadline) override {
        return inner_->reap(completions, deadline);
    }

  private:
    std::unique_ptr<Path> inner_;
    Habit habit_;
    Capabilities capabilities_;
};

TEST(PathKit, notices_sloppy_paths) {
    for (const auto habit :
         {Sloppy::Habit::takes_too_many, Sloppy::Habit::writes_past_the_range, Sloppy::Habit::throws_tags_away}) {
        WrappedRig rig(std::make_unique<StoreRig>(),
                       [=](auto inner) { return std::make_unique<Sloppy>(std::move(inner), habit); });
        rig.traits.patience = std::chrono::milliseconds(50);
        const auto breaks = [&rig](const PathCheck& check) { return !check.holds(rig).empty(); };
        EXPECT_TRUE(std::any_of(std::begin(kPathChecks), std::end(kPathChecks), breaks)) << static_cast<int>(habit);
    }
}

}  // namespace
}  // namespace penstock::conformance
