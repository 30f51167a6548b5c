// Layout: where the elements of a dataset lie in its file, for datasets whose bytes are stored as they are read.
//
// A format describes a dataset once: its shape, the shape of its chunks, and where each chunk begins. runs() then turns
// a box of elements into ranges of the file, without a table and, for a few runs, without memory from the heap: for a
// few KiB that is the difference between a read and its bookkeeping. A contiguous dataset is one chunk.
//
// What must stay true: runs() gives exactly the bytes of the box, in C order of the box, or says that it does not.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::data {

inline constexpr std::size_t kMostDimensions = 16;
inline constexpr std::size_t kMostRuns = 64;           // of one box without memory from the heap
inline constexpr std::size_t kMostListedRuns = 32768;  // of one box with it; more are worth a plan

// `count` elements in each dimension, from `start` on, `step` apart (at least 1).
struct ElementBox {
    ElementBox() { step.fill(1); }
    std::array<std::int64_t, kMostDimensions> start{};
    std::array<std::int64_t, kMostDimensions> count{};
    std::array<std::int64_t, kMostDimensions> step;
};

// Bytes that continue each other in the file and in the memory of the box.
struct FileRun {
    std::uint64_t file_offset = 0;
    std::uint64_t memory_offset = 0;
    std::uint64_t bytes = 0;
};

// What a box has. Runs that continue each other are one.
class Runs {
  public:
    std::span<const FileRun> all() const noexcept { return {runs_.data(), count_}; }
    // False: there is no place for one more.
    bool add(const FileRun& run) noexcept;
    void clear() noexcept { count_ = 0; }

  private:
    std::array<FileRun, kMostRuns> runs_{};
    std::size_t count_ = 0;
};

// As Runs, of a box of many.
class RunList {
  public:
    std::span<const FileRun> all() const noexcept { return runs_; }
    // False: it would be the first beyond kMostListedRuns. Throws std::bad_alloc.
    bool add(const FileRun& run);

  private:
    std::vector<FileRun> runs_;
};

// What a format says of one dataset.
struct Stored {
    std::vector<std::int64_t> shape;        // elements
    std::vector<std::int64_t> chunk_shape;  // as many dimensions, each at least 1
    std::uint64_t item_bytes = 1;
    bool edge_cut = false;  // chunks at the edge hold the elements of the dataset alone; else they are whole
    // Chunks that are stored, ascending: numbers in the grid of chunks (C order), and where each begins in the file.
    std::vector<std::int64_t> cells;
    std::vector<std::uint64_t> offsets;
};

class Layout {
  public:
    // Throws Error{invalid_argument} of numbers that describe no dataset.
    explicit Layout(Stored stored);

    std::size_t dimensions() const noexcept { return stored_.shape.size(); }
    std::int64_t extent(std::size_t axis) const noexcept { return stored_.shape[axis]; }
    std::uint64_t item_bytes() const noexcept { return stored_.item_bytes; }
    // Whether all rows, which are the numbers of the first dimension, lie in one chunk each: then they lie alike there.
    bool has_equal_rows() const noexcept { return row_stride_ != 0; }
    // Where such a row begins. False: its chunk is not stored.
    bool row_begin(std::int64_t row, std::uint64_t& begin) const noexcept;
    // False: a chunk of the box is not stored, or the box has more than kMostRuns runs, or spans too many chunks.
    // Requires: the box lies in the dataset and is not empty.
    bool runs(const ElementBox& box, Runs& found) const noexcept;
    // The same, up to kMostListedRuns. Throws std::bad_alloc.
    bool runs(const ElementBox& box, RunList& found) const;

  private:
    bool find(std::int64_t cell, std::uint64_t& offset) const noexcept;
    template <typename Found>
    bool add_chunk(const ElementBox& box, std::span<const std::int64_t> at, Found& found) const;
    template <typename Found>
    bool add_box(const ElementBox& box, Found& found) const;

    Stored stored_;
    std::vector<std::int64_t> grid_;  // chunks in each dimension
    std::uint64_t row_stride_ = 0;    // bytes from a row of a chunk to the next; 0: rows lie in several chunks
    bool dense_ = false;  // every chunk is stored: a cell is its own place
};

}  // namespace penstock::data
