// An open .hmat file: its tables, checked, and where every byte of it lies.
//
// Everything a table says is checked against the file's size and against the other tables before it is used, so a
// damaged file is an error that names what is wrong, never a crash or a wrong product. The bytes of the batches are
// checked by who reads them, against the sums kept here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmatrix/file/format.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// Where a leaf lies within its batch.
struct LeafPlace {
    std::int64_t row = 0;
    std::int64_t column = 0;
    LeafShape shape;
    std::int64_t tier_offset[kMaxTiers] = {};  // from the tier's first byte
};

struct MatrixTables {
    std::vector<LeafPlace> leaves;
    std::vector<BatchRecord> batches;
    std::vector<std::int64_t> order;
    std::string about;
};

class MatrixFile {
  public:
    // Throws Error: not_found, permission_denied, ...; invalid_argument for a file that is no .hmat file or is damaged;
    // unsupported for one of another version.
    static MatrixFile open(const Context& context, Workers& workers, const std::string& path);

    const FileHeader& head() const noexcept { return head_; }
    Encoding encoding() const noexcept { return static_cast<Encoding>(head_.encoding); }
    int tiers() const noexcept { return static_cast<int>(head_.tiers); }
    const MatrixTables& tables() const noexcept { return tables_; }
    const File& file() const noexcept { return file_; }

    // The fewest tiers whose leaves are within `accuracy`; all of them for 0 or what the file does not reach.
    int tiers_for(double accuracy) const noexcept;
    // Bytes of a batch's first `tiers` tiers, from its offset on.
    std::int64_t prefix_bytes(std::int64_t batch, int tiers) const noexcept;
    std::int64_t prefix_bytes(int tiers) const noexcept;  // of all batches
    std::int64_t largest_batch() const noexcept;          // bytes, all tiers

    // The Error of a batch whose bytes are not those that were written.
    Error damaged(std::int64_t batch, int tier) const;

  private:
    MatrixFile(File file, const FileHeader& head, MatrixTables tables);
    File file_;
    FileHeader head_;
    MatrixTables tables_;
};

}  // namespace penstock::hmatrix
