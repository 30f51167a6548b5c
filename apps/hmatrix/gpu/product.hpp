// The product of leaves with a vector, by a team of threads; one source for GPU and host.
//
// A low-rank leaf first makes t = V^T x in shared memory, then adds U (scale t) to the rows it stands on; a dense leaf
// only does the second, with x in the place of t. Threads take neighbouring words of a column, so reading is coalesced;
// columns shorter than a warp share one. Loops have several loads under way and little else to do: memory is to be what
// is waited for. Vector i of a leaf is summed by the same lanes whatever tier or digit comes next, so pieces need no
// barrier between them.
#pragma once

#include "hmatrix/gpu/encoding.hpp"

namespace penstock::hmatrix::gpu {

template <class Encoding>
PENSTOCK_BOTH int words(int numbers) {
    return (numbers + Encoding::kNumbers - 1) / Encoding::kNumbers;
}

// Shared memory of a team, in numbers of Encoding::Real.
struct Room {
    int columns;  // of x at a time, a multiple of 4
    int vectors;  // of t
};

template <class Encoding, class Team>
class LeafTeam {
  public:
    using Real = typename Encoding::Real;
    using Word = typename Encoding::Word;
    static constexpr int kNumbers = Encoding::kNumbers;

    PENSTOCK_BOTH LeafTeam(Team team, const Batch& batch, Real* shared, Room room)
        : team_(team), batch_(batch), x_(shared), t_(shared + room.columns), room_(room) {}

    // y[leaf rows] += leaf * x for leaves of the same rows.
    PENSTOCK_BOTH void run(const Job& job, const Real* x, double* y) {
        const Leaf* const leaves = batch_.leaves + job.first;
        const int rows = leaves->rows;
        const std::int64_t row = leaves->row;
        const int row_words = words<Encoding>(rows);
        const int group = power_of_two(row_words, team_.size());
        job_ = job;
        if (job.count > 1) {
            for (int i = team_.lane(); i < job.count; i += team_.lanes()) expect_all(leaves[i], {0, 1});
        } else {
            expect_job(*leaves);
        }
        for (int tile = 0; tile < row_words; tile += group) {
            const Place place{tile + (team_.rank() & (group - 1)), row_words, group};
            Real sums[kNumbers] = {};
            for (int i = 0; i < job.count; ++i) {
                const Leaf& leaf = leaves[i];
                const int pieces = leaf.pieces[batch_.tiers_used - 1];
                const int vectors = job_vectors(leaf);
                if (pieces == 0 || vectors <= 0) continue;
                // t of a single leaf stays from tile to tile.
                if (leaf.low_rank && (tile == 0 || job.count > 1)) make_t(leaf, vectors, x + leaf.column);
                if (leaf.low_rank) {
                    add_low_rank(leaf, place, sums);
                } else {
                    add_dense(leaf, x + leaf.column, place, sums);
                }
            }
            flush(rows, place, sums, y + row);
        }
    }

  private:
    struct Place {
        int word;    // of each column: this thread's
        int stride;  // words of a column
        int group;   // threads that share columns so; what is left over of the team takes other columns
    };

    // What of a piece is this job's.
    struct Part {
        const Word* columns;  // the first: of V, or of a dense leaf
        int begin;            // vector, counted from the job's first on
        int count;
        Real weight;
    };

    // Bytes that follow each other, in words.
    struct Extent {
        const Word* first;
        std::int64_t count;
    };
    struct Share {
        int number, of;  // those who divide lines among them
    };

    // All that the job reads is asked for at its beginning: the loops then wait for the nearer memory.
    PENSTOCK_BOTH void expect(const Extent& extent, const Share& share) const {
        constexpr int kLine = 128 / static_cast<int>(sizeof(Word));
        for (std::int64_t at = std::int64_t{share.number} * kLine; at < extent.count; at += share.of * kLine) {
            team_.expect(extent.first + at);
        }
    }

    PENSTOCK_BOTH void expect_all(const Leaf& leaf, const Share& share) const {
        for (int tier = 0; tier < batch_.tiers_used; ++tier) {
            const Word* const first = static_cast<const Word*>(batch_.tiers[tier]) + leaf.tier_offset[tier];
            expect({first, leaf.tier_words[tier]}, share);
        }
    }

    PENSTOCK_BOTH void expect_job(const Leaf& leaf) const {
        const Share share{team_.rank(), team_.size()};
        if (job_.vectors_begin == 0 && job_.vectors_end == kAllVectors) return expect_all(leaf, share);
        const int v_words = words<Encoding>(leaf.columns), u_words = words<Encoding>(leaf.rows);
        for (int p = 0; p < leaf.pieces[batch_.tiers_used - 1]; ++p) {
            const Piece piece = batch_.pieces[leaf.first_piece + p];
            const Part v = part_of(leaf, piece, v_words, 0);
            const Part u = part_of(leaf, piece, u_words, static_cast<std::int64_t>(piece.count) * v_words);
            if (v.count <= 0) continue;
            expect({v.columns, static_cast<std::int64_t>(v.count) * v_words}, share);
            expect({u.columns, static_cast<std::int64_t>(u.count) * u_words}, share);
        }
    }

    PENSTOCK_BOTH int job_vectors(const Leaf& leaf) const {
        const int there = leaf.vectors[batch_.tiers_used - 1];
        return (there < job_.vectors_end ? there : job_.vectors_end) - job_.vectors_begin;
    }

    PENSTOCK_BOTH static const Word* bytes_of(const Batch& batch, const Leaf& leaf, const Piece& piece) {
        return static_cast<const Word*>(batch.tiers[piece.tier]) + leaf.tier_offset[piece.tier] + piece.offset;
    }

    // Columns of V or U of a low-rank leaf, `stride` words each, that lie `skipped` words into the piece.
    PENSTOCK_BOTH Part part_of(const Leaf& leaf, const Piece& piece, int stride, std::int64_t skipped) const {
        const int end = piece.begin + piece.count;
        const int begin = piece.begin < job_.vectors_begin ? job_.vectors_begin : piece.begin;
        const int count = (end < job_.vectors_end ? end : job_.vectors_end) - begin;
        const std::int64_t first = skipped + static_cast<std::int64_t>(begin - piece.begin) * stride;
        return {bytes_of(batch_, leaf, piece) + first, begin - job_.vectors_begin, count,
                Encoding::weight(piece.digit)};
    }

    // x of `count` columns from `begin` on, padded with zeros to whole words.
    PENSTOCK_BOTH void stage_x(const Real* x, int begin, int count) {
        const int padded = words<Encoding>(count) * kNumbers;
        for (int i = team_.rank(); i < padded; i += team_.size()) x_[i] = i < count ? x[begin + i] : Real{0};
    }

    PENSTOCK_BOTH void make_t(const Leaf& leaf, int vectors, const Real* x) {
        const Piece* const pieces = batch_.pieces + leaf.first_piece;
        const int stride = words<Encoding>(leaf.columns), last = leaf.pieces[batch_.tiers_used - 1];
        team_.sync();  // nobody reads the last x and t any more
        for (int i = team_.rank(); i < vectors; i += team_.size()) t_[i] = 0;
        for (int begin = 0; begin < leaf.columns; begin += room_.columns) {
            const int count = leaf.columns - begin < room_.columns ? leaf.columns - begin : room_.columns;
            if (begin > 0) team_.sync();
            stage_x(x, begin, count);
            team_.sync();
            for (int p = 0; p < last; ++p) {
                const Part part = part_of(leaf, pieces[p], stride, begin / kNumbers);
                if (part.count > 0) dots(part, stride, words<Encoding>(count));
            }
        }
        team_.sync();
        if constexpr (Encoding::kScaled) {
            for (int i = team_.rank(); i < vectors; i += team_.size()) {
                t_[i] *= Encoding::scale(batch_, leaf, job_.vectors_begin + i);
            }
            team_.sync();
        }
    }

    // t += weight * (the first `count` words of each column) . x_
    PENSTOCK_BOTH void dots(const Part& part, int stride, int count) {
        const int group = power_of_two(count, team_.lanes());
        const int together = team_.lanes() / group;  // vectors a worker takes at once
        const int all = together * team_.workers();
        const int mine = team_.worker() * together + team_.lane() / group;
        const Columns columns{part.columns + (team_.lane() & (group - 1)), stride, count, group};
        // Whole rounds, so that all lanes take part in each sum; several in one, so that loads overlap.
        int round = part.begin & ~(all - 1);
        const int end = part.begin + part.count;
        for (; round + 2 * all < end; round += 4 * all) dot_rounds<4>(part, columns, round + mine, all);
        for (; round < end; round += 2 * all) dot_rounds<2>(part, columns, round + mine, all);
    }

    struct Columns {
        const Word* first;  // this lane's first word of the first
        int stride;
        int words;  // of each that count
        int group;  // lanes that share one
    };

    // Vectors `vector`, vector + all, ... kRounds of them; those that are not there are read as others and left out.
    template <int kRounds>
    PENSTOCK_BOTH void dot_rounds(const Part& part, const Columns& columns, int vector, int all) {
        constexpr int kAhead = kRounds >= 4 ? 2 : 4;
        const Word* at[kRounds];
        Real sums[kRounds] = {};
        PENSTOCK_ALL_AT_ONCE
        for (int i = 0; i < kRounds; ++i) {
            const int index = vector + i * all - part.begin;
            const int there = index < 0 ? 0 : (index < part.count ? index : part.count - 1);
            at[i] = columns.first + static_cast<std::int64_t>(there) * columns.stride;
        }
        const int lane = team_.lane() & (columns.group - 1);
        int word = lane;
        for (; word + (kAhead - 1) * columns.group < columns.words; word += kAhead * columns.group) {
            dot_words<kRounds, kAhead>(at, word, columns.group, sums);
        }
        for (; word < columns.words; word += columns.group) dot_words<kRounds, 1>(at, word, columns.group, sums);
        PENSTOCK_ALL_AT_ONCE
        for (int i = 0; i < kRounds; ++i) {
            const Real sum = team_.sum(sums[i], columns.group);
            const int index = vector + i * all - part.begin;
            if (lane == 0 && index >= 0 && index < part.count) t_[vector + i * all] += part.weight * sum;
        }
    }

    template <int kRounds, int kAhead>
    PENSTOCK_BOTH void dot_words(const Word* (&at)[kRounds], int word, int group, Real (&sums)[kRounds]) {
        Word held[kAhead][kRounds];
        PENSTOCK_ALL_AT_ONCE
        for (int a = 0; a < kAhead; ++a) {
            PENSTOCK_ALL_AT_ONCE
            for (int i = 0; i < kRounds; ++i) {
                held[a][i] = *at[i];
                at[i] += group;
            }
        }
        PENSTOCK_ALL_AT_ONCE
        for (int a = 0; a < kAhead; ++a) {
            Real x[kNumbers];
            Encoding::load(x_ + (word + a * group) * kNumbers, x);
            PENSTOCK_ALL_AT_ONCE
            for (int i = 0; i < kRounds; ++i) {
                Real numbers[kNumbers];
                Encoding::numbers(held[a][i], numbers);
                PENSTOCK_ALL_AT_ONCE
                for (int k = 0; k < kNumbers; ++k) sums[i] += numbers[k] * x[k];
            }
        }
    }

    PENSTOCK_BOTH void add_low_rank(const Leaf& leaf, const Place& place, Real (&sums)[kNumbers]) {
        const Piece* const pieces = batch_.pieces + leaf.first_piece;
        const int v_words = words<Encoding>(leaf.columns), last = leaf.pieces[batch_.tiers_used - 1];
        for (int p = 0; p < last; ++p) {
            const Piece piece = pieces[p];
            const Part part = part_of(leaf, piece, place.stride, static_cast<std::int64_t>(piece.count) * v_words);
            if (part.count > 0) add_columns(part, t_ + part.begin, place, sums);
        }
    }

    PENSTOCK_BOTH void add_dense(const Leaf& leaf, const Real* x, const Place& place, Real (&sums)[kNumbers]) {
        const Piece* const pieces = batch_.pieces + leaf.first_piece;
        const int last = leaf.pieces[batch_.tiers_used - 1];
        const Real scale = Encoding::scale(batch_, leaf, 0);
        for (int begin = 0; begin < leaf.columns; begin += room_.columns) {
            const int count = leaf.columns - begin < room_.columns ? leaf.columns - begin : room_.columns;
            team_.sync();
            stage_x(x, begin, count);
            team_.sync();
            for (int p = 0; p < last; ++p) {
                const Piece piece = pieces[p];
                const Word* const first =
                    bytes_of(batch_, leaf, piece) + static_cast<std::int64_t>(begin) * place.stride;
                add_columns({first, 0, count, scale * Encoding::weight(piece.digit)}, x_, place, sums);
            }
        }
    }

    // sums += weight * sum over j of t[j] * column j
    PENSTOCK_BOTH void add_columns(const Part& part, const Real* t, const Place& place, Real (&sums)[kNumbers]) {
        if (place.word >= place.stride) return;
        const int apart = team_.size() / place.group;
        const std::int64_t step = static_cast<std::int64_t>(apart) * place.stride;
        int j = team_.rank() / place.group;
        const Word* at = part.columns + static_cast<std::int64_t>(j) * place.stride + place.word;
        Real parts[kNumbers] = {};
        for (; j + 7 * apart < part.count; j += 8 * apart, at += 8 * step) {
            add_some<8>({at, step, 8}, t + j, apart, parts);
        }
        const int left = j < part.count ? (part.count - j + apart - 1) / apart : 0;
        if (left > 4) {
            add_some<8>({at, step, left}, t + j, apart, parts);
        } else if (left > 0) {
            add_some<4>({at, step, left}, t + j, apart, parts);
        }
        PENSTOCK_ALL_AT_ONCE
        for (int k = 0; k < kNumbers; ++k) sums[k] += part.weight * parts[k];
    }

    struct Some {
        const Word* first;
        std::int64_t step;
        int count;  // that are there
    };

    template <int kSome>
    PENSTOCK_BOTH static void add_some(const Some& some, const Real* t, int apart, Real (&parts)[kNumbers]) {
        Word held[kSome];
        PENSTOCK_ALL_AT_ONCE
        for (int i = 0; i < kSome; ++i) held[i] = some.first[(i < some.count ? i : 0) * some.step];
        PENSTOCK_ALL_AT_ONCE
        for (int i = 0; i < kSome; ++i) {
            const Real factor = i < some.count ? t[i * apart] : Real{0};
            Real numbers[kNumbers];
            Encoding::numbers(held[i], numbers);
            PENSTOCK_ALL_AT_ONCE
            for (int k = 0; k < kNumbers; ++k) parts[k] += numbers[k] * factor;
        }
    }

    PENSTOCK_BOTH void flush(int rows, const Place& place, const Real (&sums)[kNumbers], double* y) {
        const int stride = place.group < team_.lanes() ? place.group : team_.lanes();
        for (int k = 0; k < kNumbers; ++k) {
            const Real sum = team_.sum_apart(sums[k], stride);
            const int row = place.word * kNumbers + k;
            if (team_.lane() < stride && row < rows) team_.add(y + row, static_cast<double>(sum));
        }
    }

    Team team_;
    const Batch& batch_;
    Job job_{};
    Real* x_;
    Real* t_;
    Room room_;
};

}  // namespace penstock::hmatrix::gpu
