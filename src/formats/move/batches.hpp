// Batches: ranges of files and boxes of memory, collected until they are worth a transfer, and moved two at a time.
//
// A read starts its transfer, and moves its boxes out of scratch when that is done and the next one is under way. A
// write moves its boxes into scratch, and then starts. What must stay true: no transfer outlives the object, so the
// caller's memory is its own again; scratch of a batch is not written before its transfer ended.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/chunk_files.hpp"
#include "penstock/context.hpp"

namespace penstock::formats {

inline constexpr std::uint64_t kScratchBytes = 32 * kMiB;  // of one batch

// What is moved as one range of a file.
struct FilePiece {
    File file;
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    std::byte* memory = nullptr;  // null: scratch
};

// Boxes of a piece whose elements go through scratch: their side there is not set.
struct ScratchBoxes {
    std::span<const Box> boxes{};
    std::span<const std::uint64_t> offsets{};  // of each first item, from the piece's first byte
};

class Batches {
  public:
    Batches(const Context& context, Direction direction, MemoryKind kind, const TransferOptions& options);
    Batches(const Batches&) = delete;
    Batches& operator=(const Batches&) = delete;
    ~Batches();

    // Throws Error of a transfer that failed, of this piece or of one before. `element_bytes`: of the elements in it.
    void add(const FilePiece& piece, const ScratchBoxes& boxes, std::uint64_t element_bytes);
    // A box within the caller's memory, after the piece that was added last came.
    void add_after(const Box& box);
    void finish();
    const Outcome& sum() const noexcept { return sum_; }  // bytes: of elements

  private:
    struct Batch {
        std::vector<File> files;
        std::vector<Range> ranges;
        std::vector<std::size_t> file_of_range;
        std::vector<std::optional<std::uint64_t>> in_scratch;  // of each range
        std::vector<Box> boxes;                                // with scratch on one side
        std::vector<std::uint64_t> box_in_scratch;
        std::vector<Box> after;
        std::uint64_t scratch_bytes = 0, element_bytes = 0;
        std::optional<Buffer> scratch;
        std::optional<Transfer> transfer;
    };
    void submit(Batch& batch);
    void settle(Batch& batch);
    void place_scratch(Batch& batch);
    void turn();

    const Context& context_;
    Direction direction_;
    MemoryKind kind_;
    TransferOptions options_;
    FilesOfBatch most_files_;
    std::array<Batch, 2> batches_{};
    std::size_t filling_ = 0;
    Outcome sum_{};
};

}  // namespace penstock::formats
