// The cutting rules of cutter.hpp. Slot offsets of packed pieces are multiples of 64 (or of the alignment), so that
// copies from the slot use full-width loads.
#include "engine/jobs/cutter.hpp"

#include <algorithm>

namespace penstock::engine {

namespace {
constexpr std::uint64_t kPackAlignment = 64;
}

Cutter::Cutter(const std::vector<RequestRange>& ranges, const std::vector<PlanPiece>& pieces, CutRules rules)
    : ranges_(ranges), pieces_(pieces), rules_(rules) {
    while (index_ < pieces_.size() && pieces_[index_].bytes == 0) ++index_;
}

std::uint64_t Cutter::position() const noexcept {
    const PlanPiece& piece = pieces_[index_];
    return ranges_[piece.range].position + piece.offset_bytes + within_;
}

bool Cutter::next(Chunk& chunk) {
    chunk.pieces.clear();
    std::uint64_t used = 0;
    while (!empty() && chunk.pieces.size() < rules_.pieces_max && take(chunk, used)) {
        if (!rules_.pack) break;
    }
    return !chunk.pieces.empty();
}

bool Cutter::take(Chunk& chunk, std::uint64_t& used) {
    const PlanPiece& source = pieces_[index_];
    const RequestRange& range = ranges_[source.range];
    const std::uint64_t offset = range.offset_bytes + source.offset_bytes + within_;
    const std::uint64_t left = source.bytes - within_;
    const std::uint64_t start = align_down(offset, rules_.alignment);
    const std::uint64_t lead = offset - start;
    const std::uint64_t room = rules_.chunk_bytes > used ? rules_.chunk_bytes - used : 0;
    if (room <= lead) return false;
    // A piece that does not fit into what is left of the chunk starts the next chunk instead of being cut.
    const bool whole = lead + left <= room;
    if (!whole && used != 0) return false;
    const std::uint64_t take_bytes = std::min(left, align_down(room, rules_.alignment) - lead);

    Piece piece = Piece::of(range.part(source.offset_bytes + within_, take_bytes));
    piece.operation_offset = start;
    piece.operation_bytes = align_up(lead + take_bytes, rules_.alignment);
    piece.slot_offset = used;
    used = align_up(used + piece.operation_bytes, std::max(rules_.alignment, kPackAlignment));
    chunk.pieces.push_back(piece);

    within_ += take_bytes;
    if (within_ == source.bytes) {
        within_ = 0;
        do {
            ++index_;
        } while (index_ < pieces_.size() && pieces_[index_].bytes == 0);
    }
    return true;
}

}  // namespace penstock::engine
