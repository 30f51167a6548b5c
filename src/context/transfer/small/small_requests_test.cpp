// What a small request is spared: the question for the file's size, and the way through a worker.
#include <gtest/gtest.h>

#include "context/test_files.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

using test::stamped;
using test::TempDirectory;
using test::write_file;

ContextOptions on_host() {
    ContextOptions options;
    options.device = "host";
    return options;
}

// They are not asked for the size of the file first.
TEST(SmallRequests, of_reads_meet_the_end_of_the_file_by_themselves) {
    const TempDirectory directory;
    write_file(directory.file("data"), stamped(5000));
    const Context context{on_host()};
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(8192);
    const Outcome crossing = file.read(buffer.view(), 4096);
    EXPECT_TRUE(crossing.ok());
    EXPECT_EQ(crossing.bytes, 904u);
    EXPECT_TRUE(crossing.reached_end);
    const Outcome at_the_end = file.read(buffer.view(), 5000);
    EXPECT_TRUE(at_the_end.ok());
    EXPECT_EQ(at_the_end.bytes, 0u);
    EXPECT_TRUE(at_the_end.reached_end);
    for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{0}}) {
        try {
            static_cast<void>(file.read(buffer.view().slice(0, bytes), 5001));
            ADD_FAILURE() << "an offset beyond the end was taken";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            EXPECT_EQ(error.info().offset_bytes, 5001u);
            EXPECT_EQ(error.info().length_bytes, bytes);
        }
    }
}

TEST(SmallRequests, of_a_caller_who_waits_are_done_when_they_are_started) {
    const TempDirectory directory;
    write_file(directory.file("data"), stamped(128 * kKiB));
    ContextOptions slow = on_host();
    slow.host.bandwidth_bytes_per_s = 1e6;  // 4 KiB take 4 ms
    const Context context{slow};
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(64 * kKiB);
    TransferOptions waits;
    waits.caller_waits = true;
    const MemoryView block = buffer.view().slice(0, 4096);
    const Transfer begun = file.start_read(buffer.view().slice(4096, 4096), 0);
    EXPECT_FALSE(begun.done());
    const Transfer read = file.start_read(block, 8192, waits);
    EXPECT_TRUE(read.done());
    EXPECT_EQ(read.result().bytes, 4096u);
    EXPECT_TRUE(read.plan().steps.front().shape.run_inline);
    EXPECT_THROW(file.start_read(block, 128 * kKiB + 1, waits), Error);
}

}  // namespace
}  // namespace penstock
