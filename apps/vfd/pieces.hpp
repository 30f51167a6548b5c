// The pieces of one selection: many, often of a few bytes, in the order of the file.
//
// 1. Pieces of 64 KiB and more move by themselves, or together as one transfer.
// 2. Smaller pieces that lie near each other in the file are a window: one system call moves it between the file and a
//    buffer, and the pieces are copied from or to there. Bytes between the pieces of a window are written back as they
//    were read. HDF5 allows one writer, as its own buffer for small pieces does, which works the same way.
// 3. Pieces of one length at one distance, as those of a column are, take the place of one piece: a run.
// 4. Between the buffer and device memory there is one copy where the pieces are consecutive in memory: the CPU packs
//    them in pinned memory. Otherwise one kernel copies them all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "vfd/hdf5/driver_class.hpp"
#include "vfd/mover.hpp"

namespace penstock::vfd {

inline constexpr std::size_t kGapBytes = 4096;                          // a larger gap is cheaper to skip than to read
inline constexpr std::size_t kLargePieceBytes = std::size_t{64} << 10;  // moves by itself
inline constexpr std::size_t kWindowBytes = std::size_t{1} << 20;       // stays in the cache of a core

// Pieces of one length: `count` of them, each a step behind the one before.
struct Run {
    Piece first;
    std::size_t count = 1;
    std::uint64_t file_step = 0;        // bytes
    std::ptrdiff_t memory_step = 0;     // bytes
    // False: the piece does not go on in this way.
    bool takes(const Piece& piece) noexcept;
};

// Gathers pieces that are added in the order of the file; other orders are right too, and slower.
class Windows {
  public:
    Windows(Mover& mover, bool write) : mover_(mover), write_(write) {}
    void add(const Piece& piece, const Place& place);
    void flush();

  private:
    std::size_t window_bytes() const noexcept { return static_cast<std::size_t>(end_ - start_); }
    bool fits(const Piece& piece, const Place& place) const noexcept;
    void begin(const Piece& piece, const Place& place) noexcept;
    void by_host();
    void by_device();
    // Between the window's bytes and those of the pieces: where they are, or packed by one after the other.
    void copy_runs(std::byte* window, std::byte* packed) const;
    void copy_by_kernel(const Engine& engine, std::byte* staging);

    Mover& mover_;
    bool write_;
    std::vector<Run> runs_;
    std::vector<penstock_copy> copies_;
    std::uint64_t start_ = 0, end_ = 0;
    std::size_t pieces_ = 0, piece_bytes_ = 0;
    const std::byte* memory_end_ = nullptr;
    Place place_;
    bool has_gaps_ = false;    // bytes of the file between pieces
    bool is_packed_ = true;    // the pieces are consecutive in memory
    std::unique_ptr<std::byte[]> buffer_;
};

// Pieces that move by themselves, or together as one transfer.
class LargePieces {
  public:
    LargePieces(Mover& mover, bool write) : mover_(mover), write_(write) {}
    void add(const Piece& piece, const Place& place);
    void flush();

  private:
    Mover& mover_;
    bool write_;
    std::vector<Piece> pieces_;
    Place place_;
};

// Moves what is added, the last of it by `flush`. What waits here moves in any order: so a piece that may lie over one
// that waits makes all of them move first. The piece that is added last then wins, as with HDF5's own driver.
class PieceMover {
  public:
    PieceMover(Mover& mover, bool write) : write_(write), windows_(mover, write), large_(mover, write) {}
    // Whether pieces that come may lie over each other in memory: where memory is selected by points.
    void may_repeat(bool memory) noexcept { may_repeat_ = memory; }
    void add(const Piece& piece, const Place& place);
    void flush();

  private:
    bool lies_over(const Piece& piece) const noexcept;

    bool write_;
    bool may_repeat_ = false;
    std::uint64_t file_end_ = 0;              // of what waits
    const std::byte* memory_end_ = nullptr;   // of what waits
    Windows windows_;
    LargePieces large_;
};

// Called for each piece, of which there may be millions.
inline bool Run::takes(const Piece& piece) noexcept {
    if (piece.bytes != first.bytes) return false;
    if (count == 1) {
        file_step = piece.offset_bytes - first.offset_bytes;
        memory_step = piece.memory - first.memory;
    } else if (piece.offset_bytes != first.offset_bytes + count * file_step ||
               piece.memory != first.memory + static_cast<std::ptrdiff_t>(count) * memory_step) {
        return false;
    }
    ++count;
    return true;
}

inline bool Windows::fits(const Piece& piece, const Place& place) const noexcept {
    return piece.offset_bytes >= end_ && piece.offset_bytes - end_ < kGapBytes &&
           piece.offset_bytes + piece.bytes - start_ <= kWindowBytes && place == place_;
}

inline void Windows::add(const Piece& piece, const Place& place) {
    if (pieces_ != 0 && !fits(piece, place)) flush();
    if (pieces_ == 0) begin(piece, place);
    has_gaps_ = has_gaps_ || piece.offset_bytes != end_;
    is_packed_ = is_packed_ && piece.memory == memory_end_;
    end_ = piece.offset_bytes + piece.bytes;
    memory_end_ = piece.memory + piece.bytes;
    piece_bytes_ += piece.bytes;
    ++pieces_;
    if (runs_.empty() || !runs_.back().takes(piece)) runs_.push_back({piece});
}

inline bool PieceMover::lies_over(const Piece& piece) const noexcept {
    return write_ ? piece.offset_bytes < file_end_ : may_repeat_ && piece.memory < memory_end_;
}

inline void PieceMover::add(const Piece& piece, const Place& place) {
    if (lies_over(piece)) flush();
    file_end_ = std::max(file_end_, piece.offset_bytes + piece.bytes);
    memory_end_ = std::max<const std::byte*>(memory_end_, piece.memory + piece.bytes);
    if (piece.bytes >= kLargePieceBytes) large_.add(piece, place);
    else windows_.add(piece, place);
}

// A vector of HDF5, which shortens its arrays: a size of 0, or a use `same_as_before`, stands for the one before and
// for all that follow.
struct PieceArrays {
    std::uint32_t count = 0;
    const Use* uses = nullptr;
    const Address* offsets = nullptr;
    const std::size_t* bytes = nullptr;
    void* const* memory = nullptr;
};

// Moves them all, whatever their order.
void move_pieces(Mover& mover, bool write, const PieceArrays& arrays);

}  // namespace penstock::vfd
