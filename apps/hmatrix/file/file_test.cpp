// Writes leaves, reads them back, and checks that they lie where the format says.
#include <gtest/gtest.h>

#include <cstring>

#include "context/test_files.hpp"
#include "hmatrix/assemble/small_problem_rig.hpp"
#include "hmatrix/file/packed.hpp"
#include "hmatrix/file/reader.hpp"
#include "hmatrix/file/writer.hpp"
#include "penstock/checksum.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

const std::vector<double> kAccuracies{1e-1, 1e-2, 1e-4};

// A 40 x 40 matrix in two batches and four leaves: dense, low-rank, zero, dense.
struct Made {
    std::vector<Leaf> places{
        {0, 0, 20, 20, false}, {0, 20, 20, 20, true}, {20, 0, 20, 20, true}, {20, 20, 20, 20, false}};
    std::vector<TieredLeaf> leaves;
    std::vector<std::int64_t> order;

    explicit Made(Encoding encoding) {
        const std::vector<Factors> factors{{20, 20, 0, false, random_vector(400, 1), {}},
                                           {20, 20, 3, true, random_vector(60, 2), random_vector(60, 3)},
                                           {20, 20, 0, true, {}, {}},
                                           {20, 20, 0, false, random_vector(400, 4), {}}};
        for (const Factors& one : factors) {
            leaves.push_back(encoding == Encoding::tiers ? encode(one, kAccuracies) : encode_doubles(one));
        }
        for (std::int64_t i = 0; i < 40; ++i) order.push_back((i * 7) % 40);
    }
    FileHeader write(const Context& context, Workers& workers, const std::string& name, Encoding encoding) const {
        FileHeader head{};
        head.encoding = static_cast<std::uint32_t>(encoding);
        head.tiers = encoding == Encoding::tiers ? 3 : 1;
        head.eps = 1e-4;
        head.accuracies[0] = 1e-4;
        if (encoding == Encoding::tiers) std::copy(kAccuracies.begin(), kAccuracies.end(), head.accuracies);
        MatrixWriter writer(context, workers, name, head);
        writer.add(std::span(places).first(1), std::span(leaves).first(1));
        writer.add(std::span(places).subspan(1), std::span(leaves).subspan(1));
        return writer.finish(order, "{\"made\": \"by a test\"}");
    }
};

class MatrixFiles : public testing::Test {
  protected:
    test::TempDirectory directory_;
    std::string name_ = directory_.file("a.hmat");
    Context context_ = host_context();
    Workers workers_{2};
};

TEST_F(MatrixFiles, everything_written_is_read_back) {
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        const Made made(encoding);
        const FileHeader head = made.write(context_, workers_, name_, encoding);
        const MatrixFile file = MatrixFile::open(context_, workers_, name_);
        EXPECT_EQ(std::memcmp(&file.head(), &head, sizeof head), 0);
        EXPECT_EQ(head.unknowns, 40);
        EXPECT_EQ(head.leaves, 4);
        EXPECT_EQ(head.low_rank_leaves, 2);
        EXPECT_EQ(head.batches, 2);
        EXPECT_LT(head.sampled_error, 0) << "not sampled";
        EXPECT_EQ(file.tables().order, made.order);
        EXPECT_EQ(file.tables().about, "{\"made\": \"by a test\"}");
        EXPECT_EQ(static_cast<std::uint64_t>(head.file_bytes), std::filesystem::file_size(name_));

        const auto bytes = test::read_file(name_);
        std::size_t leaf = 0;
        for (const BatchRecord& batch : file.tables().batches) {
            EXPECT_EQ(batch.offset % kPage, 0);
            for (std::int64_t i = batch.first_leaf; i < batch.first_leaf + batch.leaves; ++i, ++leaf) {
                const LeafPlace& place = file.tables().leaves[i];
                EXPECT_TRUE(place.row == made.places[i].row && place.column == made.places[i].column);
                EXPECT_EQ(place.shape.low_rank, made.places[i].low_rank);
                EXPECT_EQ(place.shape.counts, made.leaves[i].shape.counts);
                for (int tier = 0; tier < file.tiers(); ++tier) {
                    const auto& right = made.leaves[i].tiers[tier];
                    ASSERT_EQ(tier_bytes(encoding, place.shape, tier), static_cast<std::int64_t>(right.size()));
                    const auto* at = bytes.data() + batch.offset + batch.tier_begin[tier] + place.tier_offset[tier];
                    EXPECT_EQ(right.empty() ? 0 : std::memcmp(at, right.data(), right.size()), 0) << i << " " << tier;
                }
            }
            for (int tier = 0; tier < file.tiers(); ++tier) {
                EXPECT_EQ(batch.tier_begin[tier] % kTierAlign, 0);
                const auto part = std::as_bytes(std::span(bytes)).subspan(batch.offset + batch.tier_begin[tier]);
                EXPECT_EQ(checksum(ChecksumKind::crc32, part.first(batch.tier_bytes[tier])), batch.checksums[tier]);
            }
        }
        EXPECT_EQ(leaf, 4u);
    }
}

TEST_F(MatrixFiles, what_lies_between_batches_is_zeros) {
    const Made made(Encoding::tiers);
    made.write(context_, workers_, name_, Encoding::tiers);
    const MatrixFile file = MatrixFile::open(context_, workers_, name_);
    auto bytes = test::read_file(name_);
    std::fill_n(bytes.begin(), sizeof(FileHeader), 0);
    for (const BatchRecord& batch : file.tables().batches) {
        for (int tier = 0; tier < file.tiers(); ++tier) {
            std::fill_n(bytes.begin() + batch.offset + batch.tier_begin[tier], batch.tier_bytes[tier], 0);
        }
    }
    for (std::int64_t i = 0; i < file.head().leaf_table_offset; ++i) ASSERT_EQ(bytes[i], 0) << i;
}

TEST_F(MatrixFiles, prefixes_and_the_tiers_for_an_accuracy) {
    Made(Encoding::tiers).write(context_, workers_, name_, Encoding::tiers);
    const MatrixFile file = MatrixFile::open(context_, workers_, name_);
    EXPECT_EQ(file.tiers_for(0.5), 1);
    EXPECT_EQ(file.tiers_for(1e-1), 1);
    EXPECT_EQ(file.tiers_for(0.09), 2);
    EXPECT_EQ(file.tiers_for(1e-2), 2);
    EXPECT_EQ(file.tiers_for(1e-4), 3);
    EXPECT_EQ(file.tiers_for(1e-9), 3) << "what it does not reach: all there is";
    EXPECT_EQ(file.tiers_for(0), 3);
    EXPECT_EQ(file.tiers_for(-1), 3);
    EXPECT_EQ(file.prefix_bytes(0, 0), 0);
    EXPECT_LT(file.prefix_bytes(1), file.prefix_bytes(2));
    EXPECT_EQ(file.prefix_bytes(0, 3), file.tables().batches[0].bytes);
    EXPECT_EQ(file.prefix_bytes(3), file.tables().batches[0].bytes + file.tables().batches[1].bytes);
    EXPECT_EQ(file.largest_batch(), std::max(file.tables().batches[0].bytes, file.tables().batches[1].bytes));
}

TEST_F(MatrixFiles, doubles_come_back_to_the_last_bit) {
    const Made made(Encoding::fp64);
    made.write(context_, workers_, name_, Encoding::fp64);
    const MatrixFile file = MatrixFile::open(context_, workers_, name_);
    const auto bytes = test::read_file(name_);
    const LeafPlace& place = file.tables().leaves[1];
    const BatchRecord& batch = file.tables().batches[1];
    std::vector<double> values(120);
    std::memcpy(values.data(), bytes.data() + batch.offset + batch.tier_begin[0] + place.tier_offset[0], 960);
    const auto u = random_vector(60, 2), v = random_vector(60, 3);
    EXPECT_TRUE(std::equal(v.begin(), v.end(), values.begin())) << "V first";
    EXPECT_TRUE(std::equal(u.begin(), u.end(), values.begin() + 60));
}

TEST_F(MatrixFiles, a_file_has_its_name_only_when_it_is_finished) {
    const Made made(Encoding::tiers);
    {
        FileHeader head{};
        head.encoding = 1;
        head.tiers = 3;
        MatrixWriter writer(context_, workers_, name_, head);
        writer.add(made.places, made.leaves);
        EXPECT_FALSE(std::filesystem::exists(name_));
    }
    EXPECT_EQ(directory_.entries(), 0u);
}

TEST_F(MatrixFiles, one_that_is_not_there_or_cannot_be_read_is_named) {
    const auto code = [&](const std::string& name) {
        try {
            MatrixFile::open(context_, workers_, name);
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
            return error.code();
        }
        return ErrorCode::ok;
    };
    EXPECT_EQ(code(directory_.file("absent.hmat")), ErrorCode::not_found);
    EXPECT_EQ(code(directory_.path()), ErrorCode::not_a_regular_file);
}

}  // namespace
}  // namespace penstock::hmatrix
