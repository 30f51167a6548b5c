// The reference row and column of ACA+: what is left of them says where the next pivot is worth having.
//
// A reference must not be part of the approximation, where nothing is left by construction: one that was used, or has
// become small, is replaced by an unused one. Bebendorf & Grasedyck (2003).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hmatrix/build/cross.hpp"

namespace penstock::hmatrix {

struct Pivot {
    bool by_row = false;  // the row is given, and its largest column is to be looked for; else the other way round
    std::int64_t row = -1;
    std::int64_t column = -1;
};

class References {
  public:
    explicit References(Cross& cross);
    // Where the larger of the two references is largest; nothing when both are zero or used up.
    std::optional<Pivot> pivot() const;
    // After a cross u v^T was added.
    void update(const std::vector<double>& u, const std::vector<double>& v);
    double row_norm() const;
    double column_norm() const;

  private:
    void renew_row();
    void renew_column();

    Cross& cross_;
    std::int64_t row_at_ = -1;  // -1: there is no unused one left
    std::int64_t column_at_ = -1;
    std::vector<double> row_;
    std::vector<double> column_;
};

}  // namespace penstock::hmatrix
