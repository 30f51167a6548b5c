// GMRES and flexible GMRES; see methods.hpp.
//
// Within a cycle the iterate is x plus a combination of directions. The method forms it only at the end of the cycle
// and for checkpoints. At a restart the residual comes from the basis, A Z = V H, without a product. The check of the
// true residual detects the errors that inexact products cause there. Relaxed products (van den Eshof and Sleijpen
// 2004; Simoncini and Szyld 2003) require an accuracy that falls with the residual.
#include <algorithm>
#include <optional>

#include "hmatrix/solve/methods/arnoldi.hpp"
#include "hmatrix/solve/methods/methods.hpp"

namespace penstock::hmatrix {
namespace {

// If more than this part of the residual remains after a cycle, further cycles would not reduce it either.
constexpr double kStagnant = 1 - 1e-6;
// A relaxed product with an error above kCoarse may be what keeps the residual from falling. If kPatience iterations do
// not halve the residual, the next products are made ten times as accurate.
constexpr double kCoarse = 1e-3;
constexpr int kPatience = 3;
// If more than this part of the residual remains, the inner solve did not help: the surrogate is too far from the
// matrix, and its directions are long and nearly dependent. The method then uses plain directions, twice as many after
// each such failure.
constexpr double kNoHelp = 0.9;

class Gmres final : public HiddenIterate {
  public:
    Gmres(Column& column, bool flexible);
    ~Gmres() override { column_.hidden = nullptr; }
    Gmres(const Gmres&) = delete;
    Gmres& operator=(const Gmres&) = delete;

    // Runs cycles until the column must end. All input and output is in the column.
    Task solve();
    Task add_to(double* out) override;

  private:
    Task cycle();
    // Sets direction_, the vector to multiply next: an approximation of A^-1 times the newest vector. If flexible,
    // directions_ keeps it.
    Task choose_direction();
    Task solve_inside(double* z);
    // out = M * (sum of factors[i] * basis vector i of `arnoldi`).
    Task preconditioned_sum(const Arnoldi& arnoldi, std::vector<double> factors, double* out);
    double accuracy() const;
    void notice_slowness(double asked);
    void judge_inner(double before);

    Column& column_;
    VectorSpace& space_;
    std::int64_t cycle_length_;
    bool stores_directions_;
    Arnoldi outer_;
    std::optional<Basis> directions_;
    std::optional<Arnoldi> inner_;
    // Three vectors: the preconditioned newest vector, a sum, and a preconditioned sum.
    std::shared_ptr<double> memory_;
    const double* direction_ = nullptr;
    bool in_cycle_ = false;
    std::int64_t plain_left_ = 0;  // directions to make without an inner solve
    std::int64_t plain_next_ = 1;  // plain_left_ after the next inner solve that does not help
    int watched_ = 0;              // iterations with coarse products since residual_when_watched_
    double residual_when_watched_ = 0;
};

std::int64_t cycle_length_of(const Column& column) {
    const SolveOptions& options = column.options();
    const std::int64_t left = options.max_iterations - options.iterations_before - column.iterations;
    const std::int64_t length = options.restart == 0 ? left : std::min(options.restart, left);
    return std::min(length, column.space().size());
}

Gmres::Gmres(Column& column, bool flexible)
    : column_(column), space_(column.space()), cycle_length_(cycle_length_of(column)),
      stores_directions_(flexible && (column.preconditioned() || column.options().surrogate != nullptr)),
      outer_(space_, cycle_length_) {
    if (stores_directions_) directions_.emplace(space_, cycle_length_);
    if (flexible && column.options().surrogate != nullptr) {
        inner_.emplace(space_, std::min(column.options().inner_iterations, space_.size()));
    }
    if (column.preconditioned() || inner_) memory_ = column.context.vectors(3);
    column.hidden = this;
}

// The accuracy of the next product. An inner solve makes long directions, which A shrinks to length 1. An error
// proportional to the direction's length would exceed the image, so the accuracy is then relative to the image.
double Gmres::accuracy() const {
    const SolveOptions& options = column_.options();
    if (!options.relaxed) return 0;
    const double rule = options.relaxed_factor * std::min(1.0, options.tolerance / column_.residual);
    const double shrinks = inner_ ? inner_->largest_gain() * column_.context.norm(direction_) : 1;
    return column_.caution * rule / std::max(1.0, shrinks);
}

void Gmres::notice_slowness(double asked) {
    if (asked < kCoarse || watched_ == 0) {
        watched_ = 1;
        residual_when_watched_ = column_.residual;
    } else if (++watched_ > kPatience) {
        if (column_.residual > 0.5 * residual_when_watched_) column_.caution *= 0.1;
        watched_ = 0;
    }
}

Task Gmres::solve() {
    double before = column_.context.norm(column_.r);
    for (;;) {
        outer_.begin(column_.r, before);
        Task steps = cycle();
        co_await column_.run(steps);
        Task finish = add_to(column_.x);
        co_await column_.run(finish);
        in_cycle_ = false;
        if (!column_.stopped.empty() || column_.residual < column_.options().tolerance) co_return;
        if (outer_.residual() > kStagnant * before) {
            column_.stop("stagnation: a whole cycle of " + std::to_string(cycle_length_) +
                         " iterations left the residual as it was; restart later, or precondition");
            co_return;
        }
        outer_.residual_to(column_.r);
        before = outer_.residual();
    }
}

Task Gmres::cycle() {
    in_cycle_ = true;
    while (outer_.size() < cycle_length_) {
        Task choice = choose_direction();
        co_await column_.run(choice);
        if (!column_.stopped.empty()) co_return;
        const double asked = accuracy(), before = column_.residual;
        if (stores_directions_) {
            double* const z = directions_->column(outer_.size());
            if (!co_await column_.multiply_direction(z, outer_.image(), asked)) co_return;
        } else if (!co_await column_.multiply(direction_, outer_.image(), asked)) {
            co_return;
        }
        const double left = outer_.extend();
        if (column_.stop_unless_finite(left, "a product with the matrix")) co_return;
        if (column_.iteration_done(left)) co_return;
        if (outer_.exhausted()) column_.stop("breakdown: the Krylov space is exhausted, the matrix is singular on it");
        if (outer_.exhausted()) co_return;
        notice_slowness(asked);
        judge_inner(before);
    }
}

void Gmres::judge_inner(double before) {
    if (plain_left_ > 0) {
        --plain_left_;
    } else if (inner_ && column_.residual > kNoHelp * before) {
        plain_left_ = plain_next_;
        plain_next_ *= 2;
    } else {
        plain_next_ = 1;
    }
}

Task Gmres::choose_direction() {
    direction_ = outer_.newest();
    if (!column_.preconditioned() && !inner_) co_return;
    double* const z = stores_directions_ ? directions_->column(outer_.size()) : memory_.get();
    if (inner_ && plain_left_ == 0) {
        Task solution = solve_inside(z);
        co_await column_.run(solution);
    } else if (!column_.preconditioned()) {
        space_.copy(direction_, z);
    } else {
        co_await column_.apply(Operator::preconditioner, direction_, z);
    }
    direction_ = z;
}

Task Gmres::solve_inside(double* z) {
    const SolveOptions& options = column_.options();
    const std::int64_t limit = std::min(options.inner_iterations, space_.size());
    inner_->begin(outer_.newest(), 1);
    while (inner_->size() < limit) {
        const double* from = inner_->newest();
        if (column_.preconditioned()) co_await column_.apply(Operator::preconditioner, from, memory_.get());
        from = column_.right(from, memory_.get());
        co_await column_.apply(Operator::surrogate, from, inner_->image());
        const double left = inner_->extend(column_.preconditioned() ? column_.context.norm(from) : 1);
        if (column_.stop_unless_finite(left, "a product with the surrogate")) co_return;
        if (left < options.inner_tolerance || inner_->exhausted()) break;
    }
    if (inner_->size() == 0) column_.stop("breakdown: the surrogate is singular, it maps a residual to nothing");
    Task sum = preconditioned_sum(*inner_, inner_->factors(), z);
    co_await column_.run(sum);
}

Task Gmres::preconditioned_sum(const Arnoldi& arnoldi, std::vector<double> factors, double* out) {
    double* const sum = column_.preconditioned() ? memory_.get() + space_.size() : out;
    space_.scale(0, sum);
    arnoldi.combine(factors, sum);
    if (column_.preconditioned()) co_await column_.apply(Operator::preconditioner, sum, out);
}

Task Gmres::add_to(double* out) {
    if (!in_cycle_ || outer_.size() == 0) co_return;
    const std::vector<double> factors = outer_.factors();
    if (stores_directions_) {
        directions_->combine(factors, out);
    } else if (!column_.preconditioned()) {
        outer_.combine(factors, out);
    } else {
        double* const correction = memory_.get() + 2 * space_.size();
        Task sum = preconditioned_sum(outer_, factors, correction);
        co_await column_.run(sum);
        space_.add(1, correction, out);
    }
}

}  // namespace

Task gmres(Column& column) {
    Gmres method(column, false);
    Task solution = method.solve();
    co_await column.run(solution);
}

Task fgmres(Column& column) {
    Gmres method(column, true);
    Task solution = method.solve();
    co_await column.run(solution);
}

}  // namespace penstock::hmatrix
