// Who does which leaf on a GPU: the tables of leaf.hpp, made from an open matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/gpu/leaf.hpp"

namespace penstock::hmatrix::gpu {

struct BatchPlan {
    std::int64_t first_leaf = 0;  // of Plan::leaves: places that jobs name are from here on
    std::int64_t first_warp_job = 0;
    std::int64_t warp_jobs = 0;
    std::int64_t first_block_job = 0;
    std::int64_t block_jobs = 0;
};

struct Plan {
    std::vector<Leaf> leaves;  // of the matrix, in each batch by rows
    std::vector<Piece> pieces;
    std::vector<Job> warp_jobs;
    std::vector<Job> block_jobs;
    std::vector<BatchPlan> batches;
};

struct PlanOptions {
    std::int64_t warp_bytes = 8 * 1024;    // of a warp's job at most: long ones would leave the rest of the GPU idle
    std::int64_t block_bytes = 64 * 1024;  // beyond this, blocks share a leaf that has vectors to share
};

// Throws Error{unsupported} for a matrix beyond what the tables and kernels hold: leaves of 2^31
// rows, tiers of batches of 16 GiB.
Plan plan(const MatrixFile& file, const PlanOptions& options = {});

}  // namespace penstock::hmatrix::gpu
