// Writing a .hmat file batch by batch: what is in memory is one batch being written and one being filled.
//
// The file appears under its name when finish() has written everything; before that, and after any failure, there is
// nothing of that name, or what was there before.
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
    // `head`: encoding, tiers, unknowns, eps, eta, leaf_size, accuracies; the rest is filled in here. Throws Error as
    // Context::open does.
    MatrixWriter(const Context& context, Workers& workers, const std::string& path, const FileHeader& head);

    // The next leaves, in the order of the partition, and where they lie. Returns once they are packed: the write goes
    // on. Throws Error{no_space} and other write errors, of this batch or of one before.
    void add(std::span<const Leaf> places, std::span<const TieredLeaf> leaves);
    // Tables and header; the file is complete, on stable storage and under its name. `about`: JSON text.
    FileHeader finish(std::span<const std::int64_t> order, const std::string& about);

    // To be set before finish().
    FileHeader& head() noexcept { return head_; }
    std::int64_t bytes() const noexcept { return offset_; }  // of the file so far

  private:
    struct Slot {
        Buffer buffer;
        Transfer transfer;
        bool writing = false;
    };
    std::byte* reserve(Slot& slot, std::int64_t bytes);
    static void wait(Slot& slot);
    void write_all(const void* data, std::int64_t bytes);
    void checksum_tiers(BatchRecord& batch, const std::byte* bytes);

    Context context_;
    Workers& workers_;
    File file_;
    FileHeader head_;
    Slot slots_[2];
    int next_slot_ = 0;
    std::int64_t offset_ = kPage;
    std::vector<LeafRecord> leaves_;
    std::vector<BatchRecord> batches_;
};

// CRC-32 of host memory, by all workers.
std::uint32_t checksum_by(Workers& workers, std::span<const std::byte> bytes);

}  // namespace penstock::hmatrix
