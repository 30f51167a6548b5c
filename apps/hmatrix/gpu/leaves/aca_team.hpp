// Makes the numbers of a leaf with a team of threads, from a functor. Host and GPU compile this one source.
//
// It is the cross approximation of build/aca.cpp with partial pivoting, step by step: the same pivots, stopping rule,
// told rank, checked entries and repairs. All threads know the result of a sum or a search over the team, so they take
// the same branches. In every loop a row or column belongs to the same thread. Only that thread accesses its mark and
// its number in the newest cross. A thread reads what others wrote only after a reduction, which waits for all threads.
//
// A Team has rank, size, lanes, worker, workers and sync as in team.hpp. It also has exchange(value, step), which
// returns the value of the lane whose number differs in the bit `step`.
#pragma once

#include <cmath>

#include "hmatrix/gpu/leaves/leaf_group.hpp"
#include "hmatrix/gpu/team.hpp"

namespace penstock::hmatrix::gpu {

// The joint result of a team.
struct Findings {
    double value;  // the number of largest magnitude, and its index `at`; at = -1: none
    std::int32_t at;
    std::int32_t bad;  // an entry or its residual was not finite; threads may then differ on `value`
    double squares_u;
    double squares_v;
};

// Whether `one` wins. Of two equal magnitudes the first wins, as in a sequential loop.
PENSTOCK_BOTH bool beats(const Findings& one, const Findings& other) {
    if (one.at < 0 || other.at < 0) return one.at >= 0;
    const double a = std::fabs(one.value), b = std::fabs(other.value);
    return a > b || (a == b && one.at < other.at);
}

PENSTOCK_BOTH void join(Findings& into, const Findings& other) {
    if (beats(other, into)) {
        into.value = other.value;
        into.at = other.at;
    }
    into.bad |= other.bad;
    into.squares_u += other.squares_u;
    into.squares_v += other.squares_v;
}

// Combines the findings of all threads. Requires: a team of several workers has shared memory for twice as many
// Findings as workers.
template <class Team>
class Reduction {
  public:
    PENSTOCK_BOTH Reduction(Team team, Findings* shared) : team_(team), shared_(shared) {}

    // Combines the findings of all threads, and returns the result to each. Ensures: after it, a thread sees what the
    // others wrote to memory before it.
    PENSTOCK_BOTH Findings of_all(Findings mine) {
        for (int step = team_.lanes() / 2; step > 0; step /= 2) {
            Findings other;
            other.value = team_.exchange(mine.value, step);
            other.at = team_.exchange(mine.at, step);
            other.bad = team_.exchange(mine.bad, step);
            other.squares_u = team_.exchange(mine.squares_u, step);
            other.squares_v = team_.exchange(mine.squares_v, step);
            join(mine, other);
        }
        if (team_.workers() == 1) {
            team_.sync();
            return mine;
        }
        // Two places are used in turn, so that no worker overwrites a place before all threads have read it.
        Findings* const place = shared_ + (turn_ ? team_.workers() : 0);
        turn_ = !turn_;
        if (team_.rank() % team_.lanes() == 0) place[team_.worker()] = mine;
        team_.sync();
        mine = place[0];
        for (int worker = 1; worker < team_.workers(); ++worker) join(mine, place[worker]);
        return mine;
    }

  private:
    Team team_;
    Findings* shared_;
    bool turn_ = false;
};

template <class Functor, class Team>
class AcaTeam {
  public:
    PENSTOCK_BOTH AcaTeam(Team team, const Functor& functor, const Group& group, Findings* shared)
        : team_(team), functor_(functor), group_(group), reduction_(team, shared) {}

    PENSTOCK_BOTH void run(const LeafTask& task, LeafResult& result) {
        task_ = task;
        rows_ = group_.order + task.row;
        columns_ = group_.order + task.column;
        u_ = group_.values + task.values;
        if (!task.low_rank) return fill(result);
        v_ = u_ + std::int64_t{task.rows} * task.room;
        row_used_ = group_.used + task.used;
        column_used_ = row_used_ + task.rows;
        for (int i = team_.rank(); i < task.rows; i += team_.size()) row_used_[i] = 0;
        for (int j = team_.rank(); j < task.columns; j += team_.size()) column_used_[j] = 0;
        const LeafResult made = approximate();
        if (team_.rank() == 0) result = made;
    }

  private:
    static constexpr double kWrong = 30;  // kWrong and kRepairs are those of build/aca.cpp
    static constexpr int kRepairs = 16;

    static PENSTOCK_BOTH Findings nothing() { return {0, -1, 0, 0, 0}; }
    static PENSTOCK_BOTH bool finite(double value) { return std::fabs(value) <= 1.7976931348623157e308; }

    PENSTOCK_BOTH int full_rank() const { return task_.rows < task_.columns ? task_.rows : task_.columns; }
    PENSTOCK_BOTH bool stopped() const { return bad_ || rank_ >= task_.room; }

    PENSTOCK_BOTH void fill(LeafResult& result) {
        const std::int64_t count = std::int64_t{task_.rows} * task_.columns;
        for (std::int64_t i = team_.rank(); i < count; i += team_.size()) {
            u_[i] = functor_(rows_[i % task_.rows], columns_[i / task_.rows]);
        }
        if (team_.rank() == 0) result = {count, 0, 0, 0, Ending::converged};
    }

    PENSTOCK_BOTH LeafResult approximate() {
        int repairs = 0;
        bool converged = from(task_.from_last_row ? task_.rows - 1 : 0);
        if (converged && told_rank_ == 0) told_rank_ = rank_;
        while (converged && repairs < kRepairs) {
            const int wrong = wrong_row();
            if (wrong < 0) break;
            ++repairs;
            converged = from(wrong);
        }
        Ending ending = Ending::converged;
        if (!converged || repairs == kRepairs) ending = rank_ == full_rank() ? Ending::full_rank : Ending::given_up;
        if (bad_) ending = Ending::not_finite;
        return {evaluated_, rank_, told_rank_ > 0 ? told_rank_ : rank_, repairs, ending};
    }

    // As Approximation::from. Returns false if no rank is left, no room is left, or an entry is not finite.
    PENSTOCK_BOTH bool from(int row) {
        int empty = 0;
        while (!stopped() && row >= 0) {
            if (add_through(row)) {
                if (norm_ < group_.eps * first_norm_) return true;
                row = next_row_;
            } else {
                if (bad_ || (rank_ > 0 && ++empty > 1)) break;
                row = unused_row();
            }
        }
        return !stopped();
    }

    PENSTOCK_BOTH int unused_row() {
        Findings mine = nothing();
        for (int i = team_.rank(); i < task_.rows && mine.at < 0; i += team_.size()) {
            if (!row_used_[i]) mine.at = i;
        }
        return reduction_.of_all(mine).at;
    }

    // Adds the cross through the largest remaining entry of a row. Returns false if the row is empty or an entry is not
    // finite.
    PENSTOCK_BOTH bool add_through(int row) {
        const Findings largest = make_row(row);
        const double pivot = largest.at < 0 ? 0 : largest.value;
        if (bad_) return false;
        if (std::fabs(pivot) <= group_.zero * group_.eps * largest_pivot_) {
            mark(row_used_, row);
            return false;
        }
        largest_pivot_ = std::fabs(pivot) > largest_pivot_ ? std::fabs(pivot) : largest_pivot_;
        const Findings made = make_column(row, largest.at, pivot);
        if (bad_) return false;
        mark(row_used_, row);
        mark(column_used_, largest.at);
        ++rank_;
        next_row_ = made.at;
        norm_ = std::sqrt(made.squares_u) * std::sqrt(made.squares_v);
        if (rank_ == 1) first_norm_ = norm_;
        const double told_eps = group_.told_eps > 0 ? group_.told_eps : group_.eps;
        if (told_rank_ == 0 && norm_ < told_eps * first_norm_) told_rank_ = rank_;
        return true;
    }

    // Writes the residual of a row to the newest column of V. Returns its largest unused index.
    PENSTOCK_BOTH Findings make_row(int row) {
        double* const made = v_ + std::int64_t{rank_} * task_.columns;
        Findings mine = nothing();
        for (int j = team_.rank(); j < task_.columns; j += team_.size()) {
            double value = functor_(rows_[row], columns_[j]);
            for (int k = 0; k < rank_; ++k) value -= u_at(row, k) * v_at(j, k);
            mine.bad |= finite(value) ? 0 : 1;
            made[j] = value;
            consider(mine, value, j, column_used_[j] != 0);
        }
        evaluated_ += task_.columns;
        return joined(mine);
    }

    // Divides the row by the pivot, and writes the residual of the pivot's column to the newest column of U. Returns
    // the largest row that is then unused, and the squares of both norms.
    PENSTOCK_BOTH Findings make_column(int row, int column, double pivot) {
        double* const made_u = u_ + std::int64_t{rank_} * task_.rows;
        double* const made_v = v_ + std::int64_t{rank_} * task_.columns;
        Findings mine = nothing();
        for (int i = team_.rank(); i < task_.rows; i += team_.size()) {
            double value = functor_(rows_[i], columns_[column]);
            for (int k = 0; k < rank_; ++k) value -= v_at(column, k) * u_at(i, k);
            mine.bad |= finite(value) ? 0 : 1;
            made_u[i] = value;
            mine.squares_u += value * value;
            consider(mine, value, i, i == row || row_used_[i] != 0);
        }
        for (int j = team_.rank(); j < task_.columns; j += team_.size()) {
            made_v[j] /= pivot;
            mine.squares_v += made_v[j] * made_v[j];
        }
        evaluated_ += task_.rows;
        return joined(mine);
    }

    static PENSTOCK_BOTH void consider(Findings& mine, double value, int at, bool used) {
        if (used || (mine.at >= 0 && !(std::fabs(value) > std::fabs(mine.value)))) return;
        mine.value = value;
        mine.at = at;
    }

    PENSTOCK_BOTH Findings joined(const Findings& mine) {
        const Findings all = reduction_.of_all(mine);
        bad_ = all.bad != 0;
        return all;
    }

    PENSTOCK_BOTH void mark(unsigned char* used, int at) {
        if (at % team_.size() == team_.rank()) used[at] = 1;
    }

    PENSTOCK_BOTH double u_at(int row, int k) const { return u_[std::int64_t{k} * task_.rows + row]; }
    PENSTOCK_BOTH double v_at(int column, int k) const { return v_[std::int64_t{k} * task_.columns + column]; }

    // Draw `number` of build/aca.cpp's sequence (splitmix64).
    PENSTOCK_BOTH int draw(std::int64_t number, int bound) const {
        const auto seed = static_cast<std::uint64_t>(rows_[0]) << 32 ^ static_cast<std::uint64_t>(columns_[0]);
        std::uint64_t x = seed + static_cast<std::uint64_t>(number + 1) * 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return static_cast<int>((x ^ (x >> 31)) % static_cast<std::uint64_t>(bound));
    }

    // Checks the drawn entries. Returns the row of the first wrong one, or -1.
    PENSTOCK_BOTH int wrong_row() {
        const double size = std::sqrt(static_cast<double>(task_.rows) * static_cast<double>(task_.columns));
        const double usual = group_.eps * first_norm_ / size;
        Findings mine = nothing();
        team_.sync();  // before other threads' marks are read
        for (int i = team_.rank(); i < group_.check_entries && mine.at < 0; i += team_.size()) {
            const int row = draw(drawn_ + 2 * i, task_.rows), column = draw(drawn_ + 2 * i + 1, task_.columns);
            double value = functor_(rows_[row], columns_[column]);
            for (int k = 0; k < rank_; ++k) value -= u_at(row, k) * v_at(column, k);
            mine.bad |= finite(value) ? 0 : 1;
            if (!(std::fabs(value) <= kWrong * usual) && !row_used_[row]) mine.at = i;
        }
        const int found = joined(mine).at;
        const int looked_at = found < 0 ? group_.check_entries : found + 1;
        evaluated_ += looked_at;
        drawn_ += 2 * looked_at;
        return bad_ || found < 0 ? -1 : draw(drawn_ - 2, task_.rows);
    }

    Team team_;
    const Functor& functor_;
    const Group& group_;
    Reduction<Team> reduction_;
    LeafTask task_{};
    const std::int64_t* rows_ = nullptr;
    const std::int64_t* columns_ = nullptr;
    double* u_ = nullptr;
    double* v_ = nullptr;
    unsigned char* row_used_ = nullptr;
    unsigned char* column_used_ = nullptr;
    int rank_ = 0;
    int told_rank_ = 0;
    int next_row_ = -1;  // the unused row where the newest column of U is largest
    bool bad_ = false;
    double largest_pivot_ = 0;
    double first_norm_ = 0;
    double norm_ = 0;
    std::int64_t evaluated_ = 0;
    std::int64_t drawn_ = 0;
};

}  // namespace penstock::hmatrix::gpu
