// See lockstep.hpp.
#include "hmatrix/solve/methods/lockstep.hpp"

#include <algorithm>

#include "hmatrix/solve/continued/product_log.hpp"

namespace penstock::hmatrix {

Lockstep::Lockstep(SolveContext& context, LinearOperator& matrix, std::vector<Column>& columns)
    : context_(context), matrix_(matrix), columns_(columns) {}

void Lockstep::run() {
    for (bool going = true; going;) {
        for (Column& column : columns_) column.advance();
        if (serve(Operator::preconditioner) || serve(Operator::surrogate)) continue;
        report();
        if (told_to_stop_ && refuse_sweeps()) continue;
        make_checkpoint();
        going = serve(Operator::matrix) || serve(Operator::matrix, true);
    }
}

LinearOperator& Lockstep::operator_of(Operator which) const noexcept {
    if (which == Operator::preconditioner) return *context_.options.preconditioner;
    return which == Operator::surrogate ? *context_.options.surrogate : matrix_;
}

std::vector<Column*> Lockstep::waiting_for(Operator which, bool check) {
    std::vector<Column*> found;
    for (Column& column : columns_) {
        if (!column.waiting() || column.wanted().by != which || column.wanted().check != check) continue;
        found.push_back(&column);
    }
    return found;
}

bool Lockstep::serve(Operator which, bool check) {
    const std::vector<Column*> found = waiting_for(which, check);
    if (found.empty()) return false;
    const bool recalled = which == Operator::matrix && repeating();
    apply(operator_of(which), found);
    if (recalled) take_operands(found);
    if (which == Operator::surrogate) ++context_.inner_products;
    if (which == Operator::matrix && !check) ++context_.sweeps;
    context_.check_unpaid = check;
    for (Column* column : found) column->grant(true);
    return true;
}

void Lockstep::apply(LinearOperator& by, const std::vector<Column*>& columns) {
    const auto count = static_cast<std::int64_t>(columns.size());
    if (count == 1) {
        const Product& wanted = columns.front()->wanted();
        by.apply(wanted.x, wanted.y, 1, wanted.accuracy);
        return;
    }
    VectorSpace& space = context_.space;
    const auto all = static_cast<std::int64_t>(columns_.size());
    if (!gathered_) gathered_ = space.allocate(2 * all);
    double* const operands = gathered_.get();
    double* const images = operands + all * space.size();
    double accuracy = columns.front()->wanted().accuracy;
    for (std::int64_t i = 0; i < count; ++i) {
        const Product& wanted = columns[static_cast<std::size_t>(i)]->wanted();
        space.copy(wanted.x, operands + i * space.size());
        accuracy = std::min(accuracy, wanted.accuracy);
    }
    by.apply(operands, images, count, accuracy);
    for (std::int64_t i = 0; i < count; ++i) {
        space.copy(images + i * space.size(), columns[static_cast<std::size_t>(i)]->wanted().y);
    }
}

// After recalled products: columns that go on with the operand (see Product::exact_x) receive the one that the log
// kept.
void Lockstep::take_operands(const std::vector<Column*>& columns) {
    const std::span<const double> kept = context_.options.products->operand();
    const auto size = static_cast<std::size_t>(context_.space.size());
    for (std::size_t i = 0; i < columns.size() && !kept.empty(); ++i) {
        double* const to = columns[i]->wanted().exact_x;
        if (to != nullptr) context_.space.upload(kept.subspan(i * size, size), to);
    }
}

std::int64_t Lockstep::iterations() const noexcept {
    std::int64_t most = 0;
    for (const Column& column : columns_) most = std::max(most, column.iterations);
    return most;
}

double Lockstep::largest_residual() const noexcept {
    double largest = 0;
    for (const Column& column : columns_) largest = larger_residual(largest, column.residual);
    return largest;
}

Progress Lockstep::progress() const noexcept {
    const SolveOptions& options = context_.options;
    return {.iteration = options.iterations_before + iterations(),
            .sweeps = options.sweeps_before + context_.sweeps,
            .relative_residual = largest_residual()};
}

// Whether the next product comes from the log of the solve that this one repeats.
bool Lockstep::repeating() const noexcept {
    const ProductLog* const log = context_.options.products;
    return log != nullptr && log->recalling();
}

// An iteration needs at least one sweep, so the most advanced column made at most one since the last report.
void Lockstep::report() {
    if (iterations() <= static_cast<std::int64_t>(history_.size())) return;
    history_.push_back(largest_residual());
    if (repeating()) return;
    if (context_.options.progress && !context_.options.progress(progress())) told_to_stop_ = true;
}

bool Lockstep::refuse_sweeps() {
    const std::vector<Column*> found = waiting_for(Operator::matrix, false);
    for (Column* column : found) {
        column->stop("callback");
        column->grant(false);
    }
    return !found.empty();
}

void Lockstep::make_checkpoint() {
    const SolveOptions& options = context_.options;
    if (repeating()) sweeps_at_checkpoint_ = context_.sweeps + 1;
    if (!options.checkpoint || context_.sweeps - sweeps_at_checkpoint_ < options.checkpoint_sweeps) return;
    if (waiting_for(Operator::matrix, false).empty()) return;
    sweeps_at_checkpoint_ = context_.sweeps;
    VectorSpace& space = context_.space;
    const auto size = static_cast<std::size_t>(space.size());
    host_.resize(size * columns_.size());
    const std::shared_ptr<double> whole = space.allocate(1);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        Column& column = columns_[i];
        space.copy(column.x, whole.get());
        if (column.waiting() && column.hidden != nullptr) {
            const Task task = column.hidden->add_to(whole.get());
            column.interrupt(task, [this](Column& waiting) {
                apply(operator_of(waiting.wanted().by), {&waiting});
                waiting.grant(true);
            });
        }
        space.download(whole.get(), std::span(host_).subspan(i * size, size));
    }
    options.checkpoint(host_, progress());
}

}  // namespace penstock::hmatrix
