// The content of a leaf after approximation: U and V of a low-rank block, or the dense block.
//
// All arrays are column-major, in the order of the cluster tree. A low-rank block is U V^T, where U is rows x rank and
// V is columns x rank. A dense block is rows x columns.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::hmatrix {

struct Factors {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t rank = 0;  // of a low-rank block; 0 means the zero block
    bool low_rank = false;
    std::vector<double> u;  // U, or the dense block
    std::vector<double> v;

    std::int64_t values() const noexcept { return low_rank ? rank * (rows + columns) : rows * columns; }
};

}  // namespace penstock::hmatrix
