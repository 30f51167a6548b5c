// See batches.hpp.
#include "formats/move/batches.hpp"

#include <algorithm>

#include "formats/faults.hpp"
#include "formats/move/box_moves.hpp"
#include "formats/move/sum_outcomes.hpp"

namespace penstock::formats {
namespace {

constexpr std::size_t kMostRanges = 16384, kMostBoxes = 16384;  // of one batch

}  // namespace

Batches::Batches(const Context& context, Direction direction, MemoryKind kind, const TransferOptions& options)
    : context_(context), direction_(direction), kind_(kind), options_(options) {
    options_.progress = {};
}

Batches::~Batches() {
    for (const Batch& batch : batches_) {
        if (!batch.transfer) continue;
        batch.transfer->cancel();
        batch.transfer->wait();
    }
}

void Batches::add(const FilePiece& piece, const ScratchBoxes& boxes, std::uint64_t element_bytes) {
    const bool in_scratch = piece.memory == nullptr;
    const Batch& full = batches_[filling_];
    const bool is_full = full.ranges.size() >= kMostRanges || full.boxes.size() + full.after.size() >= kMostBoxes ||
                         most_files_.is_full(full.files.size()) ||
                         (in_scratch && full.scratch_bytes != 0 && full.scratch_bytes + piece.bytes > kScratchBytes);
    if (is_full) turn();
    Batch& batch = batches_[filling_];
    if (batch.files.empty() || batch.files.back().name() != piece.file.name()) batch.files.push_back(piece.file);
    batch.ranges.push_back({nullptr, piece.offset_bytes, piece.memory, piece.bytes});
    batch.in_scratch.push_back(in_scratch ? std::optional(batch.scratch_bytes) : std::nullopt);
    batch.file_of_range.push_back(batch.files.size() - 1);
    for (std::size_t i = 0; i < boxes.boxes.size(); ++i) {
        batch.boxes.push_back(boxes.boxes[i]);
        batch.box_in_scratch.push_back(batch.scratch_bytes + boxes.offsets[i]);
    }
    if (in_scratch) batch.scratch_bytes += (piece.bytes + 15) / 16 * 16;
    batch.element_bytes += element_bytes;
}

void Batches::add_after(const Box& box) { batches_[filling_].after.push_back(box); }

void Batches::finish() {
    turn();
    settle(batches_[1 - filling_]);
}

// Starts what was collected, and ends what was started before.
void Batches::turn() {
    submit(batches_[filling_]);
    filling_ = 1 - filling_;
    settle(batches_[filling_]);
}

void Batches::place_scratch(Batch& batch) {
    if (batch.scratch_bytes != 0 && (!batch.scratch || batch.scratch->bytes() < batch.scratch_bytes)) {
        batch.scratch.reset();
        batch.scratch = context_.allocate(batch.scratch_bytes, kind_);
    }
    auto* scratch = batch.scratch ? static_cast<std::byte*>(batch.scratch->data()) : nullptr;
    for (std::size_t i = 0; i < batch.ranges.size(); ++i) {
        batch.ranges[i].file = &batch.files[batch.file_of_range[i]];
        if (batch.in_scratch[i]) batch.ranges[i].memory = scratch + *batch.in_scratch[i];
    }
    for (std::size_t i = 0; i < batch.boxes.size(); ++i) {
        std::byte* there = scratch + batch.box_in_scratch[i];
        if (direction_ == Direction::read)
            batch.boxes[i].source = there;
        else
            batch.boxes[i].destination = there;
    }
}

void Batches::submit(Batch& batch) {
    if (batch.ranges.empty()) return;
    place_scratch(batch);
    if (direction_ == Direction::write) move_boxes(context_, batch.boxes, kind_);
    batch.transfer = context_.start(direction_, batch.ranges, kind_, options_);
}

void Batches::settle(Batch& batch) {
    if (batch.transfer) {
        const Outcome outcome = batch.transfer->result();
        batch.transfer.reset();
        add_outcome(sum_, outcome);
        outcome.or_throw();
        if (outcome.reached_end) {
            const Range* last = &batch.ranges.front();
            for (const Range& one : batch.ranges) {
                if (one.offset_bytes + one.bytes > last->offset_bytes + last->bytes) last = &one;
            }
            throw cut_short({last->file->name()}, "elements end at byte " +
                                                      std::to_string(last->offset_bytes + last->bytes) +
                                                      ", the file at " + std::to_string(last->file->size_bytes()));
        }
        if (direction_ == Direction::read) move_boxes(context_, batch.boxes, kind_);
        move_boxes(context_, batch.after, kind_);
        sum_.bytes += batch.element_bytes;
    }
    Batch next;
    next.scratch.swap(batch.scratch);
    batch = std::move(next);
}

}  // namespace penstock::formats
