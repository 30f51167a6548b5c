// The cutter over every small geometry: chunks cover the request once, in order, aligned, inside their slots.
#include "engine/jobs/cutter.hpp"

#include <gtest/gtest.h>

#include <random>

namespace penstock::engine {
namespace {

struct Case {
    std::vector<RequestRange> ranges;
    std::vector<PlanPiece> pieces;
};

// No test moves bytes there. It is not null, because adding to null is undefined.
constexpr std::uint64_t kAddress = 1 << 30;

// Ranges laid end to end in memory; pieces cover each range wholly.
Case make_case(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& extents) {
    Case made;
    std::uint64_t position = 0;
    for (const auto& [offset, bytes] : extents) {
        made.pieces.push_back({made.ranges.size(), 0, bytes});
        made.ranges.push_back({nullptr, offset, reinterpret_cast<std::byte*>(kAddress + position), bytes, position});
        position += bytes;
    }
    return made;
}

// Empty when the law of cutter.hpp holds, else what broke.
std::string broken_law(const Case& given, const CutRules& rules, const std::vector<Chunk>& chunks) {
    std::uint64_t position = 0;
    std::size_t range = 0;
    std::uint64_t within = 0;
    for (const Chunk& chunk : chunks) {
        std::uint64_t used = 0;
        std::uint64_t bytes = 0;
        for (const Piece& piece : chunk.pieces) {
            while (range < given.ranges.size() && within == given.ranges[range].bytes) ++range, within = 0;
            if (range == given.ranges.size()) return "more than was asked";
            if (piece.position != position) return "a hole or an overlap in the request";
            if (piece.offset_bytes != given.ranges[range].offset_bytes + within) return "wrong file offset";
            if (piece.memory != given.ranges[range].memory + within) return "wrong memory";
            if (piece.operation_offset > piece.offset_bytes) return "operation starts late";
            if (piece.operation_offset + piece.operation_bytes < piece.offset_bytes + piece.bytes) return "ends early";
            if (piece.operation_offset % rules.alignment || piece.operation_bytes % rules.alignment) return "unaligned";
            if (piece.slot_offset % rules.alignment) return "unaligned in the slot";
            if (piece.slot_offset < used) return "operations overlap in the slot";
            used = piece.slot_offset + piece.operation_bytes;
            if (used > rules.chunk_bytes) return "outside the slot";
            position += piece.bytes;
            within += piece.bytes;
            bytes += piece.bytes;
        }
        if (chunk.pieces.size() > rules.pieces_max) return "too many pieces";
        if (bytes == 0) return "empty chunk";
    }
    std::uint64_t total = 0;
    for (const PlanPiece& piece : given.pieces) total += piece.bytes;
    return position == total ? "" : "not all was covered";
}

std::vector<Chunk> cut(const Case& given, const CutRules& rules) {
    Cutter cutter(given.ranges, given.pieces, rules);
    std::vector<Chunk> chunks;
    for (Chunk chunk; cutter.next(chunk);) chunks.push_back(chunk);
    EXPECT_TRUE(cutter.empty());
    return chunks;
}

TEST(Cutter, every_offset_and_length_up_to_three_blocks_at_every_alignment) {
    for (std::uint64_t alignment : {1, 2, 4, 8}) {
        for (std::uint64_t chunk_bytes : {8, 16, 24}) {
            const CutRules rules{.chunk_bytes = chunk_bytes, .alignment = alignment};
            for (std::uint64_t offset = 0; offset < 25; ++offset) {
                for (std::uint64_t bytes = 0; bytes < 70; ++bytes) {
                    const Case given = make_case({{offset, bytes}});
                    ASSERT_EQ(broken_law(given, rules, cut(given, rules)), "")
                        << alignment << " " << chunk_bytes << " " << offset << " " << bytes;
                }
            }
        }
    }
}

TEST(Cutter, random_ranges_pack_without_breaking_the_law) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;
        for (std::uint64_t i = 0, n = random() % 12; i < n; ++i) extents.emplace_back(random() % 5000, random() % 3000);
        const std::uint64_t alignment = std::uint64_t{1} << (random() % 10);
        const CutRules rules{.chunk_bytes = align_up(512 + random() % 4096, alignment),
                             .alignment = alignment,
                             .pieces_max = static_cast<std::uint32_t>(1 + random() % 5),
                             .pack = random() % 2 == 0};
        const Case given = make_case(extents);
        ASSERT_EQ(broken_law(given, rules, cut(given, rules)), "") << "round " << round;
    }
}

TEST(Cutter, small_pieces_share_a_chunk) {
    const Case given = make_case({{0, 100}, {5000, 100}, {9000, 100}});
    EXPECT_EQ(cut(given, {.chunk_bytes = 4096}).size(), 1u);
    EXPECT_EQ(cut(given, {.chunk_bytes = 4096, .pack = false}).size(), 3u);
}

TEST(Cutter, the_law_checker_sees_a_broken_cut) {  // negative control
    const Case given = make_case({{0, 10000}});
    const CutRules rules{.chunk_bytes = 4096, .alignment = 512};
    auto chunks = cut(given, rules);
    auto hole = chunks;
    hole.erase(hole.begin() + 1);
    EXPECT_NE(broken_law(given, rules, hole), "");
    auto moved = chunks;
    moved[0].pieces[0].memory += 1;
    EXPECT_NE(broken_law(given, rules, moved), "");
    auto unaligned = chunks;
    unaligned[0].pieces[0].operation_bytes += 1;
    EXPECT_NE(broken_law(given, rules, unaligned), "");
}

}  // namespace
}  // namespace penstock::engine
