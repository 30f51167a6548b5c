// cuFile in a context, over the stand-in library: no byte moves natively under the name gds-compat, and "auto" chooses
// only among what the one driver of the process serves.
#include "context/cufile_slot.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "context/state.hpp"
#include "context/test_files.hpp"
#include "context/transfer/launch.hpp"
#include "penstock/device.hpp"
#include "penstock/profile.hpp"

namespace penstock {
namespace {

using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr std::uint64_t kSlotBytes = 8 * kMiB;

path::CuFileOptions stand_in() {
    path::CuFileOptions options;
    options.libraries.library = FAKE_CUFILE;
    options.libraries.cuda_library = FAKE_LIBCUDA;
    options.probe_program = CUFILE_PROBE;
    return options;
}

// A context's state with device memory to read into.
struct State : context::ContextState {
    explicit State(const ContextOptions& given)
        : ContextState(given), memory(static_cast<unsigned char*>(device->allocate(MemoryKind::device, kSlotBytes))) {
        cufile = std::make_shared<context::CuFileSlot>(stand_in());
    }
    ~State() { device->release(MemoryKind::device, memory); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    std::vector<unsigned char> moved() const { return {memory, memory + kSlotBytes}; }

    unsigned char* const memory;
};

class CuFileInContext : public testing::Test {
  protected:
    CuFileInContext() {
        ::setenv("FAKE_CUFILE_BEHAVIOUR", "native", 1);
        write_file(file_, stamped(kSlotBytes));
    }
    ~CuFileInContext() override { ::unsetenv("FAKE_CUFILE_BEHAVIOUR"); }

    static std::unique_ptr<State> make_state(std::vector<std::string> profiles = {}) {
        return std::make_unique<State>(options(std::move(profiles)));
    }
    static ContextOptions options(std::vector<std::string> profiles) {
        ContextOptions options;
        options.device = "host";
        options.profiles = std::move(profiles);
        return options;
    }
    // Reads of device memory, by each path in the time given.
    std::string profile(const std::vector<std::pair<PathKind, double>>& seconds) const {
        Profile profile = Context(options({})).identity(directory_.path());
        for (const auto& [path, each] : seconds) {
            for (const bool cached : {true, false}) {
                ProfileRow row;
                row.cached = cached;
                row.path = path;
                row.bytes = kSlotBytes;
                row.seconds = each;
                row.samples = 3;
                profile.rows.push_back(row);
            }
        }
        std::ofstream(directory_.file("both.csv")) << profile_text(profile);
        return directory_.file("both.csv");
    }
    context::Extent whole(State& state) const { return {state.open(file_, {}), 0, state.memory, kSlotBytes}; }
    PathKind chosen(State& state) const {
        return context::preview({.context = state, .options = {}}, {whole(state)}).plan.steps.front().shape.path;
    }
    std::string refusal(State& state, PathKind path) const {
        const Explanation explanation = context::explain({.context = state, .options = {}}, {whole(state)});
        for (const Explanation::Option& option : explanation.parts.front().options) {
            if (option.path == path) return option.refusal;
        }
        return "not listed";
    }
    // What a transfer by this path is refused for; empty when it is accepted.
    std::string asked_for(State& state, PathKind path) const {
        TransferOptions asked;
        asked.path = path;
        try {
            const auto transfer = context::prepare({.context = state, .options = asked}, {whole(state)});
            state.engine.start(transfer);
            transfer->wait(Deadline::after(std::chrono::seconds(10)));
            return transfer->result().error.cause;
        } catch (const Error& error) {
            EXPECT_EQ(error.info().code, ErrorCode::unsupported);
            EXPECT_FALSE(error.info().advice.empty());
            return error.info().cause;
        }
    }

    TempDirectory directory_;
    const std::string file_ = directory_.file("data.bin");
};

TEST_F(CuFileInContext, the_emulated_device_has_none_on_any_machine) {
    const auto state = make_state();
    state->cufile = std::make_shared<context::CuFileSlot>(state->device->info());
    for (const PathKind path : {PathKind::gds, PathKind::gds_compat, PathKind::gds_batch, PathKind::gds_stream}) {
        EXPECT_NE(asked_for(*state, path).find("the device is emulated"), std::string::npos) << to_string(path);
    }
    state->cufile = std::make_shared<context::CuFileSlot>(stand_in());  // control: the stand-in is not asked who it is
    EXPECT_EQ(asked_for(*state, PathKind::gds), "");
}

TEST_F(CuFileInContext, gds_compat_after_gds_is_refused_and_not_misnamed) {
    const auto state = make_state();
    EXPECT_EQ(asked_for(*state, PathKind::gds), "");
    EXPECT_EQ(state->moved(), stamped(kSlotBytes));
    const std::uint64_t native_reads = state->cufile->counters()->nvfs_reads;
    EXPECT_GT(native_reads, 0U);
    EXPECT_NE(asked_for(*state, PathKind::gds_compat).find("open in native mode in this process"), std::string::npos);
    EXPECT_EQ(state->cufile->counters()->nvfs_reads, native_reads) << "bytes moved natively as gds-compat";
    EXPECT_EQ(asked_for(*state, PathKind::gds), "") << "the refusal leaves the driver as it was";
}

TEST_F(CuFileInContext, gds_compat_alone_moves_no_byte_natively) {
    const auto state = make_state();
    EXPECT_EQ(asked_for(*state, PathKind::gds_compat), "");
    EXPECT_EQ(state->moved(), stamped(kSlotBytes));
    EXPECT_EQ(state->cufile->counters()->nvfs_reads, 0U);
    EXPECT_GT(state->cufile->counters()->posix_reads, 0U);
}

TEST_F(CuFileInContext, where_nothing_is_native_gds_compat_follows_a_refused_gds) {
    ::setenv("FAKE_CUFILE_BEHAVIOUR", "", 1);
    const auto state = make_state();
    EXPECT_NE(asked_for(*state, PathKind::gds), "");
    EXPECT_EQ(asked_for(*state, PathKind::gds_compat), "");
}

TEST_F(CuFileInContext, explain_refuses_a_named_path_as_a_transfer_does) {
    ::setenv("FAKE_CUFILE_BEHAVIOUR", "", 1);
    const auto state = make_state();
    const auto explained = [&](PathKind path) -> std::string {
        TransferOptions asked;
        asked.path = path;
        try {
            const Explanation found = context::explain({.context = *state, .options = asked}, {whole(*state)});
            for (const Explanation::Option& option : found.parts.front().options) {
                if (option.path == path) return option.refusal;
            }
        } catch (const Error& error) {
            return error.info().cause;
        }
        return "not listed";
    };
    EXPECT_EQ(explained(PathKind::gds), asked_for(*state, PathKind::gds));
    EXPECT_NE(explained(PathKind::gds), "");
    EXPECT_EQ(explained(PathKind::gds_compat), "") << "what can be taken is no refused candidate";
    EXPECT_EQ(asked_for(*state, PathKind::gds_compat), "");
    EXPECT_EQ(explained(PathKind::gds_stream), asked_for(*state, PathKind::gds_stream));
    EXPECT_EQ(explained(PathKind::gds_batch), asked_for(*state, PathKind::gds_batch));
    state->cufile = std::make_shared<context::CuFileSlot>(state->device->info());
    EXPECT_NE(explained(PathKind::gds_stream).find("the device is emulated"), std::string::npos);
    EXPECT_NE(refusal(*state, PathKind::gds).find("the device is emulated"), std::string::npos);
    EXPECT_NE(refusal(*state, PathKind::gds_compat).find("the device is emulated"), std::string::npos);
}

TEST_F(CuFileInContext, auto_with_rows_of_both_takes_what_the_driver_serves) {
    const std::string both =
        profile({{PathKind::gds_compat, 1e-4}, {PathKind::gds, 1e-3}, {PathKind::buffered, 1e-1}});
    {
        const auto state = make_state({both});
        EXPECT_EQ(chosen(*state), PathKind::gds);
        EXPECT_NE(refusal(*state, PathKind::gds_compat).find("native mode"), std::string::npos);
        EXPECT_EQ(refusal(*state, PathKind::gds), "");
        EXPECT_EQ(asked_for(*state, PathKind::automatic), "");
    }
    const auto state = make_state({both});
    EXPECT_EQ(asked_for(*state, PathKind::gds_compat), "");
    EXPECT_EQ(chosen(*state), PathKind::gds_compat);
    EXPECT_NE(refusal(*state, PathKind::gds).find("not native"), std::string::npos);
    EXPECT_EQ(asked_for(*state, PathKind::automatic), "");
}

TEST_F(CuFileInContext, auto_with_rows_of_the_other_alone_leaves_cufile_out) {
    const auto compat = make_state({profile({{PathKind::gds_compat, 1e-4}, {PathKind::buffered, 1e-1}})});
    EXPECT_EQ(asked_for(*compat, PathKind::gds), "");
    EXPECT_NE(chosen(*compat), PathKind::gds_compat);
    EXPECT_NE(refusal(*compat, PathKind::gds_compat).find("native mode"), std::string::npos);
}

TEST_F(CuFileInContext, auto_does_not_take_gds_of_a_driver_that_was_forced) {
    const auto state = make_state({profile({{PathKind::gds, 1e-4}, {PathKind::buffered, 1e-1}})});
    EXPECT_EQ(asked_for(*state, PathKind::gds_compat), "");
    EXPECT_NE(chosen(*state), PathKind::gds);
    EXPECT_NE(refusal(*state, PathKind::gds).find("not native"), std::string::npos);
    EXPECT_EQ(asked_for(*state, PathKind::automatic), "");
}

}  // namespace
}  // namespace penstock
