// A tile of digits while it is built: the data that it needs from the file, before the places in shared memory are
// known.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/gpu/digits/digit_plan.hpp"

namespace penstock::hmatrix::gpu {

// A word in a tier of the batch.
struct DigitSource {
    int tier = 0;
    std::uint32_t word = 0;
};

class DigitDraft {
  public:
    // Requests words of a tier. The words and scales that column() and block() name must be among them.
    void need(DigitSource first, std::uint32_t words);
    // Requests `count` numbers of x (right tiles: of t) from `first` on. Returns the index of their leaf.
    int x(std::int64_t first, int count);
    // Adds `count` numbers of t to the tile. Returns the index of the first.
    int t(int count);

    struct ColumnDraft {
        DigitSource digits;  // right: column of U; otherwise column of V
        DigitSource u;       // kind leaves: column of U
        DigitSource scale;
        int digit;
        int leaf;
        int t;  // index as t() returns it; right: relative to the leaf's first
    };
    void column(const ColumnDraft& column);
    struct BlockDraft {
        DigitSource digits;
        DigitSource scale;
        int columns;
        int digit;
        int leaf;
        int x;  // relative to the leaf's first x
    };
    void block(const BlockDraft& block);

    int leaves() const noexcept { return static_cast<int>(x_.size()); }
    int room() const noexcept { return words_; }  // words of shared memory, at most
    // Upper bounds for the room of one more row, run or range of x. Callers check them before they add.
    static constexpr int kRowRoom = 2;
    static constexpr int kRunRoom = room_of_digits(kRowRoom);
    static constexpr int room_of_x(int count) { return kRowRoom + (count + kDigitRows - 1) / kDigitRows * kDigitRows; }

    // Builds the tile and appends its rows to the table. `first_row`: index of these rows in the batch's table. `row`
    // and `rows`: as in DigitTile.
    struct Head {
        TileKind kind;
        std::int64_t row;
        std::int32_t rows;
        std::int64_t first_row;
    };
    DigitTile finish(const Head& head, std::vector<std::uint64_t>& table);

  private:
    struct TierWords {
        DigitSource first;
        std::uint32_t words;
        std::uint32_t place;
    };
    struct X {
        std::uint32_t first;
        int count;
        std::uint32_t place;
    };
    void join_runs();
    void find_places();
    std::uint64_t row_of(const ColumnDraft& column, TileKind kind) const;
    std::uint64_t row_of(const BlockDraft& block) const;
    std::uint32_t place_of(DigitSource source) const;

    std::vector<TierWords> extents_;
    std::vector<ColumnDraft> columns_;
    std::vector<BlockDraft> blocks_;
    std::vector<X> x_;
    int t_count_ = 0;
    std::uint32_t t_place_ = 0;
    std::uint32_t ends_[kMaxTiers] = {};  // end of the last extent of each tier
    int words_ = 2 * kDigitRows;          // words lost to alignment before the first x and the first run
};

}  // namespace penstock::hmatrix::gpu
