// What a leaf holds once it is built: U and V of a low-rank block, or the block itself.
//
// Column-major throughout, in the order of the cluster tree: the block is U V^T with U rows x rank and V columns x
// rank; a dense block is rows x columns.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::hmatrix {

struct Factors {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t rank = 0;  // of a low-rank block; 0 is the zero block
    bool low_rank = false;
    std::vector<double> u;  // or the dense block
    std::vector<double> v;

    std::int64_t values() const noexcept { return low_rank ? rank * (rows + columns) : rows * columns; }
};

}  // namespace penstock::hmatrix
