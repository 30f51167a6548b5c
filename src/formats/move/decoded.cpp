// See decoded.hpp.
#include "formats/move/decoded.hpp"

#include <algorithm>

#include "context/crew.hpp"
#include "formats/faults.hpp"
#include "formats/move/batches.hpp"
#include "formats/move/box_moves.hpp"
#include "formats/move/sum_outcomes.hpp"

namespace penstock::formats {
namespace {

constexpr std::size_t kMostChunks = 4096;  // of one read

// A part's elements in C order without gaps.
data::Strides dense_strides(const data::SelectedPart& part, std::uint64_t item_bytes) {
    data::Strides strides{};
    auto stride = static_cast<std::int64_t>(item_bytes);
    for (std::size_t axis = part.dimensions; axis-- > 0;) {
        strides[axis] = stride;
        stride *= static_cast<std::int64_t>(part.grid[axis].extent);
    }
    return strides;
}

}  // namespace

DecodedReader::DecodedReader(const DataFile& file, const StoredDataset& dataset, const MemoryView& memory,
                             const TransferOptions& options)
    : file_(file),
      dataset_(dataset),
      memory_(memory),
      options_(options),
      pipeline_(dataset.filters, data::chunk_bytes(dataset.grid)) {
    options_.progress = {};
}

DecodedReader::~DecodedReader() {
    for (const Streams& streams : streams_) {
        if (!streams.transfer) continue;
        streams.transfer->cancel();
        streams.transfer->wait();
    }
}

bool DecodedReader::decodes_in_place() const noexcept {
    return memory_.kind == MemoryKind::system || memory_.kind == MemoryKind::pinned;
}

void DecodedReader::add(const data::SelectedPart& part, const ChunkPlace& place) {
    std::uint64_t bytes = dataset_.grid.item_bytes;
    for (std::size_t axis = 0; axis < part.dimensions; ++axis) bytes *= part.grid[axis].extent;
    const Streams& full = streams_[filling_];
    const bool is_full =
        !full.parts.empty() &&
        (full.parts.size() >= kMostChunks || most_files_.is_full(full.files.size()) ||
         full.stored_bytes + place.bytes > kScratchBytes || full.element_bytes + bytes > kScratchBytes);
    if (is_full) turn();
    Streams& streams = streams_[filling_];
    const bool is_same = !streams.parts.empty() && streams.parts.back().file == place.file;
    if (!is_same) streams.files.push_back(file_.file_of(place));
    streams.parts.push_back({part, place.file, streams.files.size() - 1, place.offset_bytes, place.bytes,
                             streams.stored_bytes, streams.element_bytes, bytes, place.skipped});
    streams.stored_bytes += (place.bytes + 15) / 16 * 16;
    streams.element_bytes += (bytes + 15) / 16 * 16;
}

void DecodedReader::finish() {
    turn();
    settle(streams_[1 - filling_]);
}

void DecodedReader::turn() {
    start(streams_[filling_]);
    filling_ = 1 - filling_;
    settle(streams_[filling_]);
}

void DecodedReader::start(Streams& streams) {
    if (streams.parts.empty()) return;
    if (!streams.memory || streams.memory->bytes() < streams.stored_bytes + data::kStreamPadding) {
        streams.memory.reset();
        streams.memory =
            file_.context().allocate(streams.stored_bytes + data::kStreamPadding, MemoryKind::system);
    }
    std::vector<Range> ranges;
    for (const EncodedPart& part : streams.parts) {
        if (part.stored_bytes == 0) continue;
        ranges.push_back({&streams.files[part.in_files], part.offset_bytes,
                          static_cast<std::byte*>(streams.memory->data()) + part.in_streams, part.stored_bytes});
    }
    if (ranges.empty()) throw cut_short({streams.parts.front().file, dataset_.name}, "the chunk has no bytes");
    streams.transfer = file_.context().start(Direction::read, ranges, MemoryKind::system, options_);
}

void DecodedReader::settle(Streams& streams) {
    if (!streams.transfer) return;
    const Outcome outcome = streams.transfer->result();
    streams.transfer.reset();
    add_outcome(sum_, outcome);
    outcome.or_throw();
    if (outcome.reached_end) throw cut_short({file_.name(), dataset_.name}, "a chunk became shorter while it was read");
    decode(streams);
    Streams next;
    next.memory.swap(streams.memory);
    streams = std::move(next);
}

void DecodedReader::decode(Streams& streams) {
    if (!decodes_in_place() && (!pinned_ || pinned_->bytes() < streams.element_bytes)) {
        pinned_.reset();
        pinned_ = file_.context().allocate(streams.element_bytes, MemoryKind::pinned);
    }
    std::vector<data::StoredChunk> chunks;
    std::vector<data::PlacedBox> boxes;
    std::vector<Box> to_device;
    std::uint64_t elements = 0;
    for (const EncodedPart& one : streams.parts) {
        elements += one.element_bytes;
        const data::SelectedPart& part = one.part;
        std::byte* memory = static_cast<std::byte*>(memory_.data) + part.memory_offset;
        std::byte* place = decodes_in_place() ? memory : static_cast<std::byte*>(pinned_->data()) + one.in_scratch;
        const data::Strides dense = dense_strides(part, dataset_.grid.item_bytes);
        std::vector<BoxDimension> grid(part.grid.begin(),
                                       part.grid.begin() + static_cast<std::ptrdiff_t>(part.dimensions));
        std::vector<BoxDimension> onward = grid;
        for (std::size_t axis = 0; axis < grid.size() && !decodes_in_place(); ++axis) {
            grid[axis].destination_stride = onward[axis].source_stride = dense[axis];
        }
        Box item{.destination = place,
                 .source = place,
                 .item_bytes = dataset_.grid.item_bytes,
                 .swap_bytes = dataset_.type.swap_bytes()};
        const std::size_t first = boxes.size();
        split_box(item, grid, [&](const Box& box) {
            const auto behind = static_cast<std::uint64_t>(static_cast<const std::byte*>(box.source) - place);
            boxes.push_back({box, part.chunk_offset + behind});
        });
        const auto* stored = static_cast<const std::byte*>(streams.memory->data()) + one.in_streams;
        chunks.push_back({{stored, one.stored_bytes}, one.skipped, first, boxes.size() - first, true});
        item = {.destination = memory, .source = place, .item_bytes = dataset_.grid.item_bytes};
        if (!decodes_in_place()) split_box(item, onward, [&](const Box& box) { to_device.push_back(box); });
    }
    os::Crew& crew = context::crew_of(file_.context());
    const data::CoreResult result =
        data::decode_chunks(pipeline_, chunks, boxes, {.deadline = options_.deadline, .crew = &crew});
    if (result.fault) throw damaged({streams.parts[result.fault->first].file, dataset_.name}, result.fault->second);
    if (result.done < chunks.size()) throw Error(ErrorCode::timed_out, "decode chunks", "the deadline came");
    if (!to_device.empty()) file_.context().copy_boxes(to_device, memory_.kind);
    sum_.bytes += elements;
}

}  // namespace penstock::formats
