// Checks a .hmat file's header and tables. The reader runs these checks before it uses any number from them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "hmatrix/file/format.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

Error broken_file(const std::string& name, const std::string& cause,
                  const std::string& advice = "build the matrix again");

void check_head(const std::string& name, const FileHeader& head, std::int64_t file_bytes);

struct StoredTables {
    std::span<const LeafRecord> leaves;
    std::span<const BatchRecord> batches;
    std::span<const std::int64_t> order;
};
void check_tables(const std::string& name, const FileHeader& head, const StoredTables& tables);

}  // namespace penstock::hmatrix
