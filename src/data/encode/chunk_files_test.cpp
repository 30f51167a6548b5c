// Chunks that become files: the bytes of encode_chunks, few calls of the system, and what a system does that refuses.
#include "data/encode/chunk_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "data/decode/stored_rig.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

constexpr std::size_t kChunks = 12, kItem = 4, kChunkBytes = 30000 * kItem;

// A system that counts its calls, interrupts, writes little at a time, or refuses.
class BadDay final : public os::System {
  public:
    int open(const char* name, int flags, unsigned mode) override {
        if (opens++ % 2 == 0 && interrupts) return errno = EINTR, -1;
        if (open_error != 0) return errno = open_error, -1;
        return System::open(name, flags, mode);
    }
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        const unsigned call = writes++;
        if (call % 2 == 0 && interrupts) return errno = EINTR, -1;
        if (write_error != 0 && call >= full_after) return errno = write_error, -1;
        return System::pwrite(fd, memory, std::min(bytes, most), offset);
    }
    int close(int fd) override {
        ++closes;
        const int result = System::close(fd);
        return close_error != 0 ? (errno = close_error, -1) : result;
    }
    int fallocate(int, std::uint64_t, std::uint64_t) override { return ++others, errno = EIO, -1; }
    int sync_file_range(int, std::uint64_t, std::uint64_t, unsigned) override { return ++others, errno = EIO, -1; }

    std::atomic<unsigned> opens{0}, writes{0}, closes{0}, others{0};
    bool interrupts = false;
    std::size_t most = SIZE_MAX;
    unsigned full_after = 0;
    int open_error = 0, write_error = 0, close_error = 0;
};

struct Folder {
    std::string path = ::testing::TempDir() + "/penstock-XXXXXX";
    Folder() { EXPECT_NE(::mkdtemp(path.data()), nullptr); }
    ~Folder() { std::filesystem::remove_all(path); }
};

struct Rig {
    explicit Rig(std::vector<Filter> wanted, bool whole = true) : filters(std::move(wanted)) {
        for (std::size_t i = 0; i < kChunks; ++i) {
            plain.push_back(testing::some_bytes(kChunkBytes, static_cast<unsigned>(i)));
            Box box;
            box.source = plain.back().data();
            box.item_bytes = whole ? kChunkBytes : kChunkBytes / 2;
            boxes.push_back({box, 0});
            chunks.push_back({i, 1, !whole});
            names.push_back(folder.path + "/c" + std::to_string(i));
        }
    }
    FilesWritten write(const CoreOptions& options = {.threads = 4}) {
        return write_chunk_files({encoder, chunks, boxes, fill, sizes}, {names, system}, options);
    }
    static Bytes stored(const std::string& name) {
        std::ifstream file(name, std::ios::binary);
        const std::vector<char> all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        const auto* begin = reinterpret_cast<const std::byte*>(all.data());
        return {begin, begin + all.size()};
    }
    Bytes decoded(std::size_t i) const {
        Bytes out;
        EXPECT_EQ(testing::decode(Pipeline(filters, kChunkBytes), stored(names[i]), out), "");
        return out;
    }

    std::vector<Filter> filters;
    Encoder encoder{filters, kChunkBytes};
    Folder folder{};
    std::vector<Bytes> plain{};
    std::vector<PlainChunk> chunks{};
    std::vector<GatheredBox> boxes{};
    std::vector<std::uint64_t> sizes = std::vector<std::uint64_t>(kChunks);
    std::vector<std::string> names{};
    Bytes fill{};
    BadDay system{};
};

const std::vector<Filter> kSums{{"shuffle", {kItem}}, {"fletcher32", {}}};

TEST(ChunkFiles, a_file_has_the_bytes_of_its_chunk_and_takes_an_open_a_write_and_a_close) {
    for (const std::vector<Filter>& filters : {std::vector<Filter>{}, kSums}) {
        Rig rig(filters);
        const FilesWritten written = rig.write();
        EXPECT_EQ(written.encoded.done, kChunks);
        EXPECT_FALSE(written.encoded.fault);
        EXPECT_TRUE(written.refused.ok());
        EXPECT_EQ(written.calls, kChunks);
        EXPECT_EQ(rig.system.opens, kChunks);
        EXPECT_EQ(rig.system.writes, kChunks);
        EXPECT_EQ(rig.system.closes, kChunks);
        EXPECT_EQ(rig.system.others, 0u);
        for (std::size_t i = 0; i < kChunks; ++i) {
            EXPECT_EQ(rig.decoded(i), rig.plain[i]) << i;
            EXPECT_EQ(rig.sizes[i], Rig::stored(rig.names[i]).size());
        }
    }
}

TEST(ChunkFiles, what_the_elements_leave_of_a_chunk_is_filled) {
    Rig rig({}, false);
    rig.fill = testing::some_bytes(kItem, 99);
    EXPECT_EQ(rig.write().encoded.done, kChunks);
    const Bytes first = Rig::stored(rig.names[0]);
    ASSERT_EQ(first.size(), kChunkBytes);
    EXPECT_TRUE(std::equal(first.begin(), first.begin() + kChunkBytes / 2, rig.plain[0].begin()));
    for (std::size_t at = kChunkBytes / 2; at < kChunkBytes; at += kItem) {
        ASSERT_TRUE(std::equal(rig.fill.begin(), rig.fill.end(), first.begin() + static_cast<std::ptrdiff_t>(at)));
    }
}

TEST(ChunkFiles, a_longer_file_keeps_nothing_behind_an_encoded_chunk) {
    Rig rig(kSums);
    std::ofstream(rig.names[3], std::ios::binary) << std::string(4 * kChunkBytes, 'x');
    EXPECT_EQ(rig.write().encoded.done, kChunks);
    EXPECT_EQ(rig.decoded(3), rig.plain[3]);
}

TEST(ChunkFiles, signals_and_short_counts_cost_calls_and_no_bytes) {
    Rig rig(kSums);
    rig.system.interrupts = true;
    rig.system.most = 50000;
    const FilesWritten written = rig.write({.threads = 1});
    EXPECT_EQ(written.encoded.done, kChunks);
    EXPECT_GT(written.calls, 3 * kChunks);
    for (std::size_t i = 0; i < kChunks; ++i) EXPECT_EQ(rig.decoded(i), rig.plain[i]) << i;
}

TEST(ChunkFiles, a_full_disk_ends_the_work_and_names_file_and_range) {
    Rig rig({});
    rig.system.most = 100000;
    rig.system.write_error = ENOSPC;
    rig.system.full_after = 3;  // the second part of the second file
    const FilesWritten written = rig.write({.threads = 1});
    EXPECT_EQ(written.refused.code, ErrorCode::no_space);
    EXPECT_EQ(written.refused.operation, "write");
    EXPECT_EQ(written.refused.file, rig.names[1]);
    EXPECT_EQ(written.refused.offset_bytes, 100000u);
    EXPECT_EQ(written.refused.length_bytes, kChunkBytes - 100000u);
    EXPECT_NE(written.refused.advice, "");
    EXPECT_EQ(rig.system.opens, 2u) << "no other file is begun";
    EXPECT_EQ(rig.system.closes, 2u);
}

TEST(ChunkFiles, what_may_not_be_made_and_what_shows_at_the_end_are_told) {
    Rig refused({});
    refused.system.open_error = EACCES;
    EXPECT_EQ(refused.write({.threads = 1}).refused.code, ErrorCode::permission_denied);
    Rig late({});
    late.system.close_error = EDQUOT;
    const ErrorInfo info = late.write({.threads = 1}).refused;
    EXPECT_EQ(info.operation, "close");
    EXPECT_EQ(info.system_code, EDQUOT);
    Rig interrupted({});
    interrupted.system.close_error = EINTR;
    EXPECT_TRUE(interrupted.write({.threads = 1}).refused.ok());
}

TEST(ChunkFiles, a_link_is_not_followed) {
    Rig rig({});
    const std::string other = rig.folder.path + "/other";
    std::ofstream(other) << "kept";
    ASSERT_EQ(::symlink(other.c_str(), rig.names[0].c_str()), 0);
    EXPECT_FALSE(rig.write().refused.ok());
    EXPECT_EQ(Rig::stored(other).size(), 4u);
}

TEST(ChunkFiles, work_that_was_stopped_makes_no_file) {
    Rig rig(kSums);
    const std::atomic<bool> stopped{true};
    EXPECT_EQ(rig.write({.stopped = &stopped}).encoded.done, 0u);
    EXPECT_EQ(rig.system.opens, 0u);
}

TEST(ChunkFiles, a_folder_of_kernel_texts_or_none_takes_no_files) {
    EXPECT_FALSE(takes_files("/proc/self", 1));
    EXPECT_FALSE(takes_files("/nowhere/at/all", 1));
    if (::access("/dev/shm", W_OK) == 0) {
        EXPECT_TRUE(takes_files("/dev/shm", UINT64_MAX)) << "the file system's memory";
    }
}

}  // namespace
}  // namespace penstock::data
