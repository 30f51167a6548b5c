// Cuts one step of a plan into chunks. Pure: numbers in, numbers out, so that it is tested exhaustively.
//
// What must stay true: the wanted bytes of all chunks cover the step's pieces exactly once and in order; every
// operation lies in its slot, no two operations of a chunk overlap in the slot; where `alignment` > 1, operation
// offsets, lengths and slot offsets are multiples of it. A write's operation is exactly what is wanted: the policy
// gives aligned pieces to paths that need them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/pieces.hpp"
#include "engine/request.hpp"
#include "penstock/plan.hpp"

namespace penstock::engine {

struct CutRules {
    std::uint64_t chunk_bytes = 4 * kMiB;  // multiple of alignment
    std::uint64_t alignment = 1;           // of operations; 1: none
    std::uint32_t pieces_max = 256;        // of one chunk
    bool pack = true;                      // several pieces may share a chunk
};

class Cutter {
  public:
    Cutter(const std::vector<RequestRange>& ranges, const std::vector<PlanPiece>& pieces, CutRules rules);
    bool next(Chunk& chunk);  // false: nothing left; `chunk` is cleared first
    bool empty() const noexcept { return index_ >= pieces_.size(); }
    // Position in the request of the first byte not yet handed out; meaningful unless empty().
    std::uint64_t position() const noexcept;

  private:
    bool take(Chunk& chunk, std::uint64_t& used);  // one more piece into the chunk; false when it is full

    const std::vector<RequestRange>& ranges_;
    const std::vector<PlanPiece>& pieces_;
    CutRules rules_;
    std::size_t index_ = 0;
    std::uint64_t within_ = 0;  // bytes of pieces_[index_] already handed out
};

}  // namespace penstock::engine
