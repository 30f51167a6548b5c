// The product of leaves with a vector, by a team of threads; one source for GPU and host.
//
// A low-rank leaf first makes t = V^T x in shared memory, then adds U (scale t) to the rows it stands on; a dense leaf
// only does the second, with x in the place of t. Threads take neighbouring words of a column, so reading is coalesced;
// columns shorter than a warp share one. Column i of a leaf is summed by the same lanes whatever tier or digit comes
// next, so pieces need no barrier between them.
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
        const Leaf& first = batch_.leaves[job.first];
        job_ = job;
        const int row_words = words<Encoding>(first.rows);
        const int group = power_of_two(row_words, team_.size());
        for (int tile = 0; tile < row_words; tile += group) {
            Real sums[kNumbers] = {};
            const int word = tile + team_.rank() % group;
            for (int i = 0; i < job.count; ++i) {
                const Leaf& leaf = batch_.leaves[job.first + i];
                if (vectors(leaf) <= 0) continue;
                // t of a single leaf stays from tile to tile.
                if (leaf.low_rank && (tile == 0 || job.count > 1)) make_t(leaf, x + leaf.column);
                if (leaf.low_rank) {
                    add_low_rank(leaf, word, group, sums);
                } else {
                    add_dense(leaf, x + leaf.column, Place{word, group}, sums);
                }
            }
            flush(first, word, group, sums, y + first.row);
        }
    }

  private:
    struct Place {
        int word;
        int group;
    };

    // Those of the leaf that are this job's.
    PENSTOCK_BOTH int vectors(const Leaf& leaf) const {
        const int there = Encoding::vectors(batch_, leaf);
        return (there < job_.vectors_end ? there : job_.vectors_end) - job_.vectors_begin;
    }

    // The parts of a leaf's pieces that are this job's, with vectors counted from its first on.
    template <class Visit>
    PENSTOCK_BOTH void pieces(const Leaf& leaf, const Visit& visit) {
        Encoding::pieces(batch_, leaf, [&](const Piece<Encoding>& whole) {
            Piece<Encoding> part = whole;
            if (leaf.low_rank) {
                const int begin = whole.begin < job_.vectors_begin ? job_.vectors_begin : whole.begin;
                const int whole_end = whole.begin + whole.count;
                part.count = (whole_end < job_.vectors_end ? whole_end : job_.vectors_end) - begin;
                if (part.count <= 0) return;
                const std::int64_t skipped = begin - whole.begin;
                part.v += skipped * words<Encoding>(leaf.columns);
                part.u += skipped * words<Encoding>(leaf.rows);
                part.begin = begin - job_.vectors_begin;
            }
            visit(part);
        });
    }

    // x of `count` columns from `begin` on, padded with zeros to whole words.
    PENSTOCK_BOTH void stage_x(const Real* x, int begin, int count) {
        team_.sync();  // nobody reads the last ones any more
        const int padded = words<Encoding>(count) * kNumbers;
        for (int i = team_.rank(); i < padded; i += team_.size()) x_[i] = i < count ? x[begin + i] : Real{0};
        team_.sync();
    }

    PENSTOCK_BOTH void make_t(const Leaf& leaf, const Real* x) {
        const int count_all = vectors(leaf);
        team_.sync();
        for (int i = team_.rank(); i < count_all; i += team_.size()) t_[i] = 0;
        for (int begin = 0; begin < leaf.columns; begin += room_.columns) {
            const int count = leaf.columns - begin < room_.columns ? leaf.columns - begin : room_.columns;
            stage_x(x, begin, count);
            pieces(leaf, [&](const Piece<Encoding>& piece) {
                dots(piece, words<Encoding>(leaf.columns), begin / kNumbers, words<Encoding>(count));
            });
        }
        team_.sync();
        for (int i = team_.rank(); i < count_all; i += team_.size()) {
            t_[i] *= Encoding::scale(batch_, leaf, job_.vectors_begin + i);
        }
        team_.sync();
    }

    // t += weight * (the words [first, first + count) of each column) . x_
    PENSTOCK_BOTH void dots(const Piece<Encoding>& piece, int stride, int first, int count) {
        const int group = power_of_two(count, team_.lanes());
        const int together = team_.lanes() / group;  // columns a worker takes at once
        const int all = together * team_.workers();
        const int mine = team_.worker() * together + team_.lane() / group;
        const int end = piece.begin + piece.count;
        // Whole rounds, so that all lanes take part in each sum; some columns in one, so that loads overlap.
        constexpr int kAtOnce = 4;
        for (int base = piece.begin / all * all; base < end; base += kAtOnce * all) {
            const Word* columns[kAtOnce];
            bool there[kAtOnce];
            Real sums[kAtOnce] = {};
            PENSTOCK_ALL_AT_ONCE
            for (int i = 0; i < kAtOnce; ++i) {
                const int vector = base + i * all + mine;
                there[i] = vector >= piece.begin && vector < end;
                columns[i] = piece.v + static_cast<std::int64_t>(vector - piece.begin) * stride + first;
            }
            for (int word = team_.lane() % group; word < count; word += group) {
                Word held[kAtOnce];
                PENSTOCK_ALL_AT_ONCE
                for (int i = 0; i < kAtOnce; ++i) held[i] = there[i] ? columns[i][word] : Word{0};
                PENSTOCK_ALL_AT_ONCE
                for (int i = 0; i < kAtOnce; ++i) {
                    Real numbers[kNumbers];
                    Encoding::numbers(held[i], numbers);
                    for (int k = 0; k < kNumbers; ++k) sums[i] += numbers[k] * x_[word * kNumbers + k];
                }
            }
            PENSTOCK_ALL_AT_ONCE
            for (int i = 0; i < kAtOnce; ++i) {
                const Real sum = team_.sum(sums[i], group);
                if (there[i] && team_.lane() % group == 0) t_[base + i * all + mine] += piece.weight * sum;
            }
        }
    }

    PENSTOCK_BOTH void add_low_rank(const Leaf& leaf, int word, int group, Real (&sums)[kNumbers]) {
        const int stride = words<Encoding>(leaf.rows);
        pieces(leaf, [&](const Piece<Encoding>& piece) {
            add_columns(piece.u, stride, t_ + piece.begin, {piece.count, piece.weight, word, group}, sums);
        });
    }

    PENSTOCK_BOTH void add_dense(const Leaf& leaf, const Real* x, Place place, Real (&sums)[kNumbers]) {
        const int stride = words<Encoding>(leaf.rows);
        const Real scale = Encoding::scale(batch_, leaf, 0);
        for (int begin = 0; begin < leaf.columns; begin += room_.columns) {
            const int count = leaf.columns - begin < room_.columns ? leaf.columns - begin : room_.columns;
            stage_x(x, begin, count);
            pieces(leaf, [&](const Piece<Encoding>& piece) {
                const Word* const columns = piece.u + static_cast<std::int64_t>(begin) * stride;
                add_columns(columns, stride, x_, {count, scale * piece.weight, place.word, place.group}, sums);
            });
        }
    }

    struct Columns {
        int count;
        Real weight;
        int word;   // of each column: this thread's
        int group;  // threads that share columns so; what is left over of the team takes other columns
    };

    // sums += weight * sum over j of t[j] * column j
    PENSTOCK_BOTH void add_columns(const Word* columns, int stride, const Real* t, Columns all,
                                   Real (&sums)[kNumbers]) {
        if (all.word >= stride) return;
        const int apart = team_.size() / all.group;
        constexpr int kAtOnce = 8;
        Real parts[kNumbers] = {};
        for (int j = team_.rank() / all.group; j < all.count; j += kAtOnce * apart) {
            Word held[kAtOnce];
            PENSTOCK_ALL_AT_ONCE
            for (int i = 0; i < kAtOnce; ++i) {
                const int column = j + i * apart;
                held[i] = column < all.count ? columns[static_cast<std::int64_t>(column) * stride + all.word] : Word{0};
            }
            PENSTOCK_ALL_AT_ONCE
            for (int i = 0; i < kAtOnce; ++i) {
                Real numbers[kNumbers];
                Encoding::numbers(held[i], numbers);
                const Real factor = j + i * apart < all.count ? t[j + i * apart] : Real{0};
                for (int k = 0; k < kNumbers; ++k) parts[k] += numbers[k] * factor;
            }
        }
        for (int k = 0; k < kNumbers; ++k) sums[k] += all.weight * parts[k];
    }

    PENSTOCK_BOTH void flush(const Leaf& leaf, int word, int group, const Real (&sums)[kNumbers], double* y) {
        const int stride = group < team_.lanes() ? group : team_.lanes();
        for (int k = 0; k < kNumbers; ++k) {
            const Real sum = team_.sum_apart(sums[k], stride);
            const int row = word * kNumbers + k;
            if (team_.lane() < stride && row < leaf.rows) team_.add(y + row, static_cast<double>(sum));
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
