// Runs several right-hand sides side by side, so that one sweep over the matrix serves all columns that need a product.
//
// Each column runs until it waits. Lockstep serves products with the preconditioner and the surrogate first, until
// every running column waits for the matrix. Then it reports progress, makes a checkpoint if one is due, and gives each
// column its product with one sweep. Checks of true residuals wait until no column waits for anything else, and share
// one product.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hmatrix/solve/methods/column.hpp"

namespace penstock::hmatrix {

class Lockstep {
  public:
    Lockstep(SolveContext& context, LinearOperator& matrix, std::vector<Column>& columns);

    // Runs until all columns have ended. Exceptions of operators, callbacks and vectors pass through.
    void run();
    const std::vector<double>& history() const noexcept { return history_; }
    std::int64_t iterations() const noexcept;  // of this run: the maximum over the columns
    double largest_residual() const noexcept;  // believed

  private:
    LinearOperator& operator_of(Operator which) const noexcept;
    std::vector<Column*> waiting_for(Operator which, bool check);
    bool serve(Operator which, bool check = false);
    void apply(LinearOperator& by, const std::vector<Column*>& columns);
    void take_operands(const std::vector<Column*>& columns);
    void report();
    bool refuse_sweeps();
    bool repeating() const noexcept;
    void make_checkpoint();
    Progress progress() const noexcept;

    SolveContext& context_;
    LinearOperator& matrix_;
    std::vector<Column>& columns_;
    std::shared_ptr<double> gathered_;  // operands, then images, if several columns share a product
    std::vector<double> history_;
    std::vector<double> host_;  // memory for a checkpoint
    std::int64_t sweeps_at_checkpoint_ = 0;
    bool told_to_stop_ = false;
};

}  // namespace penstock::hmatrix
