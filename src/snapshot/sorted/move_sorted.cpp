// See move_sorted.hpp.
#include "snapshot/sorted/move_sorted.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "formats/move/sum_outcomes.hpp"

namespace penstock::snapshot {
namespace {

constexpr std::uint64_t kDirectPage = 4096;

// Pieces of at most so many bytes, each of whole rows, or of a whole chunk.
std::vector<SortedPiece> cut(std::span<const SortedPiece> pieces, std::uint64_t most_bytes) {
    std::vector<SortedPiece> all;
    for (const SortedPiece& one : pieces) {
        const bool is_whole = one.piece.summed_bytes != 0;
        const std::uint64_t rows = std::max<std::uint64_t>(most_bytes / one.row_bytes, 1);
        const std::uint64_t step = is_whole ? one.piece.bytes : rows * one.row_bytes;
        for (std::uint64_t done = 0; done < one.piece.bytes; done += step) {
            SortedPiece part = one;
            part.piece.first_byte += done;
            part.piece.offset_bytes += done;
            part.piece.bytes = std::min(step, one.piece.bytes - done);
            all.push_back(part);
        }
    }
    return all;
}

// What is gathered together and then moved together.
class SortedRoom {
  public:
    SortedRoom(const Context& context, const FieldTarget& target, std::uint64_t bytes)
        : context_(context), target_(target), memory_(context.allocate(bytes, target.memory)) {}

    // Memory has the place in its page that the file has, as direct paths like it.
    std::uint64_t place_of(const SortedPiece& one) const {
        return align_up(used_, kDirectPage) + one.piece.offset_bytes % kDirectPage;
    }
    bool takes(const SortedPiece& one) const { return place_of(one) + one.piece.bytes <= memory_.bytes(); }
    void add(const SortedPiece& one) {
        const std::uint64_t place = place_of(one), first_row = one.piece.first_byte / one.row_bytes;
        std::byte* const to = static_cast<std::byte*>(memory_.data()) + place;
        gathers_.push_back({to, one.piece.field->data, one.order->first() + first_row, one.piece.bytes / one.row_bytes,
                            one.order->particles, one.row_bytes});
        fields_.push_back({one.piece.field->dataset, to, one.piece.bytes});
        pieces_.push_back({&fields_.back(), 0, one.piece.bytes, one.piece.offset_bytes, one.piece.summed_bytes});
        used_ = place + one.piece.bytes;
    }
    void flush(Outcome& sum, const SnapshotWatch& goes_on) {
        if (pieces_.empty()) return;
        context_.gather(gathers_, target_.memory);
        Outcome part;
        part.evidence = move_fields(context_, target_, pieces_, goes_on);
        formats::add_outcome(sum, part);
        gathers_.clear();
        pieces_.clear();
        fields_.clear();
        used_ = 0;
    }

  private:
    const Context& context_;
    const FieldTarget& target_;
    Buffer memory_;
    std::vector<RowGather> gathers_{};
    std::vector<FieldPiece> pieces_{};
    std::deque<SnapshotField> fields_{};  // what pieces point to stays where it is
    std::uint64_t used_ = 0;
};

std::uint64_t room_of(std::span<const SortedPiece> pieces, std::uint64_t wanted) {
    std::uint64_t all = 0, largest = 0;
    for (const SortedPiece& one : pieces) {
        all += one.piece.bytes + 2 * kDirectPage;
        largest = std::max(largest, one.piece.bytes + 2 * kDirectPage);
    }
    return std::min(all, std::max(wanted, largest));
}

}  // namespace

Evidence move_sorted(const Context& context, const FieldTarget& target, const SortedPieces& sorted,
                     const SnapshotWatch& goes_on) {
    if (sorted.pieces.empty()) return {};
    const std::uint64_t edges = std::min(sorted.room_bytes, 2 * kDirectPage);
    const std::vector<SortedPiece> all = cut(sorted.pieces, sorted.room_bytes - edges);
    SortedRoom room(context, target, room_of(all, sorted.room_bytes));
    Outcome sum;
    for (const SortedPiece& one : all) {
        if (!room.takes(one)) room.flush(sum, goes_on);
        room.add(one);
    }
    room.flush(sum, goes_on);
    return std::move(sum.evidence);
}

}  // namespace penstock::snapshot
