// Leaves that a GPU makes in one go: what it is told of each, what it tells, and who starts the work.
//
// PODs for nvcc (C++17) and g++, in memory that host and device reach. How large a rank will be nobody knows before, so
// a low-rank leaf has room for a rank that few exceed; those that do are left to the host.
#pragma once

#include <cstdint>

namespace penstock::hmatrix::gpu {

struct LeafTask {
    std::int64_t row;       // place in the order of the unknowns
    std::int64_t column;
    std::int64_t values;    // where its numbers begin: U (rows x room) and then V (columns x room), or the dense block
    std::int64_t used;      // where its marks of rows and then columns begin, a byte each
    std::int32_t rows;
    std::int32_t columns;
    std::int32_t low_rank;  // else dense
    std::int32_t room;      // rank at most
    std::int32_t from_last_row;
};

enum class Ending : std::int32_t {
    converged,
    full_rank,   // the rank is the smaller side: the leaf is exact
    given_up,    // no room is left, or too many repairs: the host's turn
    not_finite,  // an entry is no number, or sums overflow: the host finds out which
};

struct LeafResult {
    std::int64_t evaluated;  // these as in AcaResult
    std::int32_t rank;
    std::int32_t told_rank;
    std::int32_t repairs;
    Ending ending;
};

struct Group {
    const std::int64_t* order;
    const LeafTask* tasks;  // for each kind of team, one kind behind the other
    LeafResult* results;    // of each task
    double* values;
    unsigned char* used;
    double eps;             // these as in AcaOptions
    double zero;
    double told_eps;
    std::int32_t check_entries;
    std::int32_t wide;      // tasks for teams of kWideThreads
    std::int32_t blocks;    // of kBlockOfLeafThreads
    std::int32_t warps;
};

constexpr int kWideThreads = 512;
constexpr int kBlockOfLeafThreads = 128;
constexpr int kWarpSides = 128;   // rows and columns together, at most
constexpr int kBlockSides = 4096;

// Starts the work on the stream (a cudaStream_t). What went wrong, or null.
using LaunchGroup = const char* (*)(const void* functor, const Group& group, void* stream);

}  // namespace penstock::hmatrix::gpu
