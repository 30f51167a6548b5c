// An open .hmat file: its checked tables, and the place of every leaf's bytes.
//
// Before the reader uses a number from a table, it checks the number against the file's size and the other tables. A
// damaged file therefore gives an error that names the damage, never a crash or a wrong product. The reader does not
// check the bytes of the batches: the code that reads a batch compares it with the checksums kept here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmatrix/file/format.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// The place of a leaf in the matrix and in its batch.
struct LeafPlace {
    std::int64_t row = 0;
    std::int64_t column = 0;
    LeafShape shape;
    std::int64_t tier_offset[kMaxTiers] = {};  // bytes, from the beginning of that tier in the batch
};

struct MatrixTables {
    std::vector<LeafPlace> leaves;
    std::vector<BatchRecord> batches;
    std::vector<std::int64_t> order;
    std::string about;
};

class MatrixFile {
  public:
    // Throws Error{not_found}, Error{permission_denied} and others as Context::open does, Error{invalid_argument} for a
    // file that is damaged or is not a .hmat file, and Error{unsupported} for another version.
    static MatrixFile open(const Context& context, Workers& workers, const std::string& path);

    const FileHeader& head() const noexcept { return head_; }
    Encoding encoding() const noexcept { return static_cast<Encoding>(head_.encoding); }
    int tiers() const noexcept { return static_cast<int>(head_.tiers); }
    const MatrixTables& tables() const noexcept { return tables_; }
    const File& file() const noexcept { return file_; }

    // The smallest number of tiers whose leaves are within `accuracy` (relative, Frobenius). Returns all tiers for
    // accuracy 0 and for an accuracy that the file does not reach.
    int tiers_for(double accuracy) const noexcept;
    // Length of the first `tiers` tiers of a batch, from the batch's offset on.
    std::int64_t prefix_bytes(std::int64_t batch, int tiers) const noexcept;
    std::int64_t prefix_bytes(int tiers) const noexcept;  // sum over all batches
    std::int64_t largest_batch() const noexcept;          // bytes of the largest batch, with all its tiers

    // The Error for a batch whose tier `tier` does not match its checksum.
    Error damaged(std::int64_t batch, int tier) const;

  private:
    MatrixFile(File file, const FileHeader& head, MatrixTables tables);
    File file_;
    FileHeader head_;
    MatrixTables tables_;
};

}  // namespace penstock::hmatrix
