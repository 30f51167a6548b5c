// See team.hpp. One mutex guards everything. A member takes it twice for each part, whose bytes take it hundreds of
// microseconds to copy, and holds it for the length of a few device calls at most.
#include "engine/workers/team.hpp"

#include <algorithm>
#include <utility>

namespace penstock::engine {
namespace {

constexpr auto kParkedLook = std::chrono::milliseconds(5);

}  // namespace

Team::Team(Scheduler& scheduler, EnginePool& pool, std::unique_ptr<StagingSlots> slots, std::shared_ptr<Job> job)
    : scheduler_(scheduler),
      pool_(pool),
      slots_(std::move(slots)),
      job_(std::move(job)),
      limit_(shape().workers, shape().depth) {}

Team::~Team() {
    if (slots_->sound()) {
        pool_.give_back(std::move(slots_));
    } else {
        pool_.drop(std::move(slots_));
    }
}

// A part has no lead: slots are not shared where operations bypass the page cache.
void Team::cut_parts(const Chunk& chunk) {
    const std::uint64_t part_bytes = shape().part_bytes;
    std::uint64_t in_part = part_bytes;  // full: the first piece opens a part
    for (const Piece& whole : chunk.pieces) {
        for (std::uint64_t done = 0; done < whole.operation_bytes;) {
            if (in_part >= part_bytes) {
                parts_.push_back({.pieces = {}, .job = chunk.job, .slot = chunk.slot});
                in_part = 0;
            }
            Piece piece = Piece::of(whole.part(done, std::min(whole.operation_bytes - done, part_bytes - in_part)));
            piece.slot_offset = whole.slot_offset + done;
            piece.operation_memory = whole.operation_memory + done;
            parts_.back().pieces.push_back(piece);
            done += piece.bytes;
            in_part += piece.bytes;
        }
    }
}

bool Team::open_slot() {
    Chunk chunk;
    if (!job_->next(chunk)) return false;
    slots_->open(chunk, *job_);
    cut_parts(chunk);
    slots_->expect_parts(chunk.slot, static_cast<std::uint32_t>(parts_.size()));
    limit_.opened(slots_->copying());
    if (job_->exhausted()) needed_.notify_all();  // all members are needed for the last slot
    return true;
}

void Team::join() {
    const std::lock_guard lock(mutex_);
    ++members_;
}

void Team::leave() {
    {
        std::unique_lock lock(mutex_);
        --members_;
        needed_.notify_all();
        const bool last = members_ == 0 && !ending_;
        ending_ |= last;
        while (slots_->copying() != 0 && (last || (job_->exhausted() && !scheduler_.has_work()))) {
            if (!collect_finished()) wait_for_slot(lock);
        }
        if (last) ending_ = false;
    }
    scheduler_.give_back(job_);
}

// A member that is about to leave does not wait to be needed: busy members take the open parts. A parked member looks
// now and then whether the queue ran short while the busy members are stuck in slow reads.
bool Team::admitted(std::unique_lock<std::mutex>& lock, bool may_open) {
    const auto needed = [&] { return busy_ < limit_.value() || job_->exhausted(); };
    if (!may_open) return needed();
    const Deadline end = Deadline::after(kWorkerSleep);
    while (!needed_.wait_for(lock, kParkedLook, needed)) {
        collect_finished();
        const bool more = BusyLimit::low(slots_->copying()) && limit_.engine_waited();
        if (!more && end.passed()) return false;
    }
    return true;
}

bool Team::none_left(bool may_open) {
    collect_finished();
    return !may_open || job_->exhausted() || (slots_->has_free() && !open_slot());
}

bool Team::next(Chunk& part, bool may_open) {
    std::unique_lock lock(mutex_);
    if (!admitted(lock, may_open)) return false;
    ++busy_;
    while (parts_.empty()) {
        if (none_left(may_open)) {
            --busy_;
            needed_.notify_all();
            return false;
        }
        if (parts_.empty() && !grow(lock)) wait_for_slot(lock);
    }
    part = std::move(parts_.front());
    parts_.pop_front();
    return true;
}

// Gets the memory without the lock: its first touch and its registration take some milliseconds.
bool Team::grow(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t bytes = slots_->missing_bytes();
    if (grows_ || bytes == 0) return false;
    grows_ = true;
    lock.unlock();
    const std::span<std::byte> memory = pool_.more(bytes);
    lock.lock();
    if (memory.empty()) return false;
    slots_->add(memory);
    grows_ = false;
    changed_.notify_all();
    return true;
}

// Waits, without the lock, until a slot may have become free. A slot that other members still fill becomes free after
// its last part.
void Team::wait_for_slot(std::unique_lock<std::mutex>& lock) {
    // One worker watches the device; a sleep on an event costs several times a sleep on a condition.
    if (slots_->copying() == 0 || watched_) {
        changed_.wait_for(lock, kWorkerSleep);
        return;
    }
    Event& event = slots_->oldest_copy();
    watched_ = true;
    lock.unlock();
    try {
        event.wait(Deadline::after(kWorkerSleep));
    } catch (const Error&) {  // collect_finished meets the same error, with the lock
    }
    lock.lock();
    watched_ = false;
}

void Team::stored(Chunk& part) {
    const std::lock_guard lock(mutex_);
    --busy_;
    take_back(part);
}

void Team::abandon() {
    const std::lock_guard lock(mutex_);
    std::deque<Chunk> left;
    left.swap(parts_);
    for (Chunk& part : left) take_back(part);
}

void Team::take_back(Chunk& part) {
    if (!slots_->put(part)) {
        if (!engine_waits()) return;
        if (limit_.engine_waited()) needed_.notify_all();
        slots_->copy_early(part.slot);
        return;
    }
    slots_->leave_storage(part.slot);
    collect_finished();
    if (limit_.filled(slots_->copying())) needed_.notify_all();
    changed_.notify_all();
}

// Behind a busy engine one copy of the whole slot is cheaper than several of its parts.
bool Team::engine_waits() const {
    try {
        return BusyLimit::low(slots_->copying()) && slots_->device_idle();
    } catch (const Error&) {  // told when the slot is complete
        return false;
    }
}

bool Team::collect_finished() {
    const bool any = slots_->collect();
    if (any) changed_.notify_all();
    return any;
}

}  // namespace penstock::engine
