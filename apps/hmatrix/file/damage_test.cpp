// Damaged files: changed bytes in the header and the tables, other lengths, and tables with wrong content under right
// checksums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "context/test_files.hpp"
#include "hmatrix/assemble/small_problem_rig.hpp"
#include "hmatrix/file/reader.hpp"
#include "hmatrix/file/writer.hpp"
#include "penstock/checksum.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

using Bytes = std::vector<unsigned char>;

class Damage : public testing::Test {
  protected:
    Damage() {
        const SmallProblem given(40);
        AssembleOptions options;
        options.eps = 1e-2;
        options.batches = 3;
        assemble(context_, workers_, given.problem(), name_, options);
        whole_ = test::read_file(name_);
        std::memcpy(&head_, whole_.data(), sizeof head_);
    }
    // Writes `bytes` as the file and opens it. Returns the cause of the error, or "" if the file opens.
    std::string refusal(const Bytes& bytes, ErrorCode code = ErrorCode::invalid_argument) {
        test::write_file(name_, bytes);
        try {
            MatrixFile::open(context_, workers_, name_);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), code) << error.what();
            EXPECT_NE(std::string(error.what()).find(name_), std::string::npos) << error.what();
            return error.info().cause;
        }
        return "";
    }
    // Recomputes both checksums, as a faulty writer or a fuzzer would leave them.
    static Bytes resealed(Bytes bytes) {
        FileHeader head;
        std::memcpy(&head, bytes.data(), sizeof head);
        const auto all = std::as_bytes(std::span(bytes));
        const auto from = static_cast<std::size_t>(head.leaf_table_offset);
        if (from < all.size()) head.tables_checksum = checksum(ChecksumKind::crc32, all.subspan(from));
        std::memcpy(bytes.data(), &head, sizeof head);
        head.header_checksum = checksum(ChecksumKind::crc32, all.first(offsetof(FileHeader, header_checksum)));
        std::memcpy(bytes.data(), &head, sizeof head);
        return bytes;
    }
    template <class Value>
    std::string refusal_with(std::int64_t offset, Value value) {
        Bytes bytes = whole_;
        std::memcpy(bytes.data() + offset, &value, sizeof value);
        return refusal(resealed(bytes));
    }

    test::TempDirectory directory_;
    std::string name_ = directory_.file("a.hmat");
    Context context_ = host_context();
    Workers workers_{1};
    Bytes whole_;
    FileHeader head_{};
};

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_F(Damage, the_whole_file_is_taken) {  // without this, every refusal below would prove nothing
    EXPECT_EQ(refusal(whole_), "");
    EXPECT_EQ(refusal(resealed(whole_)), "");
    ASSERT_EQ(head_.batches, 3);
}

TEST_F(Damage, any_byte_of_the_header_that_changes_is_noticed) {
    for (std::size_t at = 0; at < sizeof(FileHeader); ++at) {
        Bytes bytes = whole_;
        bytes[at] ^= 0x41;
        const bool version = at >= offsetof(FileHeader, version) && at < offsetof(FileHeader, encoding);
        const std::string cause = refusal(bytes, version ? ErrorCode::unsupported : ErrorCode::invalid_argument);
        const char* wanted = at < 8 ? "not a .hmat file" : version ? "version" : "header is corrupted";
        // The header's checksum also covers the field tables_checksum.
        EXPECT_TRUE(holds(cause, wanted)) << at << ": " << cause;
    }
}

TEST_F(Damage, a_byte_of_the_tables_that_changes_is_noticed) {
    const std::int64_t begins[] = {head_.leaf_table_offset, head_.batch_table_offset, head_.order_offset};
    for (std::int64_t at = head_.leaf_table_offset; at < head_.file_bytes; ++at) {
        // Tests every byte of each table's first record, and every eleventh byte of the rest, because the CRC treats
        // all records alike.
        const auto first = [&](std::int64_t begin) { return at >= begin && at < begin + 160; };
        if (std::none_of(std::begin(begins), std::end(begins), first) && at % 11 != 0) continue;
        Bytes bytes = whole_;
        bytes[at] ^= 0x10;
        const std::string cause = refusal(bytes);
        ASSERT_TRUE(holds(cause, "tables are corrupted")) << at << ": " << cause;
    }
}

TEST_F(Damage, a_file_cut_short_or_written_to_is_refused_at_every_boundary) {
    const std::int64_t ends[] = {0, 1, 8, sizeof(FileHeader), kPage - 1, kPage, kPage + 1, 2 * kPage,
                                 head_.leaf_table_offset, head_.batch_table_offset, head_.order_offset,
                                 head_.about_offset, head_.file_bytes};
    for (const std::int64_t end : ends) {
        for (const std::int64_t size : {end - 1, end, end + 1}) {
            if (size < 0 || size == head_.file_bytes) continue;
            Bytes bytes = whole_;
            bytes.resize(size);
            const std::string cause = refusal(bytes);
            EXPECT_TRUE(holds(cause, size < kPage ? "shorter than a header" : "cut short, or written to")) << cause;
        }
    }
}

TEST_F(Damage, what_is_no_matrix_is_said_to_be_none) {
    EXPECT_TRUE(holds(refusal(Bytes(100000, 0)), "not a .hmat file"));
    EXPECT_TRUE(holds(refusal(test::stamped(100000)), "not a .hmat file"));
    EXPECT_TRUE(holds(refusal({}), "shorter than a header"));
    Bytes text = whole_;  // what a transfer in text mode makes of the file
    text[6] = '\n';
    EXPECT_TRUE(holds(refusal(text), "not a .hmat file"));
}

TEST_F(Damage, another_version_says_which_and_what_to_do) {
    Bytes bytes = whole_;
    bytes[offsetof(FileHeader, version)] = 9;
    test::write_file(name_, bytes);
    try {
        MatrixFile::open(context_, workers_, name_);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_EQ(error.info().cause, "it is of version 9 and this program reads version 1");
        EXPECT_TRUE(holds(error.info().advice, "build the matrix again"));
    }
}

TEST_F(Damage, a_header_that_lies_with_a_right_checksum_is_refused) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(holds(refusal_with(offsetof(FileHeader, encoding), 7u), "encoding is not known"));
    for (const std::uint32_t tiers : {0u, 7u, 0xffffffffu}) {
        EXPECT_TRUE(holds(refusal_with(offsetof(FileHeader, tiers), tiers), "encoding is not known"));
    }
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{0}, kMost, kMost / 8, std::int64_t{1} << 40}) {
        for (const std::size_t field : {offsetof(FileHeader, unknowns), offsetof(FileHeader, leaves),
                                        offsetof(FileHeader, batches), offsetof(FileHeader, about_bytes)}) {
            EXPECT_TRUE(holds(refusal_with(field, value), "tables overlap or leave")) << field << " " << value;
        }
    }
    for (const std::size_t field : {offsetof(FileHeader, leaf_table_offset), offsetof(FileHeader, batch_table_offset),
                                    offsetof(FileHeader, order_offset), offsetof(FileHeader, about_offset)}) {
        for (const std::int64_t value : {std::int64_t{-8}, std::int64_t{0}, head_.file_bytes, kMost}) {
            EXPECT_NE(refusal_with(field, value), "") << field << " " << value;
        }
    }
    EXPECT_TRUE(holds(refusal_with(offsetof(FileHeader, file_bytes), kMost), "cut short"));
    EXPECT_TRUE(holds(refusal_with(offsetof(FileHeader, low_rank_leaves), std::int64_t{3000}), "low-rank leaves"));
    for (const double value : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 2.0}) {
        EXPECT_TRUE(holds(refusal_with(offsetof(FileHeader, accuracies), value), "accuracy of its tier 0"));
    }
}

TEST_F(Damage, a_leaf_that_lies_with_a_right_checksum_is_refused) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::int64_t last = head_.batch_table_offset - static_cast<std::int64_t>(sizeof(LeafRecord));
    const std::string name =
        "leaf " + std::to_string(head_.leaves - 1) + " lies outside the matrix, or its counts are impossible";
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{41}, kMost}) {
        for (const std::size_t field : {offsetof(LeafRecord, row), offsetof(LeafRecord, column),
                                        offsetof(LeafRecord, rows), offsetof(LeafRecord, columns)}) {
            EXPECT_EQ(refusal_with(last + field, value), name) << field << " " << value;
        }
    }
    EXPECT_EQ(refusal_with(last + offsetof(LeafRecord, rows), std::int64_t{0}), name);
    EXPECT_TRUE(holds(refusal_with(last + offsetof(LeafRecord, rows), std::int64_t{1}), "do not cover the matrix"));
    EXPECT_EQ(refusal_with(last + offsetof(LeafRecord, low_rank), 2u), name);
    EXPECT_EQ(refusal_with(last + offsetof(LeafRecord, counts), std::uint16_t{9}), name);
    EXPECT_EQ(refusal_with(last + offsetof(LeafRecord, counts) + 6, std::uint16_t{9}), name) << "more last digits";
}

TEST_F(Damage, a_batch_or_an_order_that_lies_with_a_right_checksum_is_refused) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::int64_t second = head_.batch_table_offset + static_cast<std::int64_t>(sizeof(BatchRecord));
    const auto with = [&](std::size_t field, std::int64_t value) {
        return refusal_with(second + static_cast<std::int64_t>(field), value);
    };
    const std::string outside = "batch 1 lies outside the part of the file for batches";
    const std::string apart = "the leaves of batch 1 do not follow those before";
    for (const std::int64_t value : {std::int64_t{-4096}, std::int64_t{0}, std::int64_t{4097}, kMost}) {
        EXPECT_EQ(with(offsetof(BatchRecord, offset), value), outside) << value;
        EXPECT_NE(with(offsetof(BatchRecord, tier_bytes), value), "") << value;
    }
    for (const std::int64_t value : {std::int64_t{-1}, kMost}) {
        EXPECT_EQ(with(offsetof(BatchRecord, bytes), value), outside) << value;
        EXPECT_EQ(with(offsetof(BatchRecord, tier_begin), value), outside) << value;
        EXPECT_EQ(with(offsetof(BatchRecord, first_leaf), value), apart) << value;
        EXPECT_EQ(with(offsetof(BatchRecord, leaves), value), apart) << value;
    }
    EXPECT_NE(with(offsetof(BatchRecord, leaves), 0), "");
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{40}, kMost}) {
        EXPECT_EQ(refusal_with(head_.order_offset, value), "the order of its unknowns is not a permutation") << value;
    }
    std::int64_t second_of_order = 0;
    std::memcpy(&second_of_order, whole_.data() + head_.order_offset + 8, 8);
    EXPECT_EQ(refusal_with(head_.order_offset, second_of_order), "the order of its unknowns is not a permutation");
}

}  // namespace
}  // namespace penstock::hmatrix
