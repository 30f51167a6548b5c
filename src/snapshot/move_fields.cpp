// See move_fields.hpp.
#include "snapshot/move_fields.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "data/decode/checksums/sums.hpp"
#include "formats/create/hdf5/encoder.hpp"
#include "formats/faults.hpp"
#include "snapshot/chunk_sums.hpp"

namespace penstock::snapshot {
namespace {

constexpr auto kWatchEvery = std::chrono::milliseconds(50);

// Until it ends, or until the watch has said no once.
Outcome watched(const Transfer& transfer, const SnapshotWatch& goes_on) {
    while (goes_on && !transfer.wait(Deadline::after(kWatchEvery))) {
        if (goes_on()) continue;
        transfer.cancel();
        break;
    }
    return transfer.result();
}

const std::byte* memory_of(const FieldPiece& piece) {
    return static_cast<const std::byte*>(piece.field->data) + piece.first_byte;
}

[[noreturn]] void tell(const Outcome& outcome, const FieldTarget& target, std::span<const FieldPiece> pieces) {
    ErrorInfo info = outcome.error;
    info.operation = "write snapshot";
    info.file = target.name;
    for (const FieldPiece& piece : pieces) {
        if (info.offset_bytes >= piece.offset_bytes && info.offset_bytes - piece.offset_bytes < piece.bytes) {
            info.cause = "dataset " + formats::shown(piece.field->dataset) + ": " + info.cause;
        }
    }
    throw Error(std::move(info));
}

// The sums of those pieces that have one, in their order, as they lie in the file.
std::vector<std::byte> stored_sums(const Context& context, const FieldTarget& target,
                                   std::span<const FieldPiece> pieces) {
    std::vector<ChunkBegin> chunks;
    for (const FieldPiece& piece : pieces)
        if (piece.summed_bytes != 0) chunks.push_back({memory_of(piece), piece.bytes, piece.summed_bytes});
    std::vector<std::byte> stored;
    if (chunks.empty()) return stored;
    for (const std::uint32_t sum : fletcher_sums(context, chunks, target.memory))
        for (unsigned i = 0; i < data::kSumBytes; ++i) stored.push_back(static_cast<std::byte>(sum >> (8 * i)));
    return stored;
}

void write_sums(const Context& context, const FieldTarget& target, std::span<const FieldPiece> pieces,
                std::span<std::byte> sums) {
    std::vector<Range> ranges;
    for (const FieldPiece& piece : pieces) {
        if (piece.summed_bytes == 0) continue;
        ranges.push_back({target.file, piece.offset_bytes + piece.summed_bytes,
                          sums.data() + ranges.size() * data::kSumBytes, data::kSumBytes});
    }
    if (ranges.empty()) return;
    const Outcome outcome =
        context.start(Direction::write, ranges, MemoryKind::system, {.path = PathKind::buffered}).result();
    if (!outcome.ok()) tell(outcome, target, pieces);
}

}  // namespace

std::vector<FieldPiece> pieces_of(const SnapshotField& field, std::uint64_t first_byte,
                                  const formats::Hdf5Dataset& dataset, std::span<const formats::DataPlace> places) {
    if (field.bytes == 0 || places.empty()) return {};
    if (dataset.chunk.empty()) return {{&field, 0, field.bytes, places[0].offset_bytes + first_byte}};
    const std::uint64_t chunk_bytes = formats::element_count(dataset.chunk) * dataset.type.item_bytes;
    std::vector<FieldPiece> pieces;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::uint64_t begin = i * chunk_bytes, bytes = std::min(chunk_bytes, field.bytes - begin);
        pieces.push_back({&field, begin, bytes, places[i].offset_bytes, dataset.filters.empty() ? 0 : chunk_bytes});
    }
    return pieces;
}

Evidence move_fields(const Context& context, const FieldTarget& target, std::span<const FieldPiece> pieces,
                     const SnapshotWatch& goes_on) {
    std::vector<Range> ranges;
    for (const FieldPiece& piece : pieces)
        ranges.push_back({target.file, piece.offset_bytes, const_cast<std::byte*>(memory_of(piece)), piece.bytes});
    if (ranges.empty()) return {};
    const Transfer transfer = context.start(Direction::write, ranges, target.memory, target.transfer);
    std::vector<std::byte> sums = stored_sums(context, target, pieces);
    Outcome outcome = watched(transfer, goes_on);
    if (!outcome.ok()) tell(outcome, target, pieces);
    write_sums(context, target, pieces, sums);
    return std::move(outcome.evidence);
}

}  // namespace penstock::snapshot
