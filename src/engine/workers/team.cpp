// See team.hpp. One mutex guards everything; it is held for the length of a few device calls at most, and taken twice
// for each part (hundreds of microseconds of copying).
#include "engine/workers/team.hpp"

#include <algorithm>
#include <utility>

namespace penstock::engine {
namespace {
constexpr auto kPatience = std::chrono::milliseconds(100);
constexpr auto kLook = std::chrono::milliseconds(5);
}

Team::Team(StationPool& pool, std::unique_ptr<Station> station, Job& job)
    : pool_(pool),
      station_(std::move(station)),
      job_(job),
      part_bytes_(job.shape().part_bytes),
      slots_(station_->shape().depth),
      limit_(job.shape().workers, slots_.size()) {}

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
    free_slot->queued = 0;
    free_slot->parts_open = static_cast<std::uint32_t>(parts_.size());
    free_slot->failure.reset();
    limit_.opened(copying_.size());
    if (job_.exhausted()) needed_.notify_all();  // all hands for the last slot
    return true;
}

void Team::join() {
    const std::lock_guard lock(mutex_);
    ++members_;
}

void Team::leave(const std::function<bool()>& wanted_elsewhere) {
    std::unique_lock lock(mutex_);
    --members_;
    needed_.notify_all();
    const bool last = members_ == 0 && !ending_;
    ending_ |= last;
    while (!copying_.empty() && (last || (job_.exhausted() && !wanted_elsewhere()))) {
        if (!collect_finished()) wait_for_slot(lock);
    }
    if (last) ending_ = false;
}

// One that is about to leave does not wait to be needed: those who are busy take the open parts. The others look now
// and then whether the queue ran short while those who are busy are stuck in slow reads.
bool Team::admitted(std::unique_lock<std::mutex>& lock, bool may_open) {
    const auto needed = [&] { return busy_ < limit_.value() || job_.exhausted(); };
    if (!may_open) return needed();
    const Deadline end = Deadline::after(kPatience);
    while (!needed_.wait_for(lock, kLook, needed)) {
        collect_finished();
        const bool more = BusyLimit::low(copying_.size()) && limit_.engine_waited();
        if (!more && end.passed()) return false;
    }
    return true;
}

bool Team::none_left(bool may_open) {
    collect_finished();
    const bool room =
        std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.phase == Slot::Phase::free; });
    return !may_open || job_.exhausted() || (room && !open_slot());
}

bool Team::next(Part& part, bool may_open) {
    std::unique_lock lock(mutex_);
    if (!admitted(lock, may_open)) return false;
    ++busy_;
    while (parts_.empty()) {
        if (none_left(may_open)) {
            --busy_;
            needed_.notify_all();
            return false;
        }
        if (parts_.empty()) wait_for_slot(lock);
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
    --busy_;
    take_back(part);
}

void Team::give_up() {
    const std::lock_guard lock(mutex_);
    std::deque<Part> left;
    left.swap(parts_);
    for (const Part& part : left) take_back(part);
}

void Team::take_back(const Part& part) {
    Slot& slot = slots_[part.slot];
    slot.pieces.insert(slot.pieces.end(), part.chunk.pieces.begin(), part.chunk.pieces.end());
    if (--slot.parts_open == 0) {
        start_copy(part.slot);
    } else if (!slot.failure) {
        copy_early(part.slot);
    }
}

bool Team::engine_waits() {
    return BusyLimit::low(copying_.size()) && (!newest_ || station_->event(*newest_).done());
}

void Team::copy_early(std::uint32_t index) {
    try {
        if (!engine_waits()) return;
        if (limit_.engine_waited()) needed_.notify_all();
        queue_copies(index);
    } catch (const Error& error) {  // told when the slot is complete; others still fill it
        slots_[index].failure = error;
    }
}

void Team::start_copy(std::uint32_t index) {
    Slot& slot = slots_[index];
    try {
        if (slot.failure) throw Error(*slot.failure);
        queue_copies(index);
        slot.phase = Slot::Phase::copying;
        copying_.push_back(index);
    } catch (const Error& error) {
        fail(index, error);
    }
    collect_finished();
    if (limit_.filled(copying_.size())) needed_.notify_all();
    changed_.notify_all();
}

// The device failed: nothing of the slot counts. Parts of it may be on their way to memory that is the caller's again
// once the job ends.
void Team::fail(std::uint32_t index, const Error& error) {
    sound_ = false;
    job_.transfer().stop(error.info());
    try {
        station_->stream().synchronize();
    } catch (const Error&) {  // then nothing moves any more
    }
    for (Piece& piece : slots_[index].pieces) piece.moved_bytes = piece.fallen_back_bytes = 0;
    finish(index);
}

void Team::queue_copies(std::uint32_t index) {
    Slot& slot = slots_[index];
    const std::span<Piece> pieces = std::span(slot.pieces).subspan(slot.queued);
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.slot_offset < b.slot_offset; });
    gather_copies(pieces, copy_pieces_);
    std::uint64_t bytes = 0;
    for (const CopyPiece& piece : copy_pieces_) bytes += piece.bytes;
    job_.transfer().count_staged(job_.shape().path, bytes);
    if (copy_pieces_.size() == 1) {
        station_->stream().copy(CopyDirection::to_device, copy_pieces_[0].destination, copy_pieces_[0].source, bytes);
    } else if (!copy_pieces_.empty()) {
        station_->stream().copy_batch(CopyDirection::to_device, copy_pieces_);
    }
    slot.queued = slot.pieces.size();
    station_->stream().record(station_->event(index));
    newest_ = index;
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

}  // namespace penstock::engine
