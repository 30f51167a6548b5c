// Chooses the pivots of a cross approximation, and checks the result.
#include "hmatrix/build/aca.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "hmatrix/build/cross.hpp"
#include "hmatrix/build/references.hpp"
#include "hmatrix/scramble.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

// An entry counts as wrong if its error exceeds this many times the average error of entries in a block that meets eps.
// A kernel that is not smooth on the block exceeds it by orders of magnitude; smooth kernels stay below 10.
constexpr double kWrong = 30;
constexpr int kRepairs = 16;
// A block that is not of low rank is stored exactly if its smaller side is at most kExactRank. A larger block is given
// up at rank kMostRank, because the work grows with the square of the rank.
constexpr std::int64_t kExactRank = 512;
constexpr std::int64_t kMostRank = 1000;

// Pseudo-random numbers, the same in each run.
class Draws {
  public:
    explicit Draws(std::uint64_t seed) : state_(seed) {}
    std::int64_t below(std::int64_t bound) {
        const std::uint64_t drawn = scrambled(state_);
        state_ += kScrambleStep;
        return static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(bound));
    }

  private:
    std::uint64_t state_;
};

class Approximation {
  public:
    Approximation(const Entries& entries, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                  const AcaOptions& options)
        : cross_(entries, rows, columns),
          options_(options),
          draws_(static_cast<std::uint64_t>(rows[0]) << 32 ^ static_cast<std::uint64_t>(columns[0])) {}

    AcaResult run() {
        AcaResult result;
        std::int64_t row = options_.from_last_row ? cross_.rows() - 1 : 0;
        bool converged = options_.plus ? with_references() : from(row);
        if (converged && told_rank_ == 0) told_rank_ = cross_.rank();  // crosses added by repairs do not count
        while (converged && result.repairs < kRepairs) {
            const auto wrong = wrong_row();
            if (!wrong) break;
            ++result.repairs;
            converged = from(*wrong);
        }
        result.converged = converged && result.repairs < kRepairs;
        if (!result.converged) finish();
        result.evaluated = cross_.evaluated();
        result.told_rank = told_rank_ > 0 ? told_rank_ : cross_.rank();
        result.factors = cross_.take();
        return result;
    }

  private:
    std::int64_t full_rank() const { return std::min(cross_.rows(), cross_.columns()); }
    bool rank_left() const {
        return cross_.rank() < (full_rank() <= kExactRank ? full_rank() : std::min(full_rank(), kMostRank));
    }

    std::int64_t unused_row() const {
        for (std::int64_t row = 0; row < cross_.rows(); ++row) {
            if (!cross_.row_used(row)) return row;
        }
        return -1;
    }

    // Adds the cross through the largest remaining entry of a row. Returns false if the row is empty.
    bool add_through(std::int64_t row) {
        cross_.row(row, v_);
        const std::int64_t column = cross_.largest_column(v_);
        const double pivot = column < 0 ? 0 : v_[column];
        if (std::abs(pivot) <= options_.zero * options_.eps * largest_pivot_) {
            cross_.skip_row(row);
            return false;
        }
        largest_pivot_ = std::max(largest_pivot_, std::abs(pivot));
        for (double& value : v_) value /= pivot;
        cross_.column(column, u_);
        norm_ = cross_.add(row, column, u_, v_);
        first_norm_ = std::max(first_norm_, cross_.rank() == 1 ? norm_ : 0.0);
        const double told_eps = options_.told_eps > 0 ? options_.told_eps : options_.eps;
        if (told_rank_ == 0 && norm_ < told_eps * first_norm_) told_rank_ = cross_.rank();
        return true;
    }

    // Adds crosses, beginning with `row`; each next row holds the largest entry of the column just added. Returns true
    // if the last cross was small enough or nothing remains, and false if the rank limit was reached.
    bool from(std::int64_t row) {
        int empty = 0;
        while (rank_left() && row >= 0) {
            if (add_through(row)) {
                if (norm_ < options_.eps * first_norm_) return true;
                row = cross_.largest_row(u_);
            } else {
                if (cross_.rank() > 0 && ++empty > 1) return true;
                row = unused_row();
            }
        }
        return rank_left();
    }

    bool with_references() {
        References references(cross_);
        while (rank_left()) {
            const auto pivot = references.pivot();
            if (!pivot) return true;
            if (pivot->by_row) {
                if (!add_through(pivot->row)) return true;
            } else if (!add_through_column(pivot->column)) {
                return true;
            }
            references.update(u_, v_);
            const double small = options_.eps * first_norm_;
            if (norm_ < small && references.row_norm() < small && references.column_norm() < small) return true;
        }
        return false;
    }

    bool add_through_column(std::int64_t column) {
        cross_.column(column, u_);
        const std::int64_t row = cross_.largest_row(u_);
        return row >= 0 && add_through(row);
    }

    // Checks randomly drawn entries. Returns the row of a wrong one, if any.
    std::optional<std::int64_t> wrong_row() {
        const double usual = options_.eps * first_norm_ /
                             std::sqrt(static_cast<double>(cross_.rows()) * static_cast<double>(cross_.columns()));
        for (std::int64_t i = 0; i < options_.check_entries; ++i) {
            const std::int64_t row = draws_.below(cross_.rows());
            if (std::abs(cross_.entry(row, draws_.below(cross_.columns()))) <= kWrong * usual) continue;
            if (!cross_.row_used(row)) return row;
        }
        return std::nullopt;
    }

    // Continues to full rank, where U V^T equals the block. Only small blocks can afford this.
    void finish() {
        if (full_rank() > kExactRank) {
            throw Error(ErrorCode::unsupported, "approximate a block",
                        "a block of " + std::to_string(cross_.rows()) + " x " + std::to_string(cross_.columns()) +
                            " is not of low rank: after rank " + std::to_string(cross_.rank()) +
                            " entries were still wrong",
                        "lower eta, so that blocks lie further apart, or look at the function that gives entries");
        }
        for (std::int64_t row = unused_row(); row >= 0 && rank_left(); row = unused_row()) {
            add_through(row);
        }
    }

    Cross cross_;
    AcaOptions options_;
    Draws draws_;
    std::int64_t told_rank_ = 0;
    double largest_pivot_ = 0;
    double first_norm_ = 0;
    double norm_ = 0;
    std::vector<double> u_;
    std::vector<double> v_;
};

}  // namespace

AcaResult approximate(const Entries& entries, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                      const AcaOptions& options) {
    return Approximation(entries, rows, columns, options).run();
}

}  // namespace penstock::hmatrix
