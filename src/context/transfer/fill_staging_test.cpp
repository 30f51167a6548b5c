// Staging memory filled on purpose: a read that claims success and brings nothing then brings the filling, on whatever
// thread and by whatever path it is made, and not what an earlier read left there.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <vector>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

using test::fetch;
using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr int kFilling = 0xEE;
constexpr std::uint64_t kFilledBytes = 8 * kMiB;

// From `lies` on, reads say that all was read and write nothing. While `held` is there, they wait for it.
class Liar : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        arrived = true;
        arrived.notify_all();
        if (std::latch* wait = held.load()) wait->wait();
        if (!lies) return System::pread(fd, memory, bytes, offset);
        return static_cast<ssize_t>(bytes);
    }
    std::atomic<bool> lies{false};
    std::atomic<std::latch*> held{nullptr};
    std::atomic<bool> arrived{false};
};

struct Way {
    PathKind path;
    std::uint64_t bytes;
    bool waits;
};

class FillStaging : public testing::Test {
  protected:
    FillStaging() { write_file(directory_.file("data"), stamped(kFilledBytes)); }
    std::vector<unsigned char> read(const Way& way) {
        TransferOptions options;
        options.path = way.path;
        options.caller_waits = way.waits;
        const Buffer buffer = context_.allocate(way.bytes);
        const File file = context_.open(directory_.file("data"));
        const Outcome outcome = file.start_read(buffer.view(), 0, options).result();
        EXPECT_EQ(outcome.bytes, way.bytes);
        return fetch(context_, buffer.data(), way.bytes);
    }
    bool fill(Deadline deadline = Deadline::never()) { return context_.fill_staging(kFilling, deadline); }

    Liar system_;
    TempDirectory directory_;
    Context context_ = context::make_context({.device = "host"}, {.system = &system_});
};

TEST_F(FillStaging, a_read_that_brings_nothing_brings_the_filling) {
    const std::vector<Way> ways = {{PathKind::buffered, 16 * kKiB, true},
                                   {PathKind::buffered, kFilledBytes, false},
                                   {PathKind::direct, 16 * kKiB, true},
                                   {PathKind::direct, kFilledBytes, false}};
    for (const Way& way : ways) {
        system_.lies = false;
        ASSERT_EQ(read(way), stamped(way.bytes));
        ASSERT_TRUE(fill());
        system_.lies = true;
        EXPECT_EQ(read(way), std::vector<unsigned char>(way.bytes, kFilling))
            << to_string(way.path) << " of " << way.bytes;
    }
}

TEST_F(FillStaging, waits_for_what_is_under_way) {
    ASSERT_EQ(read({PathKind::buffered, kFilledBytes, false}), stamped(kFilledBytes));
    std::latch held(1);
    system_.held = &held;
    system_.arrived = false;
    const Buffer buffer = context_.allocate(kFilledBytes);
    const File file = context_.open(directory_.file("data"));
    const Transfer transfer = file.start_read(buffer.view());
    system_.arrived.wait(false);
    EXPECT_FALSE(fill(Deadline::after(std::chrono::milliseconds(1))));
    held.count_down();
    EXPECT_TRUE(fill());
    EXPECT_TRUE(transfer.result().ok());
    EXPECT_EQ(fetch(context_, buffer.data(), kFilledBytes), stamped(kFilledBytes));
}

}  // namespace
}  // namespace penstock
