// Reads and writes selections of datasets: executes what src/data plans.
//
// Spans whose bytes lie in memory as in the file go straight to their place. Others go through scratch memory of the
// same kind, from which the device moves the elements to their places, in the order of bytes of this machine. Two parts
// are under way, so scratch is bounded by two times 32 MiB. What must stay true: memory outside of the selection is not
// written; a write moves no byte of the file that is not of the selection.
#pragma once

#include <cstdint>

#include "formats/data_file.hpp"

namespace penstock::formats {

struct DatasetMove {
    data::Selection selection{};
    MemoryView memory{};
    TransferOptions options{};
};

struct DatasetMoved {
    Outcome outcome{};                // bytes: of elements that came to their places
    std::uint64_t decoded_bytes = 0;  // of them, decoded on the cores of the host
    std::uint64_t filled_bytes = 0;   // of them, in chunks that are not stored
};

// Throws Error of a request that makes no sense; what fails later is the outcome's error.
DatasetMoved read_dataset(const DataFile& file, const StoredDataset& dataset, const DatasetMove& move);
DatasetMoved write_dataset(const DataFile& file, const StoredDataset& dataset, const DatasetMove& move);

}  // namespace penstock::formats
