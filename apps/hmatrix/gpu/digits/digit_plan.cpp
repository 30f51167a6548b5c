// Cuts large leaves of digits into tiles, and joins small leaves.
#include "hmatrix/gpu/digits/digit_plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "hmatrix/gpu/digits/draft.hpp"

namespace penstock::hmatrix::gpu {
namespace {

// Fewest words of a column in a part, if the column is that long: shorter parts need too many copies.
constexpr int kPartWords = 96;

int words_of(std::int64_t rows) { return static_cast<int>((rows + kDigitRows - 1) / kDigitRows); }

struct LeafInTiers {
    std::int64_t row, rows, column;
    const LeafShape* shape;
    std::uint32_t first[kMaxTiers];  // first word of each tier in the batch
    std::uint32_t words[kMaxTiers];

    int digits(int vector) const noexcept {
        const DigitCounts& have = shape->counts[kMaxTiers - 1];
        return static_cast<int>(std::count_if(have.begin(), have.end(), [&](int count) { return count > vector; }));
    }
    int rank() const noexcept { return shape->counts[kMaxTiers - 1][0]; }
    int all_digits() const noexcept {  // sum over all vectors
        const DigitCounts& have = shape->counts[kMaxTiers - 1];
        return std::accumulate(have.begin(), have.end(), 0);
    }
    // Words of shared memory that the leaf takes in a joined tile.
    std::int64_t room() const noexcept {
        std::int64_t sum = DigitDraft::room_of_x(static_cast<int>(shape->columns)) + (shape->low_rank ? rank() : 0);
        for (const int count : shape->counts[kMaxTiers - 1]) sum += DigitDraft::kRowRoom * count;
        for (const std::uint32_t tier : words) sum += tier > 0 ? tier + DigitDraft::kRunRoom : 0;
        return sum;
    }
};

// The columns of one digit that one tier adds: `count` columns of V and then as many of U, or those of a dense leaf.
struct DigitWords {
    DigitSource first;
    int digit;
    // First vector; if digit is 0, the scales of all `count` vectors are in the words directly before `first`.
    int begin;
    int count;
};

template <class Visit>
void each_digit_of_tier(const LeafInTiers& leaf, const Visit& visit) {
    const LeafShape& shape = *leaf.shape;
    const int u = words_of(shape.rows), words = shape.low_rank ? u + words_of(shape.columns)
                                                               : u * static_cast<int>(shape.columns);
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        if (leaf.words[tier] == 0) continue;
        std::uint32_t at = leaf.first[tier] + shape.counts[tier][0] - static_cast<std::uint32_t>(shape.before(tier, 0));
        for (int digit = 0; digit < kDigits; ++digit) {
            const auto before = static_cast<int>(shape.before(tier, digit));
            const int count = shape.counts[tier][digit] - before;
            if (count > 0) visit(DigitWords{{tier, at}, digit, before, count});
            at += static_cast<std::uint32_t>(count) * words;
        }
    }
}

// The word of the scale of each vector, or of a dense leaf's one scale.
std::vector<DigitSource> scales_of(const LeafInTiers& leaf) {
    std::vector<DigitSource> scales(leaf.rank());
    each_digit_of_tier(leaf, [&](const DigitWords& piece) {
        for (int i = 0; i < piece.count && piece.digit == 0; ++i) {
            const auto words_before = static_cast<std::uint32_t>(piece.count - i);
            scales[piece.begin + i] = {piece.first.tier, piece.first.word - words_before};
        }
    });
    return scales;
}

struct IndexRange {
    int begin, end;
    int size() const noexcept { return end - begin; }
};

// Divides [0, all) into the fewest parts of at most `most`, of about equal size.
std::vector<IndexRange> even_parts(int all, int most) {
    const int count = (all + most - 1) / most;
    std::vector<IndexRange> parts;
    for (int i = 0; i < count; ++i) {
        parts.push_back({static_cast<int>(std::int64_t{all} * i / count),
                         static_cast<int>(std::int64_t{all} * (i + 1) / count)});
    }
    return parts;
}

class DigitTiler {
  public:
    DigitTiler(DigitPlan& plan, const DigitOptions& options) : plan_(plan), lists_(plan), most_(options.words) {}

    void add(const LeafInTiers& leaf) {
        if (leaf.rank() == 0) return;
        if (leaf.room() + DigitDraft().room() <= most_) return join(leaf);
        if (!leaf.shape->low_rank) return cut_dense(leaf);
        cut(leaf, TileKind::left);
        cut(leaf, TileKind::right);
        plan_.t_numbers += leaf.rank();
    }

    void finish() {
        flush();
        lists_.finish();
    }

  private:
    DigitTile made(DigitDraft& draft, TileKind kind, std::int64_t row, std::int64_t rows) {
        const auto first = static_cast<std::int64_t>(plan_.rows.size()) - lists_.first_row();
        return draft.finish({kind, row, static_cast<std::int32_t>(rows), first}, plan_.rows);
    }

    void flush() {
        if (joined_.leaves() > 0) lists_.joined.push_back(made(joined_, TileKind::leaves, row_, rows_));
        joined_ = DigitDraft();
    }

    void join(const LeafInTiers& leaf) {
        const bool joins = leaf.row == row_ && leaf.rows == rows_ && joined_.leaves() < kDigitLeaves &&
                           joined_.room() + leaf.room() <= most_;
        if (!joins) flush();
        row_ = leaf.row;
        rows_ = leaf.rows;
        for (int tier = 0; tier < kMaxTiers; ++tier) {
            if (leaf.words[tier] > 0) joined_.need({tier, leaf.first[tier]}, leaf.words[tier]);
        }
        const auto columns = static_cast<int>(leaf.shape->columns);
        const int x = joined_.x(leaf.column, columns), t = leaf.shape->low_rank ? joined_.t(leaf.rank()) : 0;
        const std::vector<DigitSource> scales = scales_of(leaf);
        const auto v = static_cast<std::uint32_t>(words_of(columns)), u = static_cast<std::uint32_t>(words_of(rows_));
        each_digit_of_tier(leaf, [&](const DigitWords& piece) {
            if (!leaf.shape->low_rank) return joined_.block({piece.first, scales[0], columns, piece.digit, x, 0});
            const auto count = static_cast<std::uint32_t>(piece.count);
            for (std::uint32_t i = 0; i < count; ++i) {
                const int vector = piece.begin + static_cast<int>(i);
                joined_.column({{piece.first.tier, piece.first.word + i * v},
                                {piece.first.tier, piece.first.word + count * v + i * u},
                                scales[vector], piece.digit, x, t + vector});
            }
        });
    }

    // A part of a leaf: all digits of some columns, for some words of these columns.
    struct LeafPart {
        IndexRange words;
        IndexRange columns;
        TileKind kind;
    };

    // Room that any tile of parts needs in addition to its columns.
    static constexpr int kBase = 8 * kDigitRows;
    // Divides the words of columns into parts. All `digits` columns fit into a tile with the x of their rows, unless
    // the parts became shorter than kPartWords; one vector always fits.
    std::vector<IndexRange> word_parts(int words, int digits) const {
        constexpr int kPerColumn = 2 * (DigitDraft::kRowRoom + DigitDraft::kRunRoom);
        const auto fit = [&](int columns) {
            return (most_ - kBase - kPerColumn * columns) / (columns + kDigitRows);
        };
        return even_parts(words, std::min(fit(kDigits), std::max(fit(digits), kPartWords)));
    }

    // Divides columns [0, all) among tiles of about equal room. `room(i)` is an upper bound for column i.
    template <class Room>
    std::vector<IndexRange> column_parts(int all, int base, const Room& room) const {
        std::int64_t sum = 0;
        for (int i = 0; i < all; ++i) sum += room(i);
        const std::int64_t there = most_ - base, tiles = (sum + there - 1) / there, enough = (sum + tiles - 1) / tiles;
        std::vector<IndexRange> parts{{0, 0}};
        std::int64_t used = 0;
        for (int i = 0; i < all; ++i) {
            if (used >= enough || (used > 0 && used + room(i) > there)) {
                parts.push_back({i, i});
                used = 0;
            }
            parts.back().end = i + 1;
            used += room(i);
        }
        return parts;
    }

    void cut(const LeafInTiers& leaf, TileKind kind) {
        constexpr int kRow = DigitDraft::kRowRoom, kRun = DigitDraft::kRunRoom;
        const bool left = kind == TileKind::left;
        const std::int64_t rows = left ? leaf.shape->columns : leaf.shape->rows;
        const std::vector<DigitSource> scales = scales_of(leaf);
        for (const IndexRange& words : word_parts(words_of(rows), leaf.all_digits())) {
            const int base = kBase + (left ? kDigitRows * words.size() : 0);
            const auto room = [&](int i) { return leaf.digits(i) * (words.size() + kRow + kRun) + kRow + kRun; };
            for (const IndexRange& columns : column_parts(leaf.rank(), base, room)) {
                DigitDraft draft;
                const std::int64_t begin = std::int64_t{words.begin} * kDigitRows;
                const std::int64_t end = std::min(rows, std::int64_t{words.end} * kDigitRows);
                const std::int64_t t = plan_.t_numbers + columns.begin;
                if (left) {
                    draft.x(leaf.column + begin, static_cast<int>(end - begin));
                    draft.t(columns.size());
                } else {
                    draft.x(t, columns.size());
                }
                add_columns(leaf, {words, columns, kind}, scales, draft);
                if (left) {
                    lists_.first.push_back(made(draft, kind, t, columns.size()));
                } else {
                    lists_.right.push_back(made(draft, kind, leaf.row + begin, end - begin));
                }
            }
        }
    }

    // Adds the columns of V (left) or of U (right) that belong to the part.
    static void add_columns(const LeafInTiers& leaf, const LeafPart& part, const std::vector<DigitSource>& scales,
                            DigitDraft& draft) {
        const bool left = part.kind == TileKind::left;
        const int v = words_of(leaf.shape->columns), u = words_of(leaf.shape->rows);
        each_digit_of_tier(leaf, [&](const DigitWords& piece) {
            const IndexRange mine{std::max(piece.begin, part.columns.begin),
                             std::min(piece.begin + piece.count, part.columns.end)};
            if (mine.size() <= 0) return;
            if (left && piece.digit == 0) draft.need(scales[mine.begin], static_cast<std::uint32_t>(mine.size()));
            for (int i = mine.begin; i < mine.end; ++i) {
                const int word = (left ? 0 : piece.count * v) + (i - piece.begin) * (left ? v : u) + part.words.begin;
                const DigitSource digits{piece.first.tier, piece.first.word + static_cast<std::uint32_t>(word)};
                draft.need(digits, static_cast<std::uint32_t>(part.words.size()));
                draft.column({digits, {}, scales[i], piece.digit, 0, i - part.columns.begin});
            }
        });
    }

    void cut_dense(const LeafInTiers& leaf) {
        constexpr int kRow = DigitDraft::kRowRoom, kRun = DigitDraft::kRunRoom;
        const int all = words_of(leaf.rows), digits = leaf.digits(0);
        const DigitSource scale = scales_of(leaf)[0];
        for (const IndexRange& words : word_parts(all, digits * static_cast<int>(leaf.shape->columns))) {
            const bool whole = words.size() == all;
            const int base = kBase + (whole ? kDigits * (kRow + kRun) : 0);
            const int room = digits * (words.size() + (whole ? 0 : kRow + kRun)) + 1;
            for (const IndexRange& columns : column_parts(static_cast<int>(leaf.shape->columns), base,
                                                     [&](int) { return room; })) {
                DigitDraft draft;
                draft.x(leaf.column + columns.begin, columns.size());
                draft.need(scale, 1);
                const LeafPart part{words, columns, TileKind::dense};
                each_digit_of_tier(
                    leaf, [&](const DigitWords& piece) { add_blocks(part, {piece, all}, scale, draft); });
                const std::int64_t begin = std::int64_t{words.begin} * kDigitRows;
                const std::int64_t end = std::min(leaf.rows, std::int64_t{words.end} * kDigitRows);
                lists_.first.push_back(made(draft, TileKind::leaves, leaf.row + begin, end - begin));
            }
        }
    }

    // A dense leaf's columns of one digit. Whole columns follow each other without gaps and make one block. Parts of
    // columns have gaps between them and make one block each.
    struct DenseColumns {
        const DigitWords& piece;
        int words;
    };
    static void add_blocks(const LeafPart& part, const DenseColumns& of, const DigitSource& scale, DigitDraft& draft) {
        const int together = part.words.size() == of.words ? part.columns.size() : 1;
        for (int j = 0; j < part.columns.size(); j += together) {
            const int word = (part.columns.begin + j) * of.words + part.words.begin;
            const DigitSource digits{of.piece.first.tier, of.piece.first.word + static_cast<std::uint32_t>(word)};
            draft.need(digits, static_cast<std::uint32_t>(part.words.size() * together));
            draft.block({digits, scale, together, of.piece.digit, 0, j});
        }
    }

    DigitPlan& plan_;
    BatchLists<DigitPlan> lists_;
    int most_;
    DigitDraft joined_;  // the small leaves of these rows that the next joined tile holds
    std::int64_t row_ = 0;
    std::int64_t rows_ = 0;
};

}  // namespace

DigitPlan digit_plan(const MatrixFile& file, const DigitOptions& options) {
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (file.head().unknowns > kMost) refuse_tiles(0, "is of a matrix with more than 2^32 unknowns");
    const auto entry_of = [&](const LeafPlace& place, std::size_t number) {
        LeafInTiers made{place.row, place.shape.rows, place.column, &place.shape, {}, {}};
        for (int tier = 0; tier < file.tiers(); ++tier) {
            constexpr std::int64_t kWord = sizeof(std::uint32_t);
            const std::int64_t first = place.tier_offset[tier] / kWord, words = place.shape.tier_bytes(tier) / kWord;
            if (first + words > kMost) refuse_tiles(number, "lies too far into its batch");
            made.first[tier] = static_cast<std::uint32_t>(first);
            made.words[tier] = static_cast<std::uint32_t>(words);
        }
        return made;
    };
    DigitPlan made;
    each_batch_by_rows(file, entry_of, [&](const std::vector<LeafInTiers>& entries) {
        DigitTiler tiles(made, options);
        for (const LeafInTiers& entry : entries) tiles.add(entry);
        tiles.finish();
    });
    if (made.t_numbers > kMost) refuse_tiles(file.tables().leaves.size() - 1, "is one large leaf too many");
    return made;
}

}  // namespace penstock::hmatrix::gpu
