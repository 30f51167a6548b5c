// Which file serves a request to an array, and which failures are kept for callers that ask.
#include "ondevice/files/served_arrays.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "context/test_files.hpp"
#include "ondevice/service/striped_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kArrayStripe = 8192;

class ServedArraysTest : public testing::Test {
  protected:
    ServedArraysTest() {
        alone_.write(test::stamped(5000));
        striped_.write(test::stamped(5 * kArrayStripe + 100, 5000));
    }
    Request read(u16 array, u64 offset, u32 bytes) const {
        return {offset, 0, bytes, array, RequestOperation::read, 0};
    }

    test::TempDirectory directory_;
    const StripedNames alone_ = striped_names(directory_.file("alone"), 1, 0);
    const StripedNames striped_ = striped_names(directory_.file("part"), 3, kArrayStripe);
};

TEST_F(ServedArraysTest, requests_go_to_the_file_that_has_the_bytes) {
    const OpenedSet alone(alone_), striped(striped_);
    const ServedArrays arrays({alone.set, striped.set});
    EXPECT_EQ(arrays.files(), 4u);
    EXPECT_EQ(arrays.files_of(1).first, 1u);
    EXPECT_EQ(arrays.files_of(1).count, 3u);
    EXPECT_EQ(arrays.files_of(2).count, 0u);
    for (u64 at = 0; at + 50 <= 5 * kArrayStripe + 100; at += 50) {
        Request request = read(1, at, 50);
        const bool whole = at / kArrayStripe == (at + 49) / kArrayStripe;
        ASSERT_EQ(arrays.locate(request), whole ? Status::ok : Status::invalid) << at;
        if (!whole) continue;
        FileBytes got(50);
        ServedFile& file = arrays.file(request.file);
        ASSERT_EQ(file.check(request), Status::ok) << at;
        ASSERT_TRUE(file.guard().copy(got.data(), file.at(request.offset_bytes), 50));
        ASSERT_EQ(got, test::stamped(50, 5000 + at)) << at;
    }
    Request alike = read(0, 4990, 10);
    EXPECT_EQ(arrays.locate(alike), Status::ok);
    EXPECT_EQ(alike.offset_bytes, 4990u);
    EXPECT_EQ(alike.file, 0u);
}

TEST_F(ServedArraysTest, requests_that_make_no_sense_are_refused) {
    const OpenedSet alone(alone_), striped(striped_);
    const ServedArrays arrays({alone.set, striped.set});
    const auto told = [&](Request request) { return arrays.locate(request); };
    EXPECT_EQ(told(read(2, 0, 1)), Status::invalid) << "no such array";
    EXPECT_EQ(told(read(1, 0, 0)), Status::invalid);
    EXPECT_EQ(told(read(1, kArrayStripe - 1, 2)), Status::invalid) << "two files";
    EXPECT_EQ(told(read(1, 5 * kArrayStripe + 99, 2)), Status::out_of_range);
    EXPECT_EQ(told(read(1, ~0ull, 2)), Status::out_of_range);
}

TEST_F(ServedArraysTest, a_file_that_was_cut_short_is_found) {
    const OpenedSet alone(alone_), striped(striped_);
    const ServedArrays arrays({alone.set, striped.set});
    for (const u32 array : {0u, 1u, 9u}) EXPECT_FALSE(arrays.cut_short(array).has_value()) << array;
    std::filesystem::resize_file(striped_.names[1], 100'000);
    EXPECT_FALSE(arrays.cut_short(1).has_value()) << "it grew";
    std::filesystem::resize_file(striped_.names[1], 700);
    EXPECT_FALSE(arrays.cut_short(0).has_value());
    const auto cut = arrays.cut_short(1);
    ASSERT_TRUE(cut.has_value());
    EXPECT_EQ(cut->status, Status::truncated);
    EXPECT_EQ(cut->file, 2u);
    EXPECT_EQ(cut->offset_bytes, 700u);
}

TEST_F(ServedArraysTest, failures_since_are_the_last_ones_in_their_order) {
    const OpenedSet alone(alone_);
    ServedArrays arrays({alone.set});
    EXPECT_EQ(arrays.failures(), 0u);
    EXPECT_TRUE(arrays.failures_since(0).empty());
    arrays.failed({Status::io_error, RequestOperation::write, 0, 4096, 512, 28});
    arrays.failed({Status::truncated, RequestOperation::read, 0, 0, 1, 0});
    EXPECT_EQ(arrays.failures(), 2u);
    const auto both = arrays.failures_since(0);
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0].status, Status::io_error);
    EXPECT_EQ(both[0].offset_bytes, 4096u);
    EXPECT_EQ(both[0].system_code, 28);
    EXPECT_EQ(arrays.failures_since(1).size(), 1u);
    EXPECT_EQ(arrays.failures_since(1)[0].status, Status::truncated);
    EXPECT_TRUE(arrays.failures_since(2).empty());
    const u64 many = ServedArrays::kFailuresKept + 3;
    for (u64 i = 0; i < many; ++i) arrays.failed({Status::io_error, RequestOperation::read, 0, i, 1, 5});
    const auto last = arrays.failures_since(1);
    ASSERT_EQ(last.size(), ServedArrays::kFailuresKept) << "of very many, the last";
    for (u64 i = 0; i < last.size(); ++i) EXPECT_EQ(last[i].offset_bytes, i + 3);
}

}  // namespace
}  // namespace penstock::ondevice
