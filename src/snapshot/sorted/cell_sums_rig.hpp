// What MPI does with the sums of cells of several processes, for tests of processes that one thread uses in turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/snapshot.hpp"

namespace penstock::test {

// What MPI_Allreduce does by MPI_SUM and by MPI_MAX.
inline void put_together(const std::vector<SnapshotCellSums>& all) {
    for (std::size_t i = 0; i < all[0].totals.size(); ++i) {
        std::int64_t sum = 0;
        for (const SnapshotCellSums& one : all) sum += one.totals[i];
        for (const SnapshotCellSums& one : all) one.totals[i] = sum;
    }
    for (std::size_t i = 0; i < all[0].extremes.size(); ++i) {
        double most = all[0].extremes[i];
        for (const SnapshotCellSums& one : all) most = std::max(most, one.extremes[i]);
        for (const SnapshotCellSums& one : all) one.extremes[i] = most;
    }
}

}  // namespace penstock::test
