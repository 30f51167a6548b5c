// The cutter with any ranges, pieces and rules keeps the promises of cutter.hpp.
#include <algorithm>
#include <vector>

#include "engine/jobs/cutter.hpp"
#include "input.hpp"

namespace {

using penstock::engine::Chunk;
using penstock::engine::Cutter;
using penstock::engine::CutRules;
using penstock::engine::Piece;
using penstock::engine::RequestRange;
using penstock::fuzz::Input;
using penstock::fuzz::promise;

constexpr std::uint64_t kRangeBytes = 200'000;

struct Case {
    std::vector<RequestRange> ranges;
    std::vector<penstock::PlanPiece> pieces;
    CutRules rules;
    std::uint64_t wanted_bytes = 0;
};

Case drawn(Input& input, std::vector<std::byte>& memory) {
    Case made;
    made.rules.alignment = std::uint64_t{1} << input.between(0, 12);
    made.rules.chunk_bytes = made.rules.alignment * input.between(1, 64);
    made.rules.pieces_max = static_cast<std::uint32_t>(input.between(1, 300));
    made.rules.pack = input.coin();
    std::uint64_t position = 0;
    for (std::uint64_t i = 0, count = input.between(1, 8); i < count; ++i) {
        const std::uint64_t bytes = input.between(1, kRangeBytes);
        made.ranges.push_back({nullptr, input.between(0, 1u << 30), memory.data(), bytes, position});
        position += bytes;
        for (std::uint64_t done = 0; done < bytes;) {  // cut at any places; pieces may be empty
            const std::uint64_t piece = std::min(bytes - done, input.between(0, kRangeBytes));
            made.pieces.push_back({i, done, piece});
            done += piece;
            made.wanted_bytes += piece;
            if (piece == 0 && input.empty()) break;
        }
    }
    return made;
}

void check_operation(const Piece& piece, const CutRules& rules) {
    promise(piece.bytes > 0, "no piece is empty");
    promise(piece.operation_offset % rules.alignment == 0 && piece.operation_bytes % rules.alignment == 0 &&
                piece.slot_offset % rules.alignment == 0,
            "operations and slots are aligned");
    promise(piece.operation_offset <= piece.offset_bytes &&
                piece.offset_bytes + piece.bytes <= piece.operation_offset + piece.operation_bytes,
            "the wanted bytes are a part of the operation's");
    promise(piece.slot_offset + piece.operation_bytes <= rules.chunk_bytes, "the operation lies in its slot");
}

// Follows the pieces of the plan. Every byte must come once and in order.
class Follower {
  public:
    explicit Follower(const Case& made) : made_(made) {}
    void see(const Piece& piece) {
        while (index_ < made_.pieces.size() && within_ == made_.pieces[index_].bytes) {
            ++index_;
            within_ = 0;
        }
        promise(index_ < made_.pieces.size(), "no byte comes twice");
        const auto& source = made_.pieces[index_];
        const auto& range = made_.ranges[source.range];
        promise(piece.offset_bytes == range.offset_bytes + source.offset_bytes + within_, "bytes come in order");
        promise(piece.position == range.position + source.offset_bytes + within_, "positions follow the request");
        promise(piece.memory == range.memory + source.offset_bytes + within_, "memory follows the request");
        promise(piece.bytes <= source.bytes - within_, "a piece stays in its source");
        within_ += piece.bytes;
        seen_bytes_ += piece.bytes;
    }
    std::uint64_t seen_bytes() const { return seen_bytes_; }

  private:
    const Case& made_;
    std::size_t index_ = 0;
    std::uint64_t within_ = 0;
    std::uint64_t seen_bytes_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    Input input(data, bytes);
    std::vector<std::byte> memory(kRangeBytes);
    const Case made = drawn(input, memory);
    Cutter cutter(made.ranges, made.pieces, made.rules);
    Follower follower(made);
    Chunk chunk;
    while (cutter.next(chunk)) {
        std::uint64_t end = 0;
        promise(!chunk.pieces.empty() && chunk.pieces.size() <= made.rules.pieces_max, "a chunk has its pieces");
        for (const Piece& piece : chunk.pieces) {
            check_operation(piece, made.rules);
            promise(piece.slot_offset >= end, "operations of a chunk do not overlap in the slot");
            end = piece.slot_offset + piece.operation_bytes;
            follower.see(piece);
        }
    }
    promise(follower.seen_bytes() == made.wanted_bytes, "every byte comes");
    return 0;
}
