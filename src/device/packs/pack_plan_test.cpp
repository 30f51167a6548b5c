// Runs what a GPU does with packs on the CPU: plans, units and threads one after the other, compared with the
// reference. The arrays end where the packs end, so that the address sanitizer notices a thread that leaves them.
#include "device/packs/pack_plan.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/pack_reference.hpp"
#include "penstock/error.hpp"
#include "penstock/types.hpp"
#include "support/sanitized.hpp"

namespace penstock::device {
namespace {

using conformance::Bytes;
using conformance::PackTrial;
using conformance::ReferencePack;

// Does what a block does with each unit of its work.
struct PlayUnits {
    const PackWork& work;
    template <class From, class To>
    void run() const {
        for (std::uint64_t unit = 0; unit < units_of(work); ++unit) {
            switch (work.kind.piece) {
                case PackPiece::number: each_thread([&](unsigned i) { pack_unit<From, To, 1>(work, unit, i); }); break;
                case PackPiece::run: each_thread([&](unsigned i) { pack_unit<From, To, kRun>(work, unit, i); }); break;
                case PackPiece::tile: play_tile<From, To>(unit); break;
            }
        }
    }
    template <class From, class To>
    void play_tile(std::uint64_t unit) const {
        std::vector<To> shared(kTileRoom);
        each_thread([&](unsigned i) { load_tile<From, To>(work, unit, i, shared.data()); });
        each_thread([&](unsigned i) { store_tile<To>(work, unit, i, shared.data()); });
    }
    template <class Act>
    static void each_thread(const Act& act) {
        for (unsigned thread = 0; thread < kPackThreads; ++thread) act(thread);
    }
};

std::vector<PackWork> plans(std::span<const Pack> packs) {
    std::vector<PackWork> works;
    for (const Pack& pack : simplified(packs)) plan_pack(pack, works);
    return works;
}

void play(std::span<const Pack> packs) {
    for (const PackWork& work : plans(packs)) {
        with_numbers(work.kind.from, work.kind.to, PlayUnits{work});
    }
}

void expect_same(std::mt19937_64& random, const PackTrial& trial) {
    const conformance::PackSet set = random_packs(random, trial);
    Bytes expected = set.destination, got = set.destination;
    std::vector<Pack> placed;
    for (const ReferencePack& one : set.packs) {
        one.run(expected, set.source);
        placed.push_back(one.at(got.data(), set.source.data()));
    }
    play(placed);
    const auto differs = std::mismatch(got.begin(), got.end(), expected.begin());
    ASSERT_TRUE(differs.first == got.end())
        << testing::PrintToString(trial) << ": byte " << differs.first - got.begin();
}

TEST(PackPlan, threads_pack_what_the_reference_packs) {
    std::mt19937_64 random(31);
    for (const std::uint64_t alignment : {1u, 4u, 16u}) {
        for (const auto& [extent, dimensions, packs] :
             {std::tuple{4u, 6u, 4}, {9u, 4u, 4}, {70u, 2u, 3}, {3000u, 1u, 3}, {33u, 3u, 1}}) {
            conformance::each_conversion({.largest_extent = extent, .most_dimensions = dimensions,
                                          .alignment = alignment, .packs = test::some_of(packs)},
                                         [&](const PackTrial& trial) {
                                             if (!testing::Test::HasFatalFailure()) expect_same(random, trial);
                                         });
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

alignas(16) unsigned char to_memory[1 << 16];
alignas(16) unsigned char from_memory[1 << 16];

Pack matrix(std::uint64_t rows, std::uint64_t columns) {
    Pack pack{.destination = to_memory, .source = from_memory, .to = PackNumber::float32, .from = PackNumber::float64,
              .dimensions = 2};
    pack.extents = {rows, columns};
    pack.destination_strides = {static_cast<std::int64_t>(4 * columns), 4};
    pack.source_strides = {static_cast<std::int64_t>(8 * columns), 8};
    return pack;
}

std::vector<PackPiece> pieces(const Pack& pack) {
    std::vector<PackPiece> found;
    for (const PackWork& work : plans({&pack, 1})) found.push_back(work.kind.piece);
    return found;
}

TEST(PackPlan, aligned_rows_move_in_runs_and_their_ends_as_numbers) {
    using enum PackPiece;
    Pack pack = matrix(8, 64);
    EXPECT_EQ(pieces(pack), std::vector{run}) << "contiguous on both sides";
    pack.extents[1] = 60;
    EXPECT_EQ(pieces(pack), std::vector{run}) << "rows cut out of rows";
    pack.extents[1] = 63;
    EXPECT_EQ(pieces(pack), std::vector{number}) << "short rows with ends";
    pack = matrix(8, 128);
    pack.extents[1] = 127;
    EXPECT_EQ(pieces(pack), (std::vector{run, number}));
    pack.source = from_memory + 8;
    EXPECT_EQ(pieces(pack), std::vector{number}) << "the source is not aligned";
    pack.extents = {};
    EXPECT_TRUE(pieces(pack).empty());
}

TEST(PackPlan, a_transposition_moves_in_tiles_that_fit_its_shape) {
    const auto edges = [](std::uint64_t rows, std::uint64_t columns) {
        Pack pack = matrix(rows, columns);
        pack.source_strides = {8, static_cast<std::int64_t>(8 * rows)};
        const std::vector<PackWork> works = plans({&pack, 1});
        EXPECT_EQ(works.size(), 1u);
        EXPECT_EQ(works[0].kind.piece, PackPiece::tile);
        EXPECT_LE((1u << works[0].tile.across_bits) * unsigned{works[0].tile.pitch}, kTileRoom);
        return std::pair(1u << works[0].tile.along_bits, 1u << works[0].tile.across_bits);
    };
    EXPECT_EQ(edges(50, 40), std::pair(32u, 32u));
    EXPECT_EQ(edges(3, 1000), std::pair(256u, 4u)) << "x, y, z of particles, taken apart";
    EXPECT_EQ(edges(1000, 3), std::pair(4u, 256u)) << "and put together";
    EXPECT_EQ(edges(2, 2), std::pair(512u, 2u));
}

TEST(PackPlan, dimensions_merge_where_both_sides_continue) {
    Pack pack = matrix(8, 64);
    EXPECT_EQ(simplified({&pack, 1})[0].dimensions, 1u);
    pack.source_strides = {-512, 8};
    EXPECT_EQ(simplified({&pack, 1})[0].dimensions, 2u);
    pack = {.destination = to_memory, .source = from_memory, .dimensions = 6};
    EXPECT_TRUE(simplified({&pack, 1}).empty()) << "extents of 0";
    pack.extents = {1, 1, 1, 1, 1, 1};
    EXPECT_EQ(simplified({&pack, 1})[0].dimensions, 0u);
}

TEST(PackPlan, a_huge_pack_is_cut_into_units_of_like_size) {
    Pack pack = matrix(1u << 20, 1u << 20);
    EXPECT_EQ(units_of(plans({&pack, 1})[0]), (1ull << 40) / (kRun * kPiecesPerUnit * kPackWarps));
    pack.source_strides = {8, 8 << 20};
    EXPECT_EQ(units_of(plans({&pack, 1})[0]), (1ull << 40) / kTileNumbers);
}

std::string refusal(const Pack& pack) {
    const Pack packs[] = {matrix(2, 2), pack};
    try {
        static_cast<void>(simplified(packs));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        return error.what();
    }
    return "accepted";
}

TEST(PackPlan, what_makes_no_sense_is_refused_with_its_reason) {
    const auto refused = [](const std::string& words, auto change) {
        Pack pack = matrix(4, 4);
        change(pack);
        EXPECT_NE(refusal(pack).find(words), std::string::npos) << words << ": " << refusal(pack);
    };
    EXPECT_EQ(refusal(matrix(4, 4)), "accepted");
    refused("pack 1: 7 dimensions", [](Pack& pack) { pack.dimensions = 7; });
    refused("do not become integers", [](Pack& pack) { pack.to = PackNumber::int32; });
    refused("narrower", [](Pack& pack) { pack.from = PackNumber::int64, pack.to = PackNumber::int32; });
    refused("an unknown kind of numbers", [](Pack& pack) { pack.to = static_cast<PackNumber>(4); });
    refused("an unknown kind of numbers", [](Pack& pack) { pack.from = static_cast<PackNumber>(200); });
    refused("an unknown operation", [](Pack& pack) { pack.operation = static_cast<PackOperation>(4); });
    refused("a divisor of 0", [](Pack& pack) { pack.divisor = 0; });
    refused("a divisor of nan", [](Pack& pack) { pack.divisor = std::numeric_limits<double>::quiet_NaN(); });
    refused("a divisor of inf", [](Pack& pack) { pack.divisor = std::numeric_limits<double>::infinity(); });
    refused("integers are not divided", [](Pack& pack) {
        pack.from = pack.to = PackNumber::int32;
        pack.divisor = 2;
    });
    refused("byte order", [](Pack& pack) { pack.swap = true, pack.operation = PackOperation::add; });
    refused("bits are dropped", [](Pack& pack) { pack.keep_bits = 3, pack.operation = PackOperation::maximum; });
    refused("24 bits of a mantissa of 23", [](Pack& pack) { pack.keep_bits = 24; });
    refused("of a mantissa of 0", [](Pack& pack) {
        pack.from = pack.to = PackNumber::int64;
        pack.keep_bits = 1;
    });
    refused("destination items overlap", [](Pack& pack) { pack.destination_strides[1] = 0; });
    refused("destination items overlap", [](Pack& pack) { pack.destination_strides[1] = 3; });
    refused("leave the address space", [](Pack& pack) { pack.source_strides[1] = 1ll << 62; });
    refused("the destination is null", [](Pack& pack) { pack.destination = nullptr; });
    refused("the source is null", [](Pack& pack) { pack.source = nullptr; });
}

}  // namespace
}  // namespace penstock::device
