// Machine profiles in a context: whose they are decides whether they answer, they turn choices, what they predict is in
// the evidence, and what is learnt stays within bounds and within one file system.
#include "context/profiles.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "context/test_files.hpp"
#include "context/transfer/request_costs.hpp"
#include "penstock/profile.hpp"

namespace penstock {
namespace {

using context::Corrections;
using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr std::uint64_t kBytes = 8 * kMiB;

class Profiles : public testing::Test {
  protected:
    Profiles() { write_file(file_, stamped(kBytes)); }

    static ContextOptions options(std::vector<std::string> profiles = {}) {
        ContextOptions options;
        options.device = "host";
        options.profiles = std::move(profiles);
        return options;
    }
    static ProfileRow row(bool cached, PathKind path, double seconds, Direction direction = Direction::read) {
        ProfileRow row;
        row.direction = direction;
        row.cached = cached;
        row.path = path;
        row.bytes = kBytes;
        row.seconds = seconds;
        row.samples = 3;
        return row;
    }
    Profile here() const { return Context(options()).identity(directory_.path()); }
    std::string write(const std::string& name, const Profile& profile) const {
        std::ofstream(directory_.file(name)) << profile_text(profile);
        return directory_.file(name);
    }
    // Hot reads by `fast`, whatever is true of this machine.
    std::string favouring(PathKind fast, PathKind slow) const {
        Profile profile = here();
        for (bool cached : {true, false}) {
            profile.rows.push_back(row(cached, fast, 1e-3));
            profile.rows.push_back(row(cached, slow, 4e-3));
        }
        return write("favouring.csv", profile);
    }
    Outcome read(const Context& context) const {
        const File file = context.open(file_);
        const Buffer buffer = context.allocate(kBytes);
        const Outcome outcome = file.read(buffer.view());
        EXPECT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_EQ(test::fetch(context, buffer.data(), kBytes), stamped(kBytes));
        return outcome;
    }
    std::string refused(const std::vector<std::string>& profiles, ErrorCode code) const {
        try {
            const Context context(options(profiles));
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), code) << error.what();
            EXPECT_FALSE(error.info().advice.empty());
            return error.what();
        }
        return "accepted";
    }

    TempDirectory directory_;
    const std::string file_ = directory_.file("data.bin");
};

TEST_F(Profiles, turn_the_choice_and_the_evidence_says_so) {
    EXPECT_EQ(read(Context(options())).evidence.path_name(), "buffered");
    const Outcome outcome = read(Context(options({favouring(PathKind::mmap, PathKind::buffered)})));
    EXPECT_EQ(outcome.evidence.path_name(), "mmap");
    EXPECT_DOUBLE_EQ(outcome.evidence.predicted_seconds, 1e-3);
    const std::string reason = outcome.evidence.reason();
    EXPECT_NE(reason.find("mmap, in the page cache: the fastest measured here for this read; predicted 8.39 GB/s, "
                          "measured "),
              std::string::npos)
        << reason;
    EXPECT_NE(outcome.evidence.plan.find("next best buffered 2.1 GB/s"), std::string::npos) << outcome.evidence.plan;
}

TEST_F(Profiles, of_near_equal_paths_the_rule_is_kept) {
    Profile profile = here();
    profile.rows = {row(true, PathKind::mmap, 1e-3), row(true, PathKind::buffered, 1.02e-3)};
    EXPECT_EQ(read(Context(options({write("near.csv", profile)}))).evidence.path_name(), "buffered");
}

TEST_F(Profiles, without_one_the_reason_says_that_nothing_was_predicted) {
    const Outcome outcome = read(Context(options()));
    EXPECT_EQ(outcome.evidence.predicted_seconds, 0);
    EXPECT_NE(outcome.evidence.reason().find("no machine profile"), std::string::npos) << outcome.evidence.reason();
}

TEST_F(Profiles, of_another_machine_or_broken_are_refused_by_name) {
    Profile other = here();
    other.rows.push_back(row(true, PathKind::mmap, 1e-3));
    other.machine.kernel = "2.6.32";
    const std::string name = write("other.csv", other);
    EXPECT_NE(refused({name}, ErrorCode::unsupported).find("kernel 2.6.32 there"), std::string::npos);
    std::ofstream(directory_.file("garbage.csv")) << "\x7f" << "ELF";
    EXPECT_NE(refused({directory_.file("garbage.csv")}, ErrorCode::invalid_argument).find("line 1"), std::string::npos);
    EXPECT_NE(refused({directory_.file("none.csv")}, ErrorCode::not_found).find("none.csv"), std::string::npos);
}

TEST_F(Profiles, without_a_name_are_refused_with_the_argument) {
    EXPECT_NE(refused({""}, ErrorCode::invalid_argument).find("profile: the name is empty"), std::string::npos);
    const std::string cut = directory_.path() + std::string("\0.csv", 5);  // the system would see the directory
    EXPECT_NE(refused({cut}, ErrorCode::invalid_argument).find("profile: the name holds a NUL byte"),
              std::string::npos);
}

TEST_F(Profiles, of_directories_what_does_not_fit_is_passed_over_with_a_note) {
    Profile other = here();
    other.rows.push_back(row(true, PathKind::mmap, 1e-3));
    other.machine.cpu = "another";
    const std::string name = write("other.csv", other);
    const Outcome outcome = read(Context(options({directory_.path()})));
    EXPECT_EQ(outcome.evidence.path_name(), "buffered");
    ASSERT_EQ(outcome.evidence.notes.size(), 1u);
    EXPECT_NE(outcome.evidence.notes[0].find(name + " is of another machine: cpu another there"), std::string::npos)
        << outcome.evidence.notes[0];
    std::filesystem::remove(name);
    favouring(PathKind::mmap, PathKind::buffered);
    EXPECT_EQ(read(Context(options({directory_.path()}))).evidence.path_name(), "mmap");
}

TEST_F(Profiles, of_another_file_system_do_not_answer) {
    Profile elsewhere = here();
    elsewhere.place.disk = "nvme7n1";
    elsewhere.rows.push_back(row(true, PathKind::mmap, 1e-3));
    const Context context(options({write("elsewhere.csv", elsewhere)}));
    const Outcome outcome = read(context);
    EXPECT_EQ(outcome.evidence.path_name(), "buffered");
    ASSERT_FALSE(outcome.evidence.notes.empty());
    EXPECT_NE(outcome.evidence.notes[0].find("of another file system: disk nvme7n1 there"), std::string::npos);
    const File file = context.open(file_);
    const Buffer buffer = context.allocate(kBytes);
    const Range range{&file, 0, buffer.data(), kBytes};
    const Explanation explanation = context.explain(Direction::read, {&range, 1});
    EXPECT_EQ(explanation.profile, "");
    EXPECT_NE(explanation.refusal.find("nvme7n1"), std::string::npos);
}

TEST_F(Profiles, explain_lists_what_was_chosen_among_and_why_not) {
    const Context context(options({favouring(PathKind::mmap, PathKind::buffered)}));
    const File file = context.open(file_);
    const Buffer buffer = context.allocate(kBytes);
    const Range range{&file, 0, buffer.data(), kBytes};
    const Explanation explanation = context.explain(Direction::read, {&range, 1});
    EXPECT_EQ(explanation.profile, directory_.file("favouring.csv"));
    ASSERT_EQ(explanation.parts.size(), 1u);
    const auto& part = explanation.parts[0];
    EXPECT_TRUE(part.in_page_cache);
    EXPECT_EQ(part.bytes, kBytes);
    ASSERT_GE(part.options.size(), 10u);
    EXPECT_EQ(part.options[0].path, PathKind::mmap);
    EXPECT_DOUBLE_EQ(part.options[0].seconds, 1e-3);
    EXPECT_EQ(part.options[1].path, PathKind::buffered);
    EXPECT_EQ(part.options[2].seconds, 0);
    EXPECT_FALSE(part.options.back().refusal.empty()) << "cuFile is not asked without measurements";
    EXPECT_EQ(context.plan(Direction::read, {&range, 1}), explanation.plan);
}

TEST_F(Profiles, writes_ask_for_residency_and_go_as_measured) {
    Profile profile = here();
    profile.rows = {row(true, PathKind::buffered, 1e-3, Direction::write),
                    row(true, PathKind::direct, 3e-3, Direction::write),
                    row(false, PathKind::buffered, 3e-3, Direction::write),
                    row(false, PathKind::direct, 1e-3, Direction::write)};
    const Context context(options({write("writes.csv", profile)}));
    const File file = context.open(file_, {.mode = OpenMode::read_write});
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    const Buffer buffer = context.allocate(kBytes, MemoryKind::device, FirstTouch::gpu);
    ASSERT_TRUE(file.read(buffer.view(), 0, {.path = PathKind::buffered}).ok());
    EXPECT_EQ(file.write(buffer.view()).evidence.path_name(), "buffered");
    file.drop_cache();
    EXPECT_EQ(file.write(buffer.view()).evidence.path_name(), "direct");
    EXPECT_EQ(test::read_file(file_), stamped(kBytes));
}

TEST_F(Profiles, an_adaptive_context_learns_and_another_does_not) {
    ContextOptions learning = options({favouring(PathKind::mmap, PathKind::buffered)});
    learning.adaptive = true;
    const auto predicted = [&](const Context& context) { return read(context).evidence.predicted_seconds; };
    const Context still(options(learning.profiles));
    const Context adaptive(learning);
    EXPECT_DOUBLE_EQ(predicted(still), 1e-3);
    EXPECT_DOUBLE_EQ(predicted(still), 1e-3);
    EXPECT_DOUBLE_EQ(predicted(adaptive), 1e-3);
    const double corrected = predicted(adaptive);
    EXPECT_NE(corrected, 1e-3);
    EXPECT_GE(corrected, 1e-3 / Corrections::kBound);
    EXPECT_LE(corrected, 1e-3 * Corrections::kBound);
}

TEST_F(Profiles, a_transfer_over_several_file_systems_goes_by_rule_and_says_so) {
    const TempDirectory elsewhere("/dev/shm");
    write_file(elsewhere.file("data.bin"), stamped(kMiB));
    const Context context(options({favouring(PathKind::mmap, PathKind::buffered)}));
    if (context.identity(elsewhere.path()).place == context.identity(directory_.path()).place) {
        GTEST_SKIP() << "one file system";
    }
    const File near = context.open(file_);
    const File far = context.open(elsewhere.file("data.bin"));
    const Buffer buffer = context.allocate(2 * kMiB);
    const Range ranges[] = {{&near, 0, buffer.data(), kMiB},
                            {&far, 0, static_cast<std::byte*>(buffer.data()) + kMiB, kMiB}};
    const Outcome outcome = context.start(Direction::read, ranges).result();
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.evidence.predicted_seconds, 0);
    ASSERT_FALSE(outcome.evidence.notes.empty());
    EXPECT_NE(outcome.evidence.notes[0].find("several file systems"), std::string::npos);
}

TEST(ProfileCorrections, approach_what_is_observed_and_stay_within_bounds) {
    Corrections corrections(2);
    for (int i = 0; i < 50; ++i) corrections.learn(1, corrections.factors()[0] * 1.0, 1.5);
    EXPECT_NEAR(corrections.factors()[0], 1.5, 0.01);
    EXPECT_DOUBLE_EQ(corrections.factors()[1], 1.0);
    for (int i = 0; i < 50; ++i) corrections.learn(1, corrections.factors()[0], 1000.0);
    EXPECT_DOUBLE_EQ(corrections.factors()[0], Corrections::kBound);
    for (int i = 0; i < 50; ++i) corrections.learn(1, corrections.factors()[0], 1e-9);
    EXPECT_DOUBLE_EQ(corrections.factors()[0], 1 / Corrections::kBound);
    corrections.learn(3, 1, 1);  // no such curve
    corrections.learn(0, 1, 1);
    EXPECT_EQ(corrections.factors().size(), 2u);
}

TEST_F(Profiles, lessons_do_not_cross_file_systems) {
    if (std::filesystem::space("/dev/shm").available < 64 * kMiB) GTEST_SKIP() << "no room in /dev/shm";
    const TempDirectory elsewhere("/dev/shm");
    write_file(elsewhere.file("data.bin"), stamped(kBytes));
    Profile ours = here();
    Profile theirs = Context(options()).identity(elsewhere.path());
    if (ours.place == theirs.place) GTEST_SKIP() << "one file system";
    for (Profile* profile : {&ours, &theirs}) {
        profile->rows = {row(true, PathKind::buffered, 1e-3), row(false, PathKind::buffered, 1e-3)};
    }
    ContextOptions learning = options({write("ours.csv", ours), write("theirs.csv", theirs)});
    learning.adaptive = true;
    const Context context(learning);
    for (int i = 0; i < 3; ++i) read(context);
    EXPECT_NE(read(context).evidence.predicted_seconds, 1e-3);
    const File file = context.open(elsewhere.file("data.bin"));
    const Buffer buffer = context.allocate(kBytes);
    EXPECT_DOUBLE_EQ(file.read(buffer.view()).evidence.predicted_seconds, 1e-3);
}

}  // namespace
}  // namespace penstock
