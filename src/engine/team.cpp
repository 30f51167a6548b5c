// See team.hpp. One mutex guards everything; it is held for the length of a few device calls at most, and taken twice
// for each part (hundreds of microseconds of copying).
#include "engine/team.hpp"

#include <algorithm>
#include <utility>

namespace penstock::engine {
namespace {
constexpr auto kPatience = std::chrono::milliseconds(100);
}

void gather_copies(const std::vector<Piece>& pieces, const std::byte* slot, std::vector<CopyPiece>& copies) {
    copies.clear();
    const void* allocation = nullptr;
    for (const Piece& piece : pieces) {
        const std::uint64_t bytes = piece.arrived_bytes();
        if (bytes == 0) continue;
        const std::byte* source = slot + piece.slot_offset + piece.lead_bytes();
        CopyPiece* last = copies.empty() || allocation != piece.allocation ? nullptr : &copies.back();
        allocation = piece.allocation;
        if (last != nullptr && static_cast<std::byte*>(last->destination) + last->bytes == piece.memory &&
            static_cast<const std::byte*>(last->source) + last->bytes == source) {
            last->bytes += bytes;
        } else {
            copies.push_back({piece.memory, source, bytes});
        }
    }
}

void account(TransferState& transfer, PathKind path, const std::vector<Piece>& pieces) {
    std::uint64_t arrived = 0;
    std::uint64_t fallen_back = 0;
    for (const Piece& piece : pieces) {
        const std::uint64_t bytes = piece.arrived_bytes();
        arrived += bytes - piece.fallen_back_bytes;
        fallen_back += piece.fallen_back_bytes;
        if (bytes < piece.bytes) transfer.short_at(piece.position + bytes);
    }
    if (arrived != 0) transfer.arrived(path, arrived);
    if (fallen_back != 0) transfer.arrived(PathKind::buffered, fallen_back);
}

Team::Team(StationPool& pool, std::unique_ptr<Station> station, Job& job)
    : pool_(pool),
      station_(std::move(station)),
      job_(job),
      part_bytes_(job.shape().part_bytes),
      slots_(station_->shape().depth) {}

Team::~Team() {
    if (sound_) {
        pool_.give_back(std::move(station_));
    } else {
        pool_.drop(std::move(station_));
    }
}

void Team::cut_parts(const Chunk& chunk) {
    std::uint64_t in_part = part_bytes_;  // full: the first piece opens a part
    for (const Piece& whole : chunk.pieces) {
        for (std::uint64_t done = 0; done < whole.operation_bytes;) {
            if (in_part >= part_bytes_) {
                parts_.emplace_back();
                in_part = 0;
            }
            Piece piece = whole;
            const std::uint64_t bytes = std::min(whole.operation_bytes - done, part_bytes_ - in_part);
            piece.operation_offset += done;
            piece.operation_bytes = bytes;
            piece.slot_offset += done;
            // Parts of operations that bypass the cache would need a lead of their own; shared slots are for the
            // others.
            piece.offset_bytes = piece.operation_offset;
            piece.bytes = bytes;
            piece.memory += done;
            piece.position += done;
            parts_.back().chunk.pieces.push_back(piece);
            parts_.back().chunk.bytes += bytes;
            done += bytes;
            in_part += bytes;
        }
    }
}

bool Team::open_slot() {
    const auto free_slot =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.phase == Slot::Phase::free; });
    Chunk chunk;
    if (!job_.next(chunk)) return false;
    const auto index = static_cast<std::uint32_t>(free_slot - slots_.begin());
    cut_parts(chunk);
    for (Part& part : parts_) {
        part.slot = index;
        part.memory = station_->slot(index);
    }
    free_slot->phase = Slot::Phase::filling;
    free_slot->pieces.clear();
    free_slot->parts_open = static_cast<std::uint32_t>(parts_.size());
    free_slot->by_parts = !started_ || job_.exhausted();
    free_slot->failure.reset();
    started_ = true;
    return true;
}

bool Team::next(Part& part, bool may_open) {
    std::unique_lock lock(mutex_);
    while (parts_.empty()) {
        if (!may_open || job_.exhausted()) return false;
        collect_finished();
        const bool room =
            std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.phase == Slot::Phase::free; });
        if (room) {
            if (!open_slot()) return false;
        } else {
            wait_for_slot(lock);
        }
    }
    part = std::move(parts_.front());
    parts_.pop_front();
    return true;
}

// Waits, without the lock, until a slot may have become free. Slots that are all still being filled by others end when
// their last part does.
void Team::wait_for_slot(std::unique_lock<std::mutex>& lock) {
    // One worker watches the device; a sleep on an event costs several times a sleep on a condition.
    if (copying_.empty() || watched_) {
        changed_.wait_for(lock, kPatience);
        return;
    }
    Event& event = station_->event(copying_.front());
    watched_ = true;
    lock.unlock();
    try {
        event.wait(Deadline::after(kPatience));
    } catch (const Error&) {  // collect_finished meets the same error, with the lock
    }
    lock.lock();
    watched_ = false;
}

void Team::filled(const Part& part) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[part.slot];
    slot.pieces.insert(slot.pieces.end(), part.chunk.pieces.begin(), part.chunk.pieces.end());
    if (slot.by_parts && !slot.failure) copy_part(part);
    if (--slot.parts_open == 0) start_copy(part.slot);
}

void Team::copy_part(const Part& part) {
    try {
        queue_copies(part.chunk.pieces, station_->slot(part.slot));
    } catch (const Error& error) {  // told when the slot is complete; others still fill it
        slots_[part.slot].failure = error;
    }
}

void Team::give_up() {
    std::deque<Part> left;
    {
        const std::lock_guard lock(mutex_);
        left.swap(parts_);
    }
    for (const Part& part : left) filled(part);
}

void Team::start_copy(std::uint32_t index) {
    Slot& slot = slots_[index];
    try {
        if (slot.failure) throw Error(*slot.failure);
        if (!slot.by_parts) {
            std::sort(slot.pieces.begin(), slot.pieces.end(),
                      [](const Piece& a, const Piece& b) { return a.slot_offset < b.slot_offset; });
            queue_copies(slot.pieces, station_->slot(index));
        }
        station_->stream().record(station_->event(index));
        slot.phase = Slot::Phase::copying;
        copying_.push_back(index);
    } catch (const Error& error) {
        fail(index, error);
    }
    changed_.notify_all();
}

// The device failed: nothing of the slot counts.
void Team::fail(std::uint32_t index, const Error& error) {
    sound_ = false;
    job_.transfer().stop(error.info());
    for (Piece& piece : slots_[index].pieces) piece.moved_bytes = piece.fallen_back_bytes = 0;
    finish(index);
}

void Team::queue_copies(const std::vector<Piece>& pieces, const std::byte* slot) {
    gather_copies(pieces, slot, copy_pieces_);
    std::uint64_t bytes = 0;
    for (const CopyPiece& piece : copy_pieces_) bytes += piece.bytes;
    job_.transfer().count_staged(job_.shape().path, bytes);
    if (copy_pieces_.size() == 1) {
        station_->stream().copy(CopyDirection::to_device, copy_pieces_[0].destination, copy_pieces_[0].source, bytes);
    } else if (!copy_pieces_.empty()) {
        station_->stream().copy_batch(CopyDirection::to_device, copy_pieces_);
    }
}

bool Team::collect_finished() {
    bool any = false;
    while (!copying_.empty()) {
        const std::uint32_t index = copying_.front();
        try {
            if (!station_->event(index).done()) break;
            finish(index);
        } catch (const Error& error) {
            fail(index, error);
        }
        copying_.pop_front();
        any = true;
    }
    if (any) changed_.notify_all();
    return any;
}

void Team::finish(std::uint32_t index) {
    Slot& slot = slots_[index];
    account(job_.transfer(), job_.shape().path, slot.pieces);
    slot.phase = Slot::Phase::free;
    job_.finish_chunk();
}

void Team::drain() {
    std::unique_lock lock(mutex_);
    while (!copying_.empty()) {
        if (!collect_finished()) wait_for_slot(lock);
    }
}

}  // namespace penstock::engine
