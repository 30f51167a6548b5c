// The reference row and reference column of ACA+ (Bebendorf & Grasedyck 2003). Their residuals tell where the next
// pivot pays off.
//
// A row or column that the approximation has used has no residual and cannot serve as a reference. A reference that was
// used, or whose residual has become small, is therefore replaced by an unused one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hmatrix/build/cross.hpp"

namespace penstock::hmatrix {

struct Pivot {
    bool by_row = false;  // true: the row is given and its largest column is searched; false: the column is given
    std::int64_t row = -1;
    std::int64_t column = -1;
};

class References {
  public:
    explicit References(Cross& cross);
    // The pivot with the largest residual in either reference. Empty if both residuals are zero or both references are
    // used up.
    std::optional<Pivot> pivot() const;
    // Updates the references after the caller has added the cross u v^T.
    void update(const std::vector<double>& u, const std::vector<double>& v);
    double row_norm() const;
    double column_norm() const;

  private:
    void renew_row();
    void renew_column();

    Cross& cross_;
    std::int64_t row_at_ = -1;  // -1: no unused row is left
    std::int64_t column_at_ = -1;
    std::vector<double> row_;
    std::vector<double> column_;
};

}  // namespace penstock::hmatrix
