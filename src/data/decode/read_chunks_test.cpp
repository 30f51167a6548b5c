// Chunks that are read by the threads that decode them: the same bytes as from memory, counts of what was read, and
// what is left to a transfer: bytes that are not in the page cache, of a file that is too short, and of one that fails.
#include "data/decode/read_chunks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "data/decode/stored_rig.hpp"
#include "os/fd.hpp"
#include "os/file/file_stat.hpp"
#include "os/file/residency.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

constexpr std::size_t kChunks = 60, kItem = 4, kChunkBytes = 300'000;

// Reads from the page cache; or as if some bytes were not there, or the file system could not tell.
class Disk : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        ++plain;
        return refuses(offset) ? -1 : System::pread(fd, memory, bytes, offset);
    }
    ssize_t pread_cached(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (tells_nothing) errno = EOPNOTSUPP;
        return tells_nothing || refuses(offset) ? -1 : System::pread(fd, memory, bytes, offset);
    }
    std::atomic<bool> tells_nothing = false;
    std::atomic<int> plain = 0;  // reads that would wait
    std::atomic<std::uint64_t> ends_at = ~std::uint64_t{0}, hole = ~std::uint64_t{0};
    std::atomic<int> refusal = EAGAIN;

  private:
    bool refuses(std::uint64_t offset) const {
        if (offset < ends_at && offset != hole) return false;
        errno = refusal;
        return true;
    }
};

class ReadChunks : public ::testing::Test {
  protected:
    ReadChunks() {
        Bytes stored;
        for (unsigned i = 0; i < kChunks; ++i) {
            const Bytes plain = testing::some_bytes(kChunkBytes, i), planes = testing::shuffled(plain, kItem);
            places_.push_back({stored.size(), planes.size()});
            stored.insert(stored.end(), planes.begin(), planes.end());
            stored.resize(stored.size() + i % 3);  // gaps
            plain_.insert(plain_.end(), plain.begin(), plain.end());
            chunks_.push_back({{}, 0, i, 1});
            Box box;
            box.destination = target_.data() + i * kChunkBytes;
            box.item_bytes = kChunkBytes;
            boxes_.push_back({box, 0});
        }
        const auto* const bytes = reinterpret_cast<const unsigned char*>(stored.data());
        test::write_file(name_, {bytes, bytes + stored.size()});
        file_ = context_.open(name_);
    }

    ChunksRead read(const CoreOptions& options = {}, std::size_t most_left = 0) {
        std::fill(target_.begin(), target_.end(), std::byte{0xee});
        return read_and_decode({file_, places_, most_left}, {pipeline_, chunks_, boxes_}, options);
    }
    // Chunks that are said to be done are there, others may be.
    void expect_done(const ChunksRead& found) const {
        for (std::size_t i = 0; i < kChunks; ++i) {
            const auto begin = static_cast<std::ptrdiff_t>(i * kChunkBytes);
            const auto end = begin + static_cast<std::ptrdiff_t>(kChunkBytes);
            if (found.done[i] == 0) continue;
            EXPECT_TRUE(std::equal(target_.begin() + begin, target_.begin() + end, plain_.begin() + begin)) << i;
        }
        EXPECT_EQ(static_cast<std::size_t>(std::count(found.done.begin(), found.done.end(), 1)), found.decoded.done);
    }

    test::TempDirectory directory_;
    const std::string name_ = directory_.file("chunks");
    Disk disk_;
    Context context_ = context::make_context({.device = "host"}, {.system = &disk_});
    File file_;
    const Pipeline pipeline_{{{{"shuffle", {kItem}}}}, kChunkBytes};
    Bytes plain_, target_ = Bytes(kChunks * kChunkBytes);
    std::vector<StreamPlace> places_;
    std::vector<StoredChunk> chunks_;
    std::vector<PlacedBox> boxes_;
};

TEST_F(ReadChunks, all_land_with_any_number_of_threads_and_are_counted) {
    for (const unsigned threads : {1u, 2u, 7u}) {
        const ChunksRead found = read({.threads = threads});
        EXPECT_FALSE(found.left);
        EXPECT_FALSE(found.decoded.fault);
        EXPECT_EQ(found.decoded.done, kChunks);
        expect_done(found);
        EXPECT_EQ(found.reads.bytes, kChunks * kChunkBytes);
        EXPECT_EQ(found.reads.staged_bytes, kChunks * kChunkBytes);
        EXPECT_GE(found.reads.scratch_peak_bytes, kChunkBytes);
        EXPECT_LE(found.reads.scratch_peak_bytes, threads * kChunkBytes);
        EXPECT_EQ(found.reads.samples.size(), 1u);
        EXPECT_GT(found.reads.seconds, 0);
    }
}

TEST_F(ReadChunks, that_are_not_in_the_page_cache_are_left_to_a_transfer) {
    disk_.ends_at = places_[kChunks / 2].offset;
    const ChunksRead found = read({.threads = 2});
    EXPECT_TRUE(found.left);
    EXPECT_FALSE(found.decoded.fault);
    EXPECT_GE(found.decoded.done, 1u);
    EXPECT_LE(found.decoded.done, kChunks / 2);
    expect_done(found);
    const int waited = disk_.plain;  // of tmpfs all reads are plain
    EXPECT_TRUE(waited == 0 || file_.facts().file_system == "tmpfs") << waited;
}

TEST_F(ReadChunks, a_few_that_are_not_in_the_page_cache_keep_no_other_waiting) {
    disk_.hole = places_[kChunks / 2].offset;
    for (const unsigned threads : {1u, 4u}) {
        const ChunksRead found = read({.threads = threads}, 1);
        EXPECT_TRUE(found.left);
        EXPECT_FALSE(found.decoded.fault);
        EXPECT_EQ(found.done[kChunks / 2], 0);
        EXPECT_EQ(found.decoded.done, kChunks - 1);
        expect_done(found);
    }
    EXPECT_EQ(read({.threads = 1}).decoded.done, kChunks / 2) << "none may be left, so it ends there";
    disk_.hole = ~std::uint64_t{0};
    disk_.ends_at = places_[kChunks - 3].offset;
    EXPECT_EQ(read({.threads = 1}, 1).decoded.done, kChunks - 3) << "and at the second one here";
}

TEST_F(ReadChunks, are_looked_for_in_the_page_cache_where_a_read_does_not_tell) {
    disk_.tells_nothing = true;
    const os::UniqueFd fd(::open(name_.c_str(), O_RDONLY | O_CLOEXEC));
    const os::CachedBy cache = os::file_stat(fd.get(), name_).cached_by;
    if (cache != os::CachedBy::page_cache && cache != os::CachedBy::memory) {
        GTEST_SKIP() << "cachestat does not tell what is cached of files of " << file_.facts().file_system;
    }
    if (!os::cached_fraction(fd.get(), 0, kChunkBytes)) GTEST_SKIP() << "this kernel has no cachestat";
    ChunksRead found = read({.threads = 2});
    EXPECT_FALSE(found.left);
    EXPECT_EQ(found.decoded.done, kChunks);
    expect_done(found);
    file_.drop_cache();
    if (cache == os::CachedBy::memory || file_.residency(0, kChunkBytes).resident_pages != 0) return;
    disk_.plain = 0;
    found = read({.threads = 2});
    EXPECT_TRUE(found.left);
    EXPECT_EQ(disk_.plain, 0);
}

TEST_F(ReadChunks, that_fail_or_are_cut_are_left_and_told_by_nobody_here) {
    disk_.ends_at = places_[kChunks / 2].offset;
    disk_.refusal = EIO;
    ChunksRead found = read();
    EXPECT_TRUE(found.left);
    EXPECT_FALSE(found.decoded.fault);
    EXPECT_GE(found.decoded.done, 1u);
    expect_done(found);
    disk_.ends_at = ~std::uint64_t{0};
    std::filesystem::resize_file(name_, places_.back().offset + 1000);
    found = read();
    EXPECT_TRUE(found.left);
    EXPECT_EQ(found.done.back(), 0);
    expect_done(found);
}

TEST_F(ReadChunks, that_are_damaged_are_told) {
    places_[7].bytes -= kItem;
    const ChunksRead found = read();
    ASSERT_TRUE(found.decoded.fault);
    EXPECT_EQ(found.decoded.fault->first, 7u);
    EXPECT_FALSE(found.left);
    expect_done(found);
}

}  // namespace
}  // namespace penstock::data
