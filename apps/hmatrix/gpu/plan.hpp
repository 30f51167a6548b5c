// Who does which leaf on a GPU: the tables of leaf.hpp, made from an open matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/gpu/leaf.hpp"

namespace penstock::hmatrix::gpu {

struct BatchPlan {
    std::int64_t first_order = 0;  // of Plan::order, as are the places that jobs name, from here on
    std::int64_t first_warp_job = 0;
    std::int64_t warp_jobs = 0;
    std::int64_t first_block_job = 0;
    std::int64_t block_jobs = 0;
};

struct Plan {
    std::vector<Leaf> leaves;  // all of the matrix
    std::vector<std::int32_t> order;
    std::vector<Job> warp_jobs;
    std::vector<Job> block_jobs;
    std::vector<BatchPlan> batches;
};

// Throws Error{unsupported} for a matrix beyond what the tables and kernels hold: leaves of rank above kBlockRank or of
// 2^31 rows, tiers of batches of 16 GiB.
Plan plan(const MatrixFile& file);

}  // namespace penstock::hmatrix::gpu
