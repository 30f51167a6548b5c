// Writes a .hmat file batch by batch. Memory holds at most two batches: one that is being written and one that is being
// filled.
//
// The file appears under its name only when finish() has written everything. Before that, and after any failure, the
// name refers to nothing, or to the file that was there before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/file/packed.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

class MatrixWriter {
  public:
    // `head`: the caller sets encoding, tiers, unknowns, eps, eta, leaf_size and accuracies; the writer sets the other
    // fields. Throws Error as Context::open does.
    MatrixWriter(const Context& context, Workers& workers, const std::string& path, const FileHeader& head);

    // Adds the next batch: leaves in the order of the partition, and their places in the matrix. Returns when the
    // leaves are packed; the write continues in the background. Throws Error{no_space} and other write errors, of this
    // batch or of an earlier one.
    void add(std::span<const Leaf> places, std::span<const TieredLeaf> leaves);
    // Writes the tables and the header. Ensures: the file is complete, on stable storage and under its name. `about`:
    // JSON text.
    FileHeader finish(std::span<const std::int64_t> order, const std::string& about);

    // The caller may change fields before finish().
    FileHeader& head() noexcept { return head_; }
    std::int64_t bytes() const noexcept { return offset_; }  // bytes of the file so far

  private:
    struct WriteSlot {
        Buffer buffer;
        Transfer transfer;
        bool writing = false;
    };
    std::byte* reserve(WriteSlot& slot, std::int64_t bytes);
    static void wait(WriteSlot& slot);
    void write_all(const void* data, std::int64_t bytes);
    void checksum_tiers(BatchRecord& batch, const std::byte* bytes);

    Context context_;
    Workers& workers_;
    File file_;
    FileHeader head_;
    WriteSlot slots_[2];
    int next_slot_ = 0;
    std::int64_t offset_ = kPage;
    std::vector<LeafRecord> leaves_;
    std::vector<BatchRecord> batches_;
};

// CRC-32 of host memory, computed by all workers.
std::uint32_t checksum_by(Workers& workers, std::span<const std::byte> bytes);

}  // namespace penstock::hmatrix
