// Arrays of several files in the public DeviceCache: bytes, statistics of each file, and errors that name the one file
// at fault. On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "context/cache/device_cache_rig.hpp"
#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"
#include "penstock/device_cache.hpp"

namespace penstock {
namespace {

using test::Bytes;
using test::device_of_test;
using test::error_of;

// A system on which one file is bad, once the test has said which.
class BadFile : public os::System {
  public:
    std::atomic<int> bad{-1}, code{EIO};
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (fd == bad) return errno = code, -1;
        return System::pwrite(fd, memory, bytes, offset);
    }
};

class StripedFilesTest : public testing::TestWithParam<const char*> {
  protected:
    static constexpr std::uint64_t kStripe = 64 << 10, kBytes = 17 * kStripe + 12'345;

    // Three files; the test deals the bytes out by hand.
    StripedFilesTest() {
        std::vector<Bytes> parts(3);
        for (std::uint64_t at = 0; at < kBytes; at += kStripe) {
            Bytes& part = parts[at / kStripe % 3];
            part.insert(part.end(), content_.begin() + at, content_.begin() + std::min(kBytes, at + kStripe));
        }
        for (std::size_t i = 0; i < 3; ++i) {
            names_.push_back(directory_.file("part" + std::to_string(i)));
            test::write_file(names_.back(), parts[i]);
        }
    }
    StripedFiles open(OpenMode mode = OpenMode::read_write) const {
        StripedFiles array{{}, kStripe};
        for (const std::string& name : names_) array.files.push_back(context_.open(name, {.mode = mode}));
        return array;
    }
    DeviceCache make(const StripedFiles& array, bool map = true) const {
        return DeviceCache(context_, {&array, 1},
                           {.cache_bytes = 64 * 4096, .timeout = std::chrono::seconds(20), .map = map});
    }
    Bytes read(const DeviceCache& cache, std::uint64_t offset, std::uint64_t bytes) const {
        const Buffer to = context_.allocate(bytes);
        cache.read(0, offset, to.view());
        return test::fetch(context_, to.data(), bytes);
    }
    void write(const DeviceCache& cache, std::uint64_t offset, const Bytes& bytes) const {
        const Buffer from = context_.allocate(bytes.size());
        context_.copy_to_device(from.data(), bytes.data(), bytes.size());
        cache.write(0, offset, from.view());
    }
    Bytes in_files() const {
        Bytes all;
        std::vector<Bytes> parts;
        for (const std::string& name : names_) parts.push_back(test::read_file(name));
        for (std::uint64_t at = 0; at < kBytes; at += kStripe) {
            const auto from = parts[at / kStripe % 3].begin() + at / (3 * kStripe) * kStripe;
            all.insert(all.end(), from, from + std::min(kStripe, kBytes - at));
        }
        return all;
    }

    BadFile system_;
    Context context_ = context::make_context({.device = device_of_test()}, {.system = &system_});
    test::TempDirectory directory_{GetParam()};
    std::vector<std::string> names_;
    Bytes content_ = test::stamped(kBytes);
};

// In /dev/shm a GPU maps the files.
INSTANTIATE_TEST_SUITE_P(Places, StripedFilesTest, testing::Values("", "/dev/shm"),
                         [](const auto& one) { return one.index == 0 ? "on_a_disk" : "in_memory"; });

TEST_P(StripedFilesTest, random_reads_writes_and_gathers_are_those_of_one_array) {
    const DeviceCache cache = make(open());
    ASSERT_EQ(cache.bytes(0), kBytes);
    std::mt19937_64 random(5);
    for (int turn = 0; turn < 30; ++turn) {
        const std::uint64_t first = random() % kBytes, count = 1 + random() % std::min(3 * kStripe, kBytes - first);
        if (turn % 2 == 0) {
            const Bytes bytes = test::stamped(count, random() % 1000);
            std::copy(bytes.begin(), bytes.end(), content_.begin() + first);
            write(cache, first, bytes);
        } else {
            ASSERT_EQ(read(cache, first, count),
                      Bytes(content_.begin() + first, content_.begin() + first + count));
        }
    }
    constexpr std::uint64_t kRow = 3000;
    std::vector<std::int64_t> rows(200);
    for (auto& row : rows) row = static_cast<std::int64_t>(random() % (kBytes / kRow));
    const Buffer indices = context_.allocate(8 * rows.size()), out = context_.allocate(kRow * rows.size());
    context_.copy_to_device(indices.data(), rows.data(), indices.bytes());
    cache.gather(0, {.row_bytes = kRow}, indices.view(), out.view());
    const Bytes got = test::fetch(context_, out.data(), out.bytes());
    for (std::size_t i = 0; i < rows.size(); ++i)
        ASSERT_EQ(std::memcmp(&got[i * kRow], &content_[rows[i] * kRow], kRow), 0) << "row " << rows[i];
    cache.close();
    EXPECT_EQ(in_files(), content_);
}

TEST_P(StripedFilesTest, statistics_tell_files_apart_beside_an_array_of_one_file) {
    const test::TempDirectory other;
    test::write_file(other.file("alone"), test::stamped(20 * 4096));
    const std::vector<StripedFiles> arrays{open(OpenMode::read), {{context_.open(other.file("alone"))}}};
    const DeviceCache cache(context_, arrays, {.cache_bytes = 512 * 4096});
    ASSERT_EQ(read(cache, 0, kBytes), content_);
    const Buffer to = context_.allocate(10 * 4096);
    cache.read(1, 0, to.view());
    const DeviceCacheStatistics found = cache.statistics();
    const auto& striped = found.arrays.at(0);
    EXPECT_EQ(striped.stripe_bytes, kStripe);
    EXPECT_EQ(striped.bytes, kBytes);
    ASSERT_EQ(striped.files.size(), 3u);
    EXPECT_EQ(found.arrays.at(1).stripe_bytes, 0u);
    const auto moved = [](const DeviceCacheStatistics::StoredFile& file) {
        std::uint64_t bytes = file.mapped_bytes, pages = file.mapped_pages;
        for (const auto& one : file.served) bytes += one.bytes, pages += one.requests;
        EXPECT_EQ(pages, (file.bytes + 4095) / 4096 - (file.name.ends_with("alone") ? 10 : 0)) << file.name;
        return bytes;
    };
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(striped.files[i].name, names_[i]);
        EXPECT_EQ(striped.files[i].bytes, std::filesystem::file_size(names_[i]));
        EXPECT_EQ(moved(striped.files[i]), striped.files[i].bytes);
        EXPECT_EQ(striped.files[i].mapped_pages != 0, striped.mapped) << striped.mapping_refusal;
    }
    EXPECT_EQ(moved(found.arrays.at(1).files.at(0)), 10u * 4096);
    std::uint64_t mapped = 0;
    for (const auto& array : found.arrays)
        for (const auto& file : array.files) mapped += file.mapped_pages;
    EXPECT_EQ(found.mapped_pages, mapped) << "also where only some are mapped";
    const bool reached = !context_.device().info().emulated && GetParam()[0] != 0;
    EXPECT_EQ(striped.mapped, reached) << striped.mapping_refusal;
}

TEST_P(StripedFilesTest, what_fails_in_one_file_names_it_and_the_place_in_it) {
    const StripedFiles array = open();
    const DeviceCache cache = make(array, false);
    write(cache, 4 * kStripe + 5000, Bytes(100, 1));  // stripe 1 of the second file
    system_.code = ENOSPC;
    for (int fd = 3; fd < 256 && system_.bad < 0; ++fd) {  // until it finds the second file's descriptor
        std::error_code none;
        const auto target = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none);
        if (!none && target == std::filesystem::canonical(names_[1])) system_.bad = fd;
    }
    ASSERT_GE(system_.bad, 0);
    const ErrorInfo full = error_of([&] { cache.flush(); });
    EXPECT_EQ(full.operation, "flush");
    EXPECT_EQ(full.code, ErrorCode::no_space) << full.message();
    EXPECT_EQ(full.file, names_[1]);
    EXPECT_EQ(full.offset_bytes, kStripe + 4096);
    EXPECT_EQ(full.length_bytes, 4096u);
    EXPECT_EQ(full.system_code, ENOSPC);
    EXPECT_NE(full.cause.find("No space left"), std::string::npos) << full.message();
    system_.bad = -1;
    cache.flush();
}

TEST_P(StripedFilesTest, a_file_cut_short_is_named_and_others_are_read) {
    const DeviceCache cache = make(open(OpenMode::read), false);
    std::filesystem::resize_file(names_[2], kStripe + 8192);
    const ErrorInfo error = error_of([&] { read(cache, 0, kBytes); });
    EXPECT_EQ(error.code, ErrorCode::end_of_file) << error.message();
    EXPECT_EQ(error.file, names_[2]);
    EXPECT_GE(error.offset_bytes, kStripe + 8192);
    const auto first = content_.begin() + 6 * kStripe;
    EXPECT_EQ(read(cache, 6 * kStripe, 2 * kStripe), Bytes(first, first + 2 * kStripe));
}

TEST_P(StripedFilesTest, what_does_not_fit_together_is_refused_in_words) {
    StripedFiles array = open();
    const auto said = [&](const StripedFiles& files) { return error_of([&] { make(files); }).message(); };
    const auto has = [](const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    };
    StripedFiles wrong = array;
    wrong.stripe_bytes = 2048;
    EXPECT_TRUE(has(said(wrong), "stripes of 2048 bytes for pages of 4096")) << said(wrong);
    wrong.stripe_bytes = 100'000;
    EXPECT_TRUE(has(said(wrong), "give a power of two")) << said(wrong);
    wrong = array;
    std::swap(wrong.files[0], wrong.files[2]);
    EXPECT_TRUE(has(said(wrong), "order")) << said(wrong);
    wrong = array;
    wrong.files[1] = context_.open(names_[1]);
    EXPECT_TRUE(has(said(wrong), names_[1] + ": it was opened for reading")) << said(wrong);
    wrong.files[1] = array.files[0];
    EXPECT_TRUE(has(said(wrong), "it is the same file as " + names_[0])) << said(wrong);
    wrong = array;
    wrong.files.clear();
    EXPECT_TRUE(has(said(wrong), "no files")) << said(wrong);
    EXPECT_EQ(error_of([&] { DeviceCache(context_, std::span<const StripedFiles>()); }).code,
              ErrorCode::invalid_argument);
    wrong = {{array.files[0]}, 3};
    EXPECT_EQ(make(wrong).bytes(0), std::filesystem::file_size(names_[0])) << "one file has no stripes";
    const DeviceCache cache = make(array);
    const ErrorInfo range = error_of([&] { cache.pin(0, kBytes, 1); });
    EXPECT_EQ(range.file, names_[0] + " and 2 more") << range.message();
}

}  // namespace
}  // namespace penstock
