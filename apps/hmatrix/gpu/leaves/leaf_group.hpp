// A group of leaves that a GPU makes with one launch: the task and the result of each leaf, and the launcher.
//
// These are PODs for nvcc (C++17) and g++, in memory that host and device can access. The rank of a leaf is not known
// in advance. A low-rank leaf therefore gets room for a rank that few leaves exceed, and the host makes those few.
#pragma once

#include <cstdint>

namespace penstock::hmatrix::gpu {

struct LeafTask {
    std::int64_t row;  // position in the order of the unknowns
    std::int64_t column;
    std::int64_t values;  // index of its first number: U (rows x room) then V (columns x room), or the dense block
    std::int64_t used;    // index of its first mark: one byte for each row, then one for each column
    std::int32_t rows;
    std::int32_t columns;
    std::int32_t low_rank;  // 0: dense
    std::int32_t room;      // largest rank
    std::int32_t from_last_row;
};

enum class Ending : std::int32_t {
    converged,
    full_rank,   // the rank equals the smaller side, so the leaf is exact
    given_up,    // no room is left, or too many repairs: the host makes the leaf
    not_finite,  // an entry is not finite or sums overflow: the host makes the leaf and names the entry
};

struct LeafResult {
    std::int64_t evaluated;  // evaluated, rank, told_rank and repairs are as in AcaResult
    std::int32_t rank;
    std::int32_t told_rank;
    std::int32_t repairs;
    Ending ending;
};

struct Group {
    const std::int64_t* order;
    const LeafTask* tasks;  // the tasks of wide teams, then of blocks, then of warps
    LeafResult* results;    // one for each task
    double* values;
    unsigned char* used;
    double eps;  // eps to check_entries are as in AcaOptions
    double zero;
    double told_eps;
    std::int32_t check_entries;
    std::int32_t wide;    // number of tasks for teams of kWideThreads
    std::int32_t blocks;  // for teams of kBlockOfLeafThreads
    std::int32_t warps;
};

constexpr int kWideThreads = 512;
constexpr int kBlockOfLeafThreads = 128;
constexpr int kWarpSides = 128;  // a warp makes leaves with at most this sum of rows and columns
constexpr int kBlockSides = 4096;

// Launches the group on a stream (a cudaStream_t). Returns the cause of a failure, or null.
using LaunchGroup = const char* (*)(const void* functor, const Group& group, void* stream);

}  // namespace penstock::hmatrix::gpu
