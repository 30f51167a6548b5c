// The group Cells of a snapshot of SWIFT, as datasets with values. Pure functions of positions on the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "penstock/snapshot.hpp"

namespace penstock::snapshot {

struct CellDatasets {
    struct Valued {
        SnapshotDataset dataset;
        std::vector<std::byte> bytes;
    };
    std::vector<Valued> datasets{};
    std::vector<SnapshotAttribute> attributes{};  // of Cells/Meta-data
};

// Throws Error{invalid_argument}, also where the particles of a type do not lie sorted by cell.
CellDatasets cell_datasets(const SnapshotCells& cells, std::span<const SnapshotPositions> types);

}  // namespace penstock::snapshot
