// What a GPU knows of the leaves of a matrix: tables made once when a matrix is opened, and where one batch lies now.
//
// PODs for nvcc (C++17) and g++. Leaves that share their rows and are small are joined in a job, which one warp does:
// it keeps the rows' sums in registers and adds them to the result once. A large leaf is a job of its own for a block,
// a very large one several: each does some of its vectors.
#pragma once

#include <cstdint>

#include "hmatrix/codec/digits.hpp"

namespace penstock::hmatrix::gpu {

// Columns of one digit that one tier adds to a leaf: of V then of U, or of the leaf itself where it is dense.
struct alignas(16) Piece {
    std::uint32_t offset;  // in words, from the tier's part of the leaf
    std::uint16_t begin;   // vector (dense: 0)
    std::uint16_t count;   // of vectors (dense: 1)
    std::uint16_t tier;
    std::uint16_t digit;
    std::uint32_t unused;
};

struct Leaf {
    std::int64_t row;
    std::int64_t column;
    std::int32_t rows;
    std::int32_t columns;
    std::int32_t low_rank;
    std::uint32_t first_piece;
    std::uint32_t tier_offset[kMaxTiers];  // in the batch's tier, in words: of 4 bytes (digits), of 8 (doubles)
    std::uint32_t tier_words[kMaxTiers];   // of the tier's part of the leaf
    std::uint16_t pieces[kMaxTiers];       // of this tier and those before
    std::uint16_t vectors[kMaxTiers];      // likewise (dense: 1, once there are digits)
};

struct Job {
    std::int32_t first;  // of Batch::leaves
    std::int32_t count;  // leaves
    std::int32_t vectors_begin;  // of a low-rank leaf that several jobs share; else all: [0, kAllVectors)
    std::int32_t vectors_end;
};
constexpr std::int32_t kAllVectors = 0x7fffffff;

struct Batch {
    const void* tiers[kMaxTiers];  // bytes in memory the kernel can reach
    std::int32_t tiers_used;
    const Leaf* leaves;  // in the order of jobs
    const Piece* pieces;
    const Job* warp_jobs;
    const Job* block_jobs;
    std::int32_t warp_job_count;
    std::int32_t block_job_count;
};

// Batches that one launch multiplies with. Blocks do the large leaves of all of them first, then the jobs of warps.
constexpr int kBatchesOfLaunch = 16;
constexpr int kBlockThreads = 128;
constexpr int kWarpsOfBlock = kBlockThreads / 32;
struct BatchGroup {
    Batch batches[kBatchesOfLaunch];
    std::int32_t count;
    std::int32_t block_jobs_end[kBatchesOfLaunch];   // of this batch and those before
    std::int32_t warp_blocks_end[kBatchesOfLaunch];  // likewise: blocks that do warps' jobs
};

// What a warp's job may need at most; larger leaves go to blocks. Rows are those a warp's lanes cover at once.
constexpr int kWarpRowsOfDigits = 128;
constexpr int kWarpRowsOfDoubles = 32;
constexpr int kWarpRowsOfOne = 128;  // of a leaf that is a warp's only one
constexpr int kWarpColumns = 256;
constexpr int kWarpRank = 64;
constexpr int kBlockColumns = 2048;  // at a time
constexpr int kBlockRank = 256;      // of a job at most

}  // namespace penstock::hmatrix::gpu
