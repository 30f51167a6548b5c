// See staging_slots.hpp.
#include "engine/slots/staging_slots.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "path/mapped/mappings.hpp"

namespace penstock::engine {
namespace {

constexpr std::uint64_t kSlotStep = 4 * kKiB;
// Slots may have as many times the memory that a shape needs; below kSpareBytes any surplus is allowed.
constexpr std::uint64_t kSpareTimes = 4;
constexpr std::uint64_t kSpareBytes = 16 * kMiB;
constexpr std::uint32_t kSlotsAtOnce = 2;  // of a team: one is filled while the other is copied

std::uint64_t slot_bytes(const Shape& shape) noexcept { return align_up(shape.chunk_bytes, kSlotStep); }

std::uint64_t bytes_of(std::uint32_t slots, const Shape& shape) noexcept {
    return shape.staged ? align_up(slot_bytes(shape) * slots, kStagingStep) : 0;
}

std::uint32_t slots_in(std::span<const std::byte> block, const Shape& shape) noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(block.size() / slot_bytes(shape), shape.depth));
}

void gather_copies_to_host(std::span<const Piece> pieces, std::vector<CopyPiece>& copies) {
    copies.clear();
    for (const Piece& piece : pieces) {
        copies.push_back({piece.operation_memory + piece.lead_bytes(), piece.memory, piece.bytes});
    }
}

// A file that was cut short while the device read its mapping may have given bytes that no longer exist.
void check_lent(TransferState& transfer, Piece& piece) {
    if (piece.moved_bytes == 0 ||
        path::Mappings::still_inside(*piece.file, piece.operation_offset, piece.moved_bytes)) {
        return;
    }
    piece.moved_bytes = 0;
    transfer.reached_end();
}

}  // namespace

std::uint64_t StagingSlots::needed_bytes(const Shape& shape) noexcept {
    return bytes_of(shape.depth, shape);
}

std::uint64_t StagingSlots::first_bytes(const Shape& shape) noexcept {
    return bytes_of(std::min(shape.depth, kSlotsAtOnce), shape);
}

std::uint64_t StagingSlots::bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const std::span<std::byte> block : blocks_) sum += block.size();
    return sum;
}

bool StagingSlots::holds_at_least(std::uint32_t slots, const Shape& shape) const noexcept {
    if (!shape.staged) return true;
    std::uint32_t found = 0;
    for (const std::span<std::byte> block : blocks_) found += slots_in(block, shape);
    return found >= slots;
}

bool StagingSlots::fit(const Shape& shape) const noexcept {
    return holds_at_least(shape.depth, shape) && bytes() <= std::max(kSpareTimes * needed_bytes(shape), kSpareBytes);
}

bool StagingSlots::fit_first(const Shape& shape) const noexcept {
    const bool enough = holds_at_least(std::min(shape.depth, kSlotsAtOnce), shape);
    return enough && bytes() <= std::max(kSpareTimes * needed_bytes(shape), kSpareBytes);
}

void StagingSlots::cut(const Shape& shape) {
    while (events_.size() < shape.depth) events_.push_back(device_.make_event());
    shape_ = shape;
    std::uint32_t held = shape.staged ? 0 : shape.depth;
    for (const std::span<std::byte> block : blocks_) held += slots_in(block, shape);
    slots_.resize(std::min(held, shape.depth));
    slots_.reserve(shape.depth);  // for add(), which takes no memory of its own
    blocks_.reserve(blocks_.size() + shape.depth);
    newest_.reset();
}

std::uint64_t StagingSlots::missing_bytes() const noexcept {
    const auto missing = shape_.depth - static_cast<std::uint32_t>(slots_.size());
    return bytes_of(std::min(missing, kSlotsAtOnce), shape_);
}

void StagingSlots::add(std::span<std::byte> memory) noexcept {
    slots_.resize(std::min<std::size_t>(shape_.depth, slots_.size() + slots_in(memory, shape_)));
    blocks_.push_back(memory);
}

std::byte* StagingSlots::slot(std::uint32_t index) const noexcept {
    for (const std::span<std::byte> block : blocks_) {
        const std::uint32_t here = slots_in(block, shape_);
        if (index < here) return block.data() + index * slot_bytes(shape_);
        index -= here;
    }
    return nullptr;
}

bool StagingSlots::hold(const Job& job) const noexcept {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
        return slot.job == &job && (slot.phase == Slot::Phase::storage || slot.phase == Slot::Phase::copying);
    });
}

void StagingSlots::drain() noexcept {
    try {
        stream_->synchronize();
    } catch (const Error&) {  // the device failed: nothing moves any more
    }
}

void StagingSlots::open(Chunk& chunk, Job& job) {
    const auto found =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& one) { return one.phase == Slot::Phase::free; });
    chunk.job = &job;
    chunk.slot = static_cast<std::uint32_t>(found - slots_.begin());
    if (shape_.staged) {
        for (Piece& piece : chunk.pieces) piece.operation_memory = slot(chunk.slot) + piece.slot_offset;
    }
    found->pieces.clear();
    *found = {.phase = Slot::Phase::storage, .job = &job, .pieces = std::move(found->pieces), .parts_open = 1};
    ++taken_;
}

void StagingSlots::copy_to_host(Chunk& chunk) {
    Slot& slot = slots_[chunk.slot];
    slot.pieces.swap(chunk.pieces);
    chunk.job = nullptr;
    try {
        queue_copies(chunk.slot);
        slot.phase = Slot::Phase::copying;
        if (slot.job->transfer().request().host_memory) {
            ready_.push_back(chunk.slot);
        } else {
            copying_.push_back(chunk.slot);
        }
    } catch (const Error& error) {
        fail(chunk.slot, error);
    }
}

bool StagingSlots::take_ready(Chunk& chunk) {
    if (ready_.empty()) return false;
    chunk.slot = ready_.front();
    ready_.pop_front();
    Slot& slot = slots_[chunk.slot];
    slot.phase = Slot::Phase::storage;
    chunk.job = slot.job;
    chunk.pieces.swap(slot.pieces);
    slot.pieces.clear();
    return true;
}

// A refused copy is the fault of the transfer whose pointers it names, and not of others that use these slots.
bool StagingSlots::copy_lent(const Chunk& chunk, const Piece& piece, const Completion& completion) {
    TransferState& transfer = chunk.job->transfer();
    try {
        stream_->copy(CopyDirection::to_device, piece.memory + piece.moved_bytes, completion.lent, completion.bytes);
    } catch (const Error& error) {
        sound_ = false;
        transfer.stop(error.info());
        return false;
    }
    slots_[chunk.slot].lent = true;
    if (completion.lent_pinned) transfer.count_lent_pinned(shape_.path);
    return true;
}

bool StagingSlots::put(Chunk& chunk) {
    Slot& slot = slots_[chunk.slot];
    if (slot.pieces.empty()) {
        slot.pieces.swap(chunk.pieces);
    } else {
        slot.pieces.insert(slot.pieces.end(), chunk.pieces.begin(), chunk.pieces.end());
    }
    return --slot.parts_open == 0;
}

void StagingSlots::copy_early(std::uint32_t index) {
    Slot& slot = slots_[index];
    if (slot.failure) return;
    try {
        queue_copies(index);
    } catch (const Error& error) {  // told when the slot is complete: other workers still fill it
        slot.failure = error;
    }
}

void StagingSlots::leave_storage(std::uint32_t index) {
    Slot& slot = slots_[index];
    const bool to_device = shape_.staged && shape_.direction == Direction::read;
    if (!slot.lent && !to_device) return end_chunk(index, Slot::Phase::free, false);
    try {
        if (slot.failure) throw Error(*slot.failure);
        if (slot.lent) {
            stream_->record(*events_[index]);
        } else {
            queue_copies(index);
        }
    } catch (const Error& error) {
        return fail(index, error);
    }
    if (slot.job->transfer().request().host_memory) return end_chunk(index, Slot::Phase::free, false);
    slot.phase = Slot::Phase::copying;
    copying_.push_back(index);
}

// Parts come in any order; sorted, neighbours make one copy.
void StagingSlots::queue_copies(std::uint32_t index) {
    Slot& slot = slots_[index];
    TransferState& transfer = slot.job->transfer();
    const std::span<Piece> pieces = std::span(slot.pieces).subspan(slot.queued);
    const bool to_device = shape_.direction == Direction::read;
    if (to_device) {
        const auto before = [](const Piece& a, const Piece& b) { return a.slot_offset < b.slot_offset; };
        if (!std::is_sorted(pieces.begin(), pieces.end(), before)) std::sort(pieces.begin(), pieces.end(), before);
        gather_copies(pieces, copies_);
    } else {
        gather_copies_to_host(pieces, copies_);
    }
    std::uint64_t bytes = 0;
    for (const CopyPiece& copy : copies_) bytes += copy.bytes;
    transfer.count_staged(shape_.path, bytes);
    if (transfer.request().host_memory) {
        for (const CopyPiece& copy : copies_) std::memcpy(copy.destination, copy.source, copy.bytes);
        return;
    }
    const CopyDirection direction = to_device ? CopyDirection::to_device : CopyDirection::to_host;
    if (copies_.size() == 1) {
        stream_->copy(direction, copies_[0].destination, copies_[0].source, bytes);
    } else if (!copies_.empty()) {
        stream_->copy_batch(direction, copies_);
    }
    slot.queued = slot.pieces.size();
    stream_->record(*events_[index]);
    newest_ = index;
}

bool StagingSlots::collect() {
    bool any = false;
    while (!copying_.empty()) {
        const std::uint32_t index = copying_.front();
        std::optional<Error> failure;
        try {
            if (!events_[index]->done()) break;
        } catch (const Error& error) {
            failure = error;
        }
        copying_.pop_front();
        any = true;
        if (failure) {
            fail(index, *failure);
        } else if (shape_.direction == Direction::write) {
            ready_.push_back(index);
        } else {
            end_chunk(index, Slot::Phase::free, false);
        }
    }
    return any;
}

// Nothing of the chunk counts. Parts of it may be on their way to memory that is the caller's again once the job ends.
void StagingSlots::fail(std::uint32_t index, const Error& error) {
    sound_ = false;
    slots_[index].job->transfer().stop(error.info());
    drain();
    end_chunk(index, Slot::Phase::free, true);
}

void StagingSlots::end_chunk(std::uint32_t index, Slot::Phase next, bool without_bytes) {
    Slot& slot = slots_[index];
    TransferState& transfer = slot.job->transfer();
    for (Piece& piece : slot.pieces) {
        if (without_bytes) piece.moved_bytes = piece.fallen_back_bytes = 0;
        if (slot.lent) check_lent(transfer, piece);
    }
    account(transfer, shape_.path, slot.pieces);
    slot.phase = next;
    if (next == Slot::Phase::free) --taken_;
    slot.job->finish_chunk();
}

void StagingSlots::give_up(Chunk& chunk) {
    slots_[chunk.slot].pieces.swap(chunk.pieces);
    end_chunk(chunk.slot, Slot::Phase::given_up, true);
}

void StagingSlots::landed(std::uint32_t slot) noexcept {
    slots_[slot].phase = Slot::Phase::free;
    --taken_;
}

void StagingSlots::abandon() {
    copying_.clear();
    ready_.clear();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        const Slot::Phase phase = slots_[i].phase;
        if (phase == Slot::Phase::storage || phase == Slot::Phase::copying) end_chunk(i, Slot::Phase::free, true);
    }
}

}  // namespace penstock::engine
