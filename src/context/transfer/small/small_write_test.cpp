// Small writes without a transfer: the same bytes and the same evidence, or nothing.
#include <cstring>

#include "context/transfer/small/small_read_rig.hpp"

namespace penstock {
namespace {

class SmallWriteTest : public SmallReadTest {
  protected:
    static constexpr std::uint64_t kMost = kMiB - 1;  // of which a transfer tells as little

    SmallWriteTest() : context_(make()) {}
    File made(OpenMode mode = OpenMode::read_write) {
        return context_.open(directory_.file(mode == OpenMode::create ? "new" : "data"), {.mode = mode});
    }
    Buffer filled(std::uint64_t bytes, MemoryKind kind) {
        Buffer buffer = context_.allocate(bytes, kind);
        const auto content = stamped(bytes, 77);
        std::memcpy(buffer.view().data, content.data(), bytes);
        return buffer;
    }
    std::vector<unsigned char> read_back(const File& file, std::uint64_t bytes, std::uint64_t offset) {
        const Buffer back = context_.allocate(bytes, MemoryKind::system);
        EXPECT_EQ(file.read(back.view(), offset).bytes, bytes);
        return held(back.view());
    }
    Context context_;
};

TEST_F(SmallWriteTest, puts_the_bytes_with_the_evidence_of_a_transfer_by_one_call) {
    const File file = made();
    for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::system}) {
        for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, kSmallReadBytes + 1, kMost}) {
            const Buffer buffer = filled(bytes, kind);
            const int before = system_.writes;
            const auto small = file.try_small_write(buffer.view(), 999);
            ASSERT_TRUE(small) << bytes;
            EXPECT_EQ(system_.writes, before + 1);
            EXPECT_EQ(read_back(file, bytes, 999), held(buffer.view()));
            EXPECT_EQ(told(small->evidence()), told(file.write(buffer.view(), 999).evidence));
            EXPECT_EQ(small->plan->plan.rfind("write ", 0), 0u) << small->plan->plan;
        }
    }
}

TEST_F(SmallWriteTest, is_as_large_as_what_the_caller_copies_itself) {
    const File file = made();
    const Buffer buffer = filled(kMiB, MemoryKind::system);  // on any number of cores
    const auto small = file.try_small_write(buffer.view(), 999);
    ASSERT_TRUE(small);
    EXPECT_EQ(system_.writes, 1);
    EXPECT_EQ(read_back(file, kMiB, 999), held(buffer.view()));
    EXPECT_EQ(small->plan->plan, file.write(buffer.view(), 999).evidence.plan);
}

TEST_F(SmallWriteTest, is_none_where_a_transfer_does_more_or_less) {
    const File file = made();
    EXPECT_FALSE(file.try_small_write(filled(4 * kMiB + 1, MemoryKind::system).view())) << "by workers";
    EXPECT_FALSE(file.try_small_write(filled(4096, MemoryKind::device).view())) << "from a device";
    const Buffer block = filled(4096, MemoryKind::system);
    EXPECT_FALSE(file.try_small_write(block.view().slice(0, 0))) << "nothing";
    EXPECT_FALSE(file.try_small_write({nullptr, 4096, MemoryKind::system}));
    EXPECT_FALSE(file.try_small_write({block.view().data, 4097, MemoryKind::system})) << "it leaves the buffer";
    EXPECT_FALSE(file.try_small_write(block.view(), UINT64_MAX - 1)) << "no file has that offset";
    EXPECT_THROW(made(OpenMode::read).try_small_write(block.view()), Error) << "open for reading";
    EXPECT_EQ(system_.writes, 0);
    for (const ContextOptions& options : {ContextOptions{.path = PathKind::direct}, ContextOptions{.workers = 2}}) {
        const Context other = make(options);
        const File there = other.open(directory_.file("data"), {.mode = OpenMode::read_write});
        EXPECT_FALSE(there.try_small_write(other.allocate(4096, MemoryKind::system).view()));
    }
    EXPECT_EQ(read_back(file, kFileBytes, 0), stamped(kFileBytes));
}

TEST_F(SmallWriteTest, that_fails_or_is_short_is_left_to_a_transfer) {
    const File file = made();
    const Buffer block = filled(4096, MemoryKind::system);
    system_.failure = ENOSPC;
    EXPECT_FALSE(file.try_small_write(block.view()));
    EXPECT_THROW(file.write(block.view()).or_throw(), Error);
    system_.failure = 0;
    system_.most_bytes = 1000;
    EXPECT_FALSE(file.try_small_write(block.view()));
    EXPECT_EQ(file.write(block.view()).or_throw().bytes, 4096u);
}

TEST_F(SmallWriteTest, repairs_a_new_file_as_a_transfer_does) {
    const Buffer block = filled(4096, MemoryKind::system);
    for (const bool repaired : {false, true}) {
        File file = made(OpenMode::create);
        system_.failure = ENOSPC;
        EXPECT_THROW(file.write(block.view()).or_throw(), Error);
        system_.failure = 0;
        if (!repaired) {
            EXPECT_THROW(file.close(), Error) << "what failed is not there";
            continue;
        }
        EXPECT_TRUE(file.try_small_write(block.view()));
        file.close();
        EXPECT_EQ(read_back(context_.open(directory_.file("new")), 4096, 0), held(block.view()));
    }
}

TEST_F(SmallWriteTest, to_a_closed_file_is_refused) {
    File file = made();
    file.close();
    EXPECT_THROW(file.try_small_write(filled(4096, MemoryKind::system).view()), Error);
}

}  // namespace
}  // namespace penstock
