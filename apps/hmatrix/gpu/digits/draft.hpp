// A tile of digits in the making: what it needs of the file, before it is known where that will lie in shared memory.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/gpu/digits/digit_plan.hpp"

namespace penstock::hmatrix::gpu {

// A word of a tier of the batch.
struct DigitSource {
    int tier = 0;
    std::uint32_t word = 0;
};

class DigitDraft {
  public:
    // Words of a tier that are copied; column(), block() and their scales lie in them.
    void need(DigitSource first, std::uint32_t words);
    // Numbers of x (right tiles: of t) from `first` on; returns its leaf's number.
    int x(std::int64_t first, int count);
    // Numbers of t; returns the first one's.
    int t(int count);

    struct Column {
        DigitSource digits;  // right: of U; else of V
        DigitSource u;       // leaves: of U
        DigitSource scale;
        int digit;
        int leaf;
        int t;  // as t() counts; right: of the leaf's
    };
    void column(const Column& column);
    struct Block {
        DigitSource digits;
        DigitSource scale;
        int columns;
        int digit;
        int leaf;
        int x;  // of the leaf's
    };
    void block(const Block& block);

    int leaves() const noexcept { return static_cast<int>(x_.size()); }
    int room() const noexcept { return words_; }  // in shared memory, at most
    // What one more costs at most, for those who ask before they add.
    static constexpr int kRowRoom = 2;
    static constexpr int kRunRoom = room_of_digits(kRowRoom);
    static constexpr int room_of_x(int count) { return kRowRoom + (count + kDigitRows - 1) / kDigitRows * kDigitRows; }

    // The tile and its rows of the table, which begin `first_row` rows behind their batch's first. `row` and `rows` are
    // those of DigitTile.
    struct Head {
        TileKind kind;
        std::int64_t row;
        std::int32_t rows;
        std::int64_t first_row;
    };
    DigitTile finish(const Head& head, std::vector<std::uint64_t>& table);

  private:
    struct Extent {
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
    std::uint64_t row_of(const Column& column, TileKind kind) const;
    std::uint64_t row_of(const Block& block) const;
    std::uint32_t place_of(DigitSource source) const;

    std::vector<Extent> extents_;
    std::vector<Column> columns_;
    std::vector<Block> blocks_;
    std::vector<X> x_;
    int t_count_ = 0;
    std::uint32_t t_place_ = 0;
    std::uint32_t ends_[kMaxTiers] = {};  // of the last extent of each tier
    int words_ = 2 * kDigitRows;          // what is lost before the first x and the first run
};

}  // namespace penstock::hmatrix::gpu
