// Runs several right-hand sides side by side, so that one sweep over the matrix serves all that need a product.
//
// Each column runs until it waits. Cheap products are served first, until every column that still runs waits for the
// matrix: then progress is reported, a checkpoint is made where one is due, and one sweep gives each its product.
// Checks of true residuals wait until nothing else does and are made together.
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

    // Until all columns ended. Throws what operators, callbacks and vectors throw.
    void run();
    const std::vector<double>& history() const noexcept { return history_; }
    std::int64_t iterations() const noexcept;  // of this run, the most of any column
    double largest_residual() const noexcept;  // believed

  private:
    LinearOperator& source(Source which) const noexcept;
    std::vector<Column*> waiting_for(Source which, bool check);
    bool serve(Source which, bool check = false);
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
    std::shared_ptr<double> gathered_;  // operands, then images, of several columns
    std::vector<double> history_;
    std::vector<double> host_;          // of a checkpoint
    std::int64_t sweeps_at_checkpoint_ = 0;
    bool told_to_stop_ = false;
};

}  // namespace penstock::hmatrix
