// Assigns places in shared memory to the data of a tile of digits, and makes the table rows that name them.
#include "hmatrix/gpu/digits/draft.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace penstock::hmatrix::gpu {
namespace {

bool before(DigitSource a, DigitSource b) { return std::tuple(a.tier, a.word) < std::tuple(b.tier, b.word); }

template <class Row>
std::uint64_t bits(const Row& row) {
    return std::bit_cast<std::uint64_t>(row);
}

std::uint32_t up_to_four(std::uint32_t words) { return (words + 3) & ~std::uint32_t{3}; }

// Sorts rows by tier. counts[t] is the number of rows for tiers 0 to t.
template <class Row>
void sort_by_tier(std::vector<Row>& rows, std::uint16_t (&counts)[kMaxTiers]) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.digits.tier < b.digits.tier; });
    for (const Row& row : rows) ++counts[row.digits.tier];
    for (int tier = 1; tier < kMaxTiers; ++tier) counts[tier] += counts[tier - 1];
}

}  // namespace

void DigitDraft::need(DigitSource first, std::uint32_t words) {
    const bool follows = !extents_.empty() && ends_[first.tier] == first.word && first.word > 0;
    words_ += static_cast<int>(words) + (follows ? 0 : kRunRoom);
    ends_[first.tier] = first.word + words;
    extents_.push_back({first, words, 0});
}

int DigitDraft::x(std::int64_t first, int count) {
    words_ += room_of_x(count);
    x_.push_back({static_cast<std::uint32_t>(first), count, 0});
    return leaves() - 1;
}

int DigitDraft::t(int count) {
    words_ += count;
    t_count_ += count;
    return t_count_ - count;
}

void DigitDraft::column(const ColumnDraft& column) {
    words_ += kRowRoom;
    columns_.push_back(column);
}

void DigitDraft::block(const BlockDraft& block) {
    words_ += kRowRoom;
    blocks_.push_back(block);
}

void DigitDraft::join_runs() {
    std::sort(extents_.begin(), extents_.end(),
              [](const TierWords& a, const TierWords& b) { return before(a.first, b.first); });
    std::size_t runs = 0;
    for (const TierWords& extent : extents_) {
        TierWords* const last = runs > 0 ? &extents_[runs - 1] : nullptr;
        if (last != nullptr && last->first.tier == extent.first.tier &&
            last->first.word + last->words == extent.first.word) {
            last->words += extent.words;
        } else {
            extents_[runs++] = extent;
        }
    }
    extents_.resize(runs);
}

void DigitDraft::find_places() {
    const auto rows = static_cast<std::uint32_t>(columns_.size() + blocks_.size() + x_.size() + extents_.size());
    std::uint32_t at = up_to_four(kRowRoom * rows);
    for (X& one : x_) {
        one.place = at;
        at += up_to_four(static_cast<std::uint32_t>(one.count));
    }
    t_place_ = at;
    at += static_cast<std::uint32_t>(t_count_);
    for (TierWords& run : extents_) {
        run.place = up_to_four(at) + (run.first.word & 3);
        at = run.place + run.words;
    }
}

std::uint32_t DigitDraft::place_of(DigitSource source) const {
    const auto starts_later = [](DigitSource wanted, const TierWords& run) { return before(wanted, run.first); };
    const auto behind = std::upper_bound(extents_.begin(), extents_.end(), source, starts_later);
    const TierWords& run = *(behind - 1);
    return run.place + (source.word - run.first.word);
}

std::uint64_t DigitDraft::row_of(const ColumnDraft& column, TileKind kind) const {
    const bool v = kind != TileKind::right, u = kind != TileKind::left;
    const auto t = static_cast<std::uint32_t>(column.t);
    DigitColumn row{};
    if (v) row.v = place_of(column.digits) & kPlaces;
    if (v) row.scale = place_of(column.scale) & kPlaces;
    if (u) row.u = place_of(v ? column.u : column.digits) & kPlaces;
    row.t = ((v ? t_place_ : x_[column.leaf].place) + t) & kPlaces;
    row.leaf = static_cast<std::uint8_t>(column.leaf);
    row.digit = static_cast<std::uint8_t>(column.digit);
    return bits(row);
}

std::uint64_t DigitDraft::row_of(const BlockDraft& block) const {
    DigitBlock row{};
    row.place = place_of(block.digits) & kPlaces;
    row.columns = static_cast<std::uint32_t>(block.columns) & kPlaces;
    row.digit = static_cast<std::uint8_t>(block.digit);
    row.x = (x_[block.leaf].place + static_cast<std::uint32_t>(block.x)) & kPlaces;
    row.scale = place_of(block.scale) & kPlaces;
    return bits(row);
}

DigitTile DigitDraft::finish(const Head& head, std::vector<std::uint64_t>& table) {
    DigitTile made{};
    made.row = head.row;
    made.rows = head.rows;
    made.kind = head.kind;
    made.table = static_cast<std::uint32_t>(head.first_row);
    sort_by_tier(columns_, made.columns);
    sort_by_tier(blocks_, made.blocks);
    join_runs();
    find_places();
    for (const ColumnDraft& one : columns_) {
        table.push_back(row_of(one, head.kind));
        const int words = (x_[one.leaf].count + kDigitRows - 1) / kDigitRows;
        made.words = std::max(made.words, static_cast<std::uint16_t>(words));
    }
    for (const BlockDraft& one : blocks_) table.push_back(row_of(one));
    for (const X& one : x_) {
        table.push_back(bits(DigitLeaf{one.first, static_cast<std::uint16_t>(one.count),
                                       static_cast<std::uint16_t>(one.place)}));
    }
    for (const TierWords& run : extents_) {
        table.push_back(bits(DigitRun{run.first.word, run.place & kPlaces, run.words & kPlaces,
                                      static_cast<std::uint8_t>(run.first.tier)}));
        for (int tier = run.first.tier; tier < kMaxTiers; ++tier) ++made.runs[tier];
    }
    made.leaves = static_cast<std::uint16_t>(x_.size());
    made.t = static_cast<std::uint16_t>(t_place_);
    made.t_count = static_cast<std::uint16_t>(t_count_);
    return made;
}

}  // namespace penstock::hmatrix::gpu
