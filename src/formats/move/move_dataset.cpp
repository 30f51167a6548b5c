// See move_dataset.hpp.
#include "formats/move/move_dataset.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/current_error.hpp"
#include "formats/faults.hpp"
#include "formats/move/batches.hpp"
#include "formats/move/box_moves.hpp"
#include "formats/move/decoded.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kNearBytes = 4095;            // gaps that a read moves with what lies around them
constexpr std::uint64_t kStraightBytes = 256 * kKiB;  // runs that a read does not take through scratch

[[noreturn]] void refuse(const DataFile& file, std::string cause, std::string advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = "select elements";
    info.file = file.name();
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    throw Error(std::move(info));
}

std::vector<BoxDimension> memory_grid(const StoredDataset& dataset, const data::Selection& selection) {
    std::vector<BoxDimension> grid;
    for (std::size_t axis = 0; axis < dataset.grid.shape.size(); ++axis) {
        const std::int64_t stride = selection.memory_strides[axis];
        grid.push_back({static_cast<std::uint64_t>(selection.box.count[axis]), stride, stride});
    }
    return grid;
}

// Throws unless the elements lie in the memory, and do not overlap there. Returns their bytes.
std::uint64_t check(const DataFile& file, const StoredDataset& dataset, const DatasetMove& move) {
    if (!dataset.refusal.empty()) throw unsupported({file.name(), dataset.name}, dataset.refusal);
    data::check_box(dataset.grid, move.selection.box);
    std::vector<std::uint64_t> counts;
    std::vector<std::int64_t> strides;
    std::uint64_t bytes = dataset.grid.item_bytes;
    const std::vector<BoxDimension> grid = memory_grid(dataset, move.selection);
    for (const BoxDimension& one : grid) {
        counts.push_back(one.extent);
        strides.push_back(one.destination_stride);
        bytes *= one.extent;
    }
    const ByteSpan span = byte_span(dataset.grid.item_bytes, counts, strides);
    if (span.low < 0) refuse(file, "a stride of the memory is negative", "give the lowest address first");
    if (static_cast<std::uint64_t>(span.high) > move.memory.bytes) {
        refuse(file,
               "the selection needs " + std::to_string(span.high) + " bytes, the memory has " +
                   std::to_string(move.memory.bytes),
               "give larger memory, or select less");
    }
    if (bytes != 0 && move.memory.data == nullptr) refuse(file, "the memory is null", "give memory");
    const Box item{.destination = move.memory.data, .source = move.memory.data, .item_bytes = dataset.grid.item_bytes};
    split_box(item, grid, [](const Box&) {});
    return bytes;
}

// One read or write of a selection.
class Movement {
  public:
    Movement(const DataFile& file, const StoredDataset& dataset, const DatasetMove& move, Direction direction)
        : file_(file),
          dataset_(dataset),
          move_(move),
          direction_(direction),
          batches_(file.context(), direction, move.memory.kind, move.options) {}

    DatasetMoved run(std::uint64_t wanted_bytes) {
        const auto begin = Clock::now();
        DatasetMoved moved;
        ErrorInfo error;
        try {
            if (!dataset_.filters.empty()) decoded_.emplace(file_, dataset_, move_.memory, move_.options);
            data::for_each_part(dataset_.grid, move_.selection, [&](const data::SelectedPart& part) { take(part); });
            if (decoded_)
                decoded_->finish();
            else
                batches_.finish();
        } catch (...) {
            error = info_of_current_exception(direction_ == Direction::read ? "read" : "write");
        }
        moved.outcome = decoded_ ? decoded_->sum() : batches_.sum();
        if (decoded_) moved.decoded_bytes = moved.outcome.bytes;
        moved.outcome.bytes += filled_bytes_;
        moved.outcome.error = std::move(error);
        moved.filled_bytes = filled_bytes_;
        moved.outcome.seconds = seconds_since(begin);
        moved.outcome.evidence.seconds = moved.outcome.seconds;
        if (move_.options.progress) move_.options.progress(moved.outcome.bytes, wanted_bytes);
        return moved;
    }

  private:
    std::byte* memory_at(std::int64_t offset) const { return static_cast<std::byte*>(move_.memory.data) + offset; }

    void take(const data::SelectedPart& part) {
        const std::span cell(part.cell.data(), part.dimensions);
        const std::optional<ChunkPlace> place = file_.container().place(dataset_, cell);
        if (!place) {
            fill(part);
            return;
        }
        if (direction_ == Direction::write && place->is_behind_link) {
            throw unsupported({place->file, dataset_.name}, "the chunk is a link, or lies behind one",
                              "put the file itself there, or write to the store that the link leads to");
        }
        if (decoded_) {
            decoded_->add(part, *place);
            return;
        }
        if (data::chunk_bytes(dataset_.grid) > place->bytes) {
            throw cut_short({place->file.empty() ? file_.name() : place->file, dataset_.name},
                            "the chunk has " + std::to_string(place->bytes) + " bytes, its shape says " +
                                std::to_string(data::chunk_bytes(dataset_.grid)));
        }
        const bool is_read = direction_ == Direction::read;
        const data::CutLimits limits{.gap_bytes = is_read ? kNearBytes : 0,
                                     .straight_bytes = is_read ? kStraightBytes : 1,
                                     .scratch_bytes = std::max(kScratchBytes, dataset_.grid.item_bytes),
                                     .allow_straight = is_read || dataset_.type.swap_bytes() == 0};
        const File file = file_.file_of(*place);
        data::cut_part(part, dataset_.grid.item_bytes, limits, [&](const data::ChunkSpan& span) {
            add(span, {file, place->offset_bytes + span.chunk_offset, span.bytes, nullptr});
        });
    }

    void add(const data::ChunkSpan& span, FilePiece piece) {
        if (span.straight) {
            piece.memory = memory_at(span.memory_offset);
            batches_.add(piece, {}, span.bytes);
            if (dataset_.type.swap_bytes() != 0) batches_.add_after(swapped_in_place(piece));
            return;
        }
        boxes_.clear();
        offsets_.clear();
        std::uint64_t elements = 1;
        for (const BoxDimension& one : span.grid) elements *= one.extent;
        split(span);
        batches_.add(piece, {boxes_, offsets_}, elements * dataset_.grid.item_bytes);
    }

    Box swapped_in_place(const FilePiece& piece) const {
        return {.destination = piece.memory,
                .source = piece.memory,
                .item_bytes = piece.bytes,
                .swap_bytes = dataset_.type.swap_bytes()};
    }

    // Boxes between a span in scratch, whose first byte stands at the place of the memory's, and the memory.
    void split(const data::ChunkSpan& span) {
        std::byte* memory = memory_at(span.memory_offset);
        const Box item{.destination = memory,
                       .source = memory,
                       .item_bytes = dataset_.grid.item_bytes,
                       .swap_bytes = dataset_.type.swap_bytes()};
        std::vector<BoxDimension> grid(span.grid.begin(), span.grid.end());
        if (direction_ == Direction::write) {
            for (BoxDimension& one : grid) std::swap(one.destination_stride, one.source_stride);
        }
        split_box(item, grid, [&](const Box& box) {
            const void* scratch = direction_ == Direction::read ? box.source : box.destination;
            offsets_.push_back(static_cast<std::uint64_t>(static_cast<const std::byte*>(scratch) - memory));
            boxes_.push_back(box);
        });
    }

    void fill(const data::SelectedPart& part) {
        if (direction_ == Direction::write) {
            throw unsupported({file_.name(), dataset_.name}, "a chunk of the selection is not stored yet",
                              "write it from Python, which makes chunks");
        }
        const std::vector<std::byte> zeros(dataset_.fill.empty() ? dataset_.grid.item_bytes : 0);
        std::vector<Box> boxes;
        std::vector<BoxDimension> grid(part.grid.begin(),
                                       part.grid.begin() + static_cast<std::ptrdiff_t>(part.dimensions));
        for (BoxDimension& one : grid) one.source_stride = 0;  // each element is the one fill value
        const Box item{.destination = memory_at(part.memory_offset), .item_bytes = dataset_.grid.item_bytes};
        split_box(item, grid, [&](const Box& box) { boxes.push_back(box); });
        fill_boxes(file_.context(), boxes, dataset_.fill.empty() ? zeros : dataset_.fill, move_.memory.kind);
        std::uint64_t bytes = dataset_.grid.item_bytes;
        for (std::size_t axis = 0; axis < part.dimensions; ++axis) bytes *= part.grid[axis].extent;
        filled_bytes_ += bytes;
    }

    const DataFile& file_;
    const StoredDataset& dataset_;
    const DatasetMove& move_;
    Direction direction_;
    Batches batches_;
    std::optional<DecodedReader> decoded_;  // of chunks that went through filters
    std::vector<Box> boxes_;
    std::vector<std::uint64_t> offsets_;
    std::uint64_t filled_bytes_ = 0;
};

}  // namespace

DatasetMoved read_dataset(const DataFile& file, const StoredDataset& dataset, const DatasetMove& move) {
    const std::uint64_t bytes = check(file, dataset, move);
    return Movement(file, dataset, move, Direction::read).run(bytes);
}

DatasetMoved write_dataset(const DataFile& file, const StoredDataset& dataset, const DatasetMove& move) {
    const std::uint64_t bytes = check(file, dataset, move);
    if (!file.writable()) {
        ErrorInfo info;
        info.code = ErrorCode::read_only;
        info.operation = "write dataset " + shown(dataset.name) + " of";
        info.file = file.name();
        info.cause = "the file was opened for reading";
        info.advice = "open it with writable";
        throw Error(std::move(info));
    }
    if (!dataset.filters.empty()) {
        throw unsupported({file.name(), dataset.name}, "its chunks are encoded", "write whole chunks from Python");
    }
    if (!dataset.write_refusal.empty()) throw unsupported({file.name(), dataset.name}, dataset.write_refusal);
    return Movement(file, dataset, move, Direction::write).run(bytes);
}

}  // namespace penstock::formats
