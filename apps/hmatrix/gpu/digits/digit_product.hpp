// The product of a tile of digits with a vector, computed by a team of one warp. Host and GPU compile this one source.
//
// The team first copies everything that a tile reads to shared memory, with all copies under way at once. It then
// computes t = scale V^T x for low-rank leaves. Groups of lanes share a column, and as many columns as there are groups
// are processed at a time. In the sum, each lane has four rows of the result. If a tile has few rows, several lanes
// have the same rows; they share the columns, and their sums are added at the end.
#pragma once

#include <cstring>

#include "hmatrix/gpu/digits/digit_tile.hpp"
#include "hmatrix/gpu/team.hpp"

namespace penstock::hmatrix::gpu {

template <class To, class From>
PENSTOCK_BOTH To same_bits(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// The weight 256^-digit, built from its bits.
PENSTOCK_BOTH float digit_weight(std::uint32_t digit) { return same_bits<float>((127u - 8u * digit) << 23); }

// sums[i] += factors[i] * signed byte i of the word. On a GPU, flipping the sign bit makes a byte an unsigned number.
// With the exponent of 2^23 in front, its bits are a float, and no conversion is needed.
PENSTOCK_BOTH void add_digits(std::uint32_t word, const float (&factors)[kDigitRows], float (&sums)[kDigitRows]) {
#if defined(__CUDA_ARCH__)
    constexpr unsigned kExponent = 0x4b000000u;
    constexpr float kBias = 8388736.0f;
    const unsigned biased = word ^ 0x80808080u;
    sums[0] += factors[0] * (__uint_as_float(__byte_perm(biased, kExponent, 0x7440)) - kBias);
    sums[1] += factors[1] * (__uint_as_float(__byte_perm(biased, kExponent, 0x7441)) - kBias);
    sums[2] += factors[2] * (__uint_as_float(__byte_perm(biased, kExponent, 0x7442)) - kBias);
    sums[3] += factors[3] * (__uint_as_float(__byte_perm(biased, kExponent, 0x7443)) - kBias);
#else
    for (int i = 0; i < kDigitRows; ++i) {
        sums[i] += factors[i] * static_cast<float>(static_cast<std::int8_t>(word >> (8 * i)));
    }
#endif
}

template <class Team>
class DigitTeam {
  public:
    // Requires: `shared` has room for kDigitWords words and is aligned to 16 bytes.
    PENSTOCK_BOTH DigitTeam(Team team, const DigitBatch& batch, std::uint64_t* shared)
        : team_(team),
          batch_(batch),
          rows_(shared),
          words_(reinterpret_cast<std::uint32_t*>(shared)),
          numbers_(reinterpret_cast<float*>(shared)) {}

    PENSTOCK_BOTH void run(const DigitTile& tile, const TileVectors<float>& vectors) {
        const int used = batch_.tiers_used - 1;
        const RowCounts there{tile.columns[used], tile.blocks[used], tile.runs[used]};
        if (there.runs == 0) return;
        const bool right = tile.kind == TileKind::right;
        bring(tile, there, right ? vectors.t : vectors.x);
        if (there.columns > 0 && !right) {
            dots(tile, there.columns);
            team_.sync();
        }
        if (tile.kind == TileKind::left) {
            for (int i = team_.lane(); i < tile.rows; i += team_.lanes()) {
                team_.add(vectors.t + tile.row + i, numbers_[tile.t + i]);
            }
            return;
        }
        weigh(there.columns);
        team_.sync();
        add_rows(tile, there, vectors.y + tile.row);
    }

  private:
    struct RowCounts {  // rows of the table for the tiers in use
        int columns, blocks, runs;
    };

    template <class Row>
    PENSTOCK_BOTH Row row(int place) const {
        return same_bits<Row>(rows_[place]);
    }
    PENSTOCK_BOTH static int first_block(const DigitTile& tile) { return tile.columns[kMaxTiers - 1]; }
    PENSTOCK_BOTH static int first_leaf(const DigitTile& tile) {
        return first_block(tile) + tile.blocks[kMaxTiers - 1];
    }
    PENSTOCK_BOTH static int first_run(const DigitTile& tile) { return first_leaf(tile) + tile.leaves; }

    PENSTOCK_BOTH void bring(const DigitTile& tile, const RowCounts& there, const float* x) {
        const int runs = first_run(tile), leaves = first_leaf(tile);
        const std::uint64_t* const table = batch_.table + tile.table;
        for (int i = team_.lane(); i < runs + there.runs; i += team_.lanes()) team_.copy(rows_ + i, table + i);
        team_.copied();
        team_.bring(there.runs, [&](int i) {
            const auto run = row<DigitRun>(runs + i);
            return Run<std::uint32_t>{words_ + run.place, batch_.tiers[run.tier] + run.first,
                                      static_cast<int>(run.words)};
        });
        for (int i = 0; i < tile.leaves; ++i) {
            const auto leaf = row<DigitLeaf>(leaves + i);
            const int count = leaf.count, padded = (count + kDigitRows - 1) / kDigitRows * kDigitRows;
            float* const to = numbers_ + leaf.place;
            for (int k = team_.lane(); k < count; k += team_.lanes()) team_.copy(to + k, x + leaf.first + k);
            for (int k = count + team_.lane(); k < padded; k += team_.lanes()) to[k] = 0;
        }
        for (int i = team_.lane(); i < tile.t_count; i += team_.lanes()) numbers_[tile.t + i] = 0;
        team_.arrived();
    }

    // Adds scale * weight * (column of V . x) to the column's t, for each column.
    PENSTOCK_BOTH void dots(const DigitTile& tile, int columns) {
        constexpr int kWordsOfLane = 16;
        int group = power_of_two((tile.words + kWordsOfLane - 1) / kWordsOfLane, team_.lanes());
        while (2 * group * columns <= team_.lanes()) group *= 2;
        const int together = team_.lanes() / group, lane = team_.lane() & (group - 1);
        for (int i = team_.lane() / group, round = 0; round < columns; round += together, i += together) {
            float sum = 0;
            DigitColumn column{};
            if (i < columns) {
                column = row<DigitColumn>(i);
                sum = dot(column, row<DigitLeaf>(first_leaf(tile) + column.leaf), {lane, group});
            }
            sum = team_.sum(sum, group);
            if (lane == 0 && i < columns) {
                const float scale = same_bits<float>(words_[column.scale]);
                team_.add(numbers_ + column.t, scale * digit_weight(column.digit) * sum);
            }
        }
    }

    struct Share {
        int number, of;
    };
    PENSTOCK_BOTH float dot(const DigitColumn& column, const DigitLeaf& leaf, const Share& share) const {
        const int words = (static_cast<int>(leaf.count) + kDigitRows - 1) / kDigitRows;
        const std::uint32_t* const from = words_ + column.v;
        const float* const x = numbers_ + leaf.place;
        float sums[kDigitRows] = {};
        for (int word = share.number; word < words; word += share.of) {
            float four[kDigitRows];
            load_four(x + word * kDigitRows, four);
            add_digits(from[word], four, sums);
        }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    PENSTOCK_BOTH static void load_four(const float* from, float (&to)[kDigitRows]) {
#if defined(__CUDA_ARCH__)
        const float4 all = *reinterpret_cast<const float4*>(from);
        to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
#else
        for (int i = 0; i < kDigitRows; ++i) to[i] = from[i];
#endif
    }

    // The product with U needs only the factor of each column. Replaces each column's row of the table by its place and
    // factor.
    PENSTOCK_BOTH void weigh(int columns) {
        for (int i = team_.lane(); i < columns; i += team_.lanes()) {
            const auto column = row<DigitColumn>(i);
            const WeighedColumn weighed{column.u, digit_weight(column.digit) * numbers_[column.t]};
            rows_[i] = same_bits<std::uint64_t>(weighed);
        }
    }

    // The rows of a lane. `across` neighbouring lanes have neighbouring words of rows, and `groups` such sets of lanes
    // share the columns.
    struct LaneRows {
        int across, groups, group, word;
    };

    PENSTOCK_BOTH void add_rows(const DigitTile& tile, const RowCounts& there, double* y) {
        const int words = (tile.rows + kDigitRows - 1) / kDigitRows;
        const int across = words < team_.lanes() ? words : team_.lanes();
        const int group = team_.lane() / across;
        LaneRows place{across, team_.lanes() / across, group, team_.lane() - group * across};
        for (; place.word < words; place.word += across) {
            float sums[kDigitRows] = {};
            if (place.group < place.groups) {
                add_columns(there.columns, place, sums);
                add_blocks(tile, there.blocks, place, sums);
            }
            if (place.groups > 1) {  // then one pass covers all words
                add_together(tile.rows, place, sums, y);
                continue;
            }
            for (int i = 0; i < kDigitRows; ++i) {
                const int at = place.word * kDigitRows + i;
                if (at < tile.rows) team_.add(y + at, static_cast<double>(sums[i]));
            }
        }
    }

    PENSTOCK_BOTH void add_columns(int columns, const LaneRows& place, float (&sums)[kDigitRows]) const {
        const std::uint32_t* const from = words_ + place.word;
        for (int i = place.group; i < columns; i += place.groups) {
            const auto column = row<WeighedColumn>(i);
            const float factors[kDigitRows] = {column.factor, column.factor, column.factor, column.factor};
            add_digits(from[column.u], factors, sums);
        }
    }

    PENSTOCK_BOTH void add_blocks(const DigitTile& tile, int blocks, const LaneRows& place,
                                  float (&sums)[kDigitRows]) const {
        const int words = (tile.rows + kDigitRows - 1) / kDigitRows;
        for (int b = 0; b < blocks; ++b) {
            const auto block = row<DigitBlock>(first_block(tile) + b);
            const float weight = digit_weight(block.digit) * same_bits<float>(words_[block.scale]);
            const std::uint32_t* const from = words_ + block.place + place.word;
            const float* const x = numbers_ + block.x;
            for (int j = place.group; j < static_cast<int>(block.columns); j += place.groups) {
                const float factor = weight * x[j];
                const float factors[kDigitRows] = {factor, factor, factor, factor};
                add_digits(from[j * words], factors, sums);
            }
        }
    }

    // Adds the sums of all groups. They overwrite the table, which no lane reads after the sync.
    PENSTOCK_BOTH void add_together(int rows, const LaneRows& place, const float (&sums)[kDigitRows], double* y) {
        team_.sync();
        for (int i = 0; i < kDigitRows; ++i) numbers_[team_.lane() * kDigitRows + i] = sums[i];
        team_.sync();
        for (int at = team_.lane(); at < rows; at += team_.lanes()) {
            float sum = 0;
            for (int i = 0; i < place.groups; ++i) sum += numbers_[i * place.across * kDigitRows + at];
            team_.add(y + at, static_cast<double>(sum));
        }
    }

    Team team_;
    const DigitBatch& batch_;
    std::uint64_t* rows_;
    std::uint32_t* words_;
    float* numbers_;
};

// Requires: `shared` is aligned to 16 bytes.
template <class Team>
PENSTOCK_BOTH DigitTeam<Team> tile_team(Team team, const DigitBatch& batch, std::uint64_t* shared) {
    return DigitTeam<Team>(team, batch, shared);
}

}  // namespace penstock::hmatrix::gpu
