// The state machine of session.hpp: jobs and slots in, completions handled, copies queued.
#include "engine/workers/session.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/current_error.hpp"

namespace penstock::engine {
namespace {

constexpr auto kQuantum = std::chrono::milliseconds(50);  // before a worker looks whether another job starves
constexpr auto kHungAfter = std::chrono::seconds(2);
constexpr auto kGiveUpAfter = std::chrono::milliseconds(150);  // operations of a transfer that was stopped
constexpr auto kLookEvery = std::chrono::milliseconds(50);
constexpr auto kPollBoth = std::chrono::microseconds(100);
constexpr auto kPatience = std::chrono::milliseconds(100);

std::uint64_t make_tag(std::uint32_t slot, std::uint32_t piece) { return (std::uint64_t{slot} << 32) | piece; }

}  // namespace

Session::Session(Scheduler& scheduler, Station& station, os::System& system, std::shared_ptr<Team> team)
    : scheduler_(scheduler),
      station_(station),
      system_(system),
      team_(std::move(team)),
      shape_(station.shape()),
      capabilities_(station.path().capabilities()),
      slots_(shape_.depth),
      completions_(std::clamp<std::size_t>(capabilities_.max_in_flight, 1, 64)),
      quantum_end_(Clock::now() + kQuantum),
      last_movement_(Clock::now()),
      last_look_(last_movement_) {}

bool Session::run(std::shared_ptr<Job> first) {
    if (team_) team_->join();
    first->transfer().add_note(capabilities_.notes);
    jobs_.push_back({std::move(first), 0});
    try {
        if (serve_all()) return !spent_;
    } catch (...) {
        const ErrorInfo info = info_of_current_exception();
        for (Held& held : jobs_) {
            if (held.job) held.job->transfer().stop(info);
        }
    }
    abandon_all();
    return false;
}

bool Session::serve_all() {
    while (true) {
        station_.path().tidy();
        const auto free_slot =
            std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.phase == Phase::free; });
        if (free_slot != slots_.end() && start_next(static_cast<std::uint32_t>(free_slot - slots_.begin()))) {
            advance();
            continue;
        }
        if (!team_) release_finished_jobs(false);
        if (idle()) break;
        if (!advance()) wait_for_something();
        if (hung()) return false;
        give_up_stopped();
    }
    leave_team();
    release_finished_jobs(true);
    return true;
}

void Session::leave_team() {
    if (team_ && !std::exchange(left_team_, true)) team_->leave([&] { return scheduler_.has_work(); });
}

// Once true it stays so: the slots drain, the session ends, and the worker takes the job that waits.
bool Session::waiting_jobs_due() {
    if (yielding_ || Clock::now() < quantum_end_) return yielding_;
    quantum_end_ = Clock::now() + kQuantum;
    yielding_ = scheduler_.someone_waits();
    return yielding_;
}

Session::Held* Session::next_source(Chunk& chunk) {
    if (spent_ || waiting_jobs_due()) return nullptr;
    for (Held& held : jobs_) {
        if (held.job && held.job->next(chunk)) return &held;
    }
    std::shared_ptr<Job> job = scheduler_.take_alike(shape_);
    if (!job) return nullptr;
    const auto reusable = std::find_if(jobs_.begin(), jobs_.end(), [](const Held& h) { return h.job == nullptr; });
    Held& held = reusable != jobs_.end() ? *reusable : jobs_.emplace_back();
    held = {std::move(job), 0};
    return held.job->next(chunk) ? &held : nullptr;
}

bool Session::start_part(std::uint32_t index) {
    Part part;
    if (!team_->next(part, !waiting_jobs_due())) return false;
    Slot& slot = slots_[index];
    slot.chunk = std::move(part.chunk);
    slot.shared_memory = part.memory;
    slot.shared_slot = part.slot;
    slot.job = 0;
    slot.open_pieces = static_cast<std::uint32_t>(slot.chunk.pieces.size());
    ++busy_slots_;
    start_storage(index);
    return true;
}

void Session::hand_over(std::uint32_t index) {
    Slot& slot = slots_[index];
    slot.phase = Phase::free;
    --busy_slots_;
    team_->filled({std::move(slot.chunk), slot.shared_memory, slot.shared_slot});
}

bool Session::start_next(std::uint32_t index) {
    if (team_) return start_part(index);
    Slot& slot = slots_[index];
    Held* held = next_source(slot.chunk);
    if (held == nullptr) return false;
    slot.job = static_cast<std::size_t>(held - jobs_.data());
    ++held->chunks;
    ++busy_slots_;
    slot.open_pieces = static_cast<std::uint32_t>(slot.chunk.pieces.size());
    if (shape_.staged && shape_.direction == Direction::write) {
        copies_to_host(index);
    } else {
        start_storage(index);
    }
    return true;
}

std::byte* Session::operation_memory(std::uint32_t index, const Piece& piece) const {
    if (team_) return slots_[index].shared_memory + piece.slot_offset;
    if (shape_.staged) return station_.slot(index) + piece.slot_offset;
    const bool lent =
        capabilities_.memory == OperationMemory::lent && !transfer_of(slots_[index]).request().host_memory;
    return lent ? nullptr : piece.memory;
}

void Session::start_storage(std::uint32_t index) {
    Slot& slot = slots_[index];
    slot.phase = Phase::storage;
    slot.copied_from_lent = false;
    slot.stopped_since = {};
    for (std::uint32_t i = 0; i < slot.chunk.pieces.size(); ++i) {
        Piece& piece = slot.chunk.pieces[i];
        piece.operation_memory = operation_memory(index, piece);
        push_operation(index, i);
    }
}

void Session::push_operation(std::uint32_t index, std::uint32_t piece_index) {
    const Piece& piece = slots_[index].chunk.pieces[piece_index];
    Operation operation;
    operation.direction = shape_.direction;
    operation.file = piece.file;
    operation.offset_bytes = piece.operation_offset + piece.moved_bytes;
    operation.memory = piece.operation_memory == nullptr ? nullptr : piece.operation_memory + piece.moved_bytes;
    operation.bytes = std::min(piece.operation_bytes - piece.moved_bytes, capabilities_.max_bytes);
    operation.tag = make_tag(index, piece_index);
    operation.staging = shape_.staged || team_ != nullptr;
    backlog_.push_back(operation);
}

bool Session::flush() {
    if (backlog_.empty()) return false;
    const std::size_t taken = station_.path().submit(backlog_);
    for (std::size_t i = 0; i < taken; ++i) {
        transfer_of(slots_[backlog_[i].tag >> 32]).count_operations(shape_.path, 1);
    }
    backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<std::ptrdiff_t>(taken));
    storage_in_flight_ += taken;
    return taken != 0;
}

bool Session::reap(Deadline deadline) {
    if (storage_in_flight_ == 0) return false;
    const std::size_t count = station_.path().reap(completions_, deadline);
    storage_in_flight_ -= count;
    for (std::size_t i = 0; i < count; ++i) complete(completions_[i]);
    return count != 0;
}

bool Session::poll_copies() {
    bool any = false;
    while (!copying_.empty() && station_.event(copying_.front()).done()) {
        const std::uint32_t index = copying_.front();
        copying_.pop_front();
        any = true;
        if (shape_.direction == Direction::write) {
            start_storage(index);
        } else {
            finish(index);
        }
    }
    return any;
}

// One round of everything that does not block. A synchronous path blocks in flush, and that is its nature.
bool Session::advance() {
    bool moved = flush();
    moved |= reap(Deadline::now());
    moved |= poll_copies();
    if (moved) last_movement_ = Clock::now();
    return moved;
}

void Session::wait_for_something() {
    if (storage_in_flight_ != 0) {
        if (reap(Deadline::after(copying_.empty() ? Clock::duration(kPatience) : Clock::duration(kPollBoth)))) {
            last_movement_ = Clock::now();
        }
    } else if (!copying_.empty()) {
        station_.event(copying_.front()).wait(Deadline::after(kPatience));
    } else if (!backlog_.empty()) {
        std::this_thread::yield();
    }
}

// Operations that do not come back although everybody who wanted them has given up.
bool Session::hung() {
    if ((storage_in_flight_ == 0 && backlog_.empty()) || Clock::now() - last_movement_ < kHungAfter) return false;
    if (scheduler_.stopping()) return true;
    bool some_given_up = false;
    for (const Slot& slot : slots_) {
        some_given_up |= slot.phase == Phase::given_up;
        if (slot.phase == Phase::free || slot.phase == Phase::given_up) continue;
        transfer_of(slot).check_deadline();
        if (!transfer_of(slot).stopped()) return false;
    }
    // The path of what was given up is kept while it can serve: to close it is to wait for its operations.
    return !some_given_up || waiting_jobs_due();
}

// Of synchronous paths no operation is under way here, and of shared slots the team knows.
void Session::give_up_stopped() {
    const auto now = Clock::now();
    if (!capabilities_.asynchronous || !shape_.staged || team_ || shape_.direction != Direction::read ||
        now - last_look_ < kLookEvery) {
        return;
    }
    last_look_ = now;
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        Slot& slot = slots_[i];
        if (slot.phase != Phase::storage) continue;
        transfer_of(slot).check_deadline();
        if (!transfer_of(slot).stopped()) continue;
        if (slot.stopped_since == Clock::time_point{}) slot.stopped_since = now;
        if (now - slot.stopped_since >= kGiveUpAfter) give_up(i);
    }
}

void Session::give_up(std::uint32_t index) {
    Slot& slot = slots_[index];
    slot.kept = transfer_of(slot).request().keep_alive;
    slot.open_pieces -= static_cast<std::uint32_t>(
        std::erase_if(backlog_, [index](const Operation& waiting) { return waiting.tag >> 32 == index; }));
    for (Piece& piece : slot.chunk.pieces) piece.moved_bytes = piece.fallen_back_bytes = 0;
    finish(index);
    slot.phase = Phase::given_up;
    ++busy_slots_;
    land_given_up(slot);
}

void Session::land_given_up(Slot& slot) {
    if (slot.open_pieces != 0) return;
    slot.kept.clear();
    slot.phase = Phase::free;
    --busy_slots_;
}

void Session::copies_to_device(std::uint32_t index) {
    gather_copies(slots_[index].chunk.pieces, copy_pieces_);
    start_copy(index);
}

void Session::copies_to_host(std::uint32_t index) {
    Slot& slot = slots_[index];
    copy_pieces_.clear();
    for (const Piece& piece : slot.chunk.pieces) {
        std::byte* target = station_.slot(index) + piece.slot_offset + piece.lead_bytes();
        copy_pieces_.push_back({target, piece.memory, piece.bytes});
    }
    start_copy(index);
}

void Session::start_copy(std::uint32_t index) {
    Slot& slot = slots_[index];
    TransferState& transfer = transfer_of(slot);
    const bool to_device = shape_.direction == Direction::read;
    std::uint64_t bytes = 0;
    for (const CopyPiece& piece : copy_pieces_) bytes += piece.bytes;
    transfer.count_staged(shape_.path, bytes);
    slot.phase = Phase::copying;
    if (transfer.request().host_memory) {
        for (const CopyPiece& piece : copy_pieces_) std::memcpy(piece.destination, piece.source, piece.bytes);
        if (to_device) {
            finish(index);
        } else {
            start_storage(index);
        }
        return;
    }
    if (!queue_copies(index)) return finish(index);
    station_.stream().record(station_.event(index));
    copying_.push_back(index);
}

// A refused copy is the fault of its transfer, whose pointers it names, and not of the others in this session. False:
// nothing was queued, nothing arrived.
bool Session::queue_copies(std::uint32_t index) {
    const bool to_device = shape_.direction == Direction::read;
    const CopyDirection direction = to_device ? CopyDirection::to_device : CopyDirection::to_host;
    try {
        if (copy_pieces_.size() == 1) {
            const CopyPiece& piece = copy_pieces_.front();
            station_.stream().copy(direction, piece.destination, piece.source, piece.bytes);
        } else if (!copy_pieces_.empty()) {
            station_.stream().copy_batch(direction, copy_pieces_);
        }
        return true;
    } catch (const Error& error) {
        spent_ = true;
        transfer_of(slots_[index]).stop(error.info());
        for (Piece& piece : slots_[index].chunk.pieces) piece.moved_bytes = piece.fallen_back_bytes = 0;
        return false;
    }
}

void Session::finish(std::uint32_t index) {
    Slot& slot = slots_[index];
    TransferState& transfer = transfer_of(slot);
    if (slot.copied_from_lent) {
        for (Piece& piece : slot.chunk.pieces) check_lent(slot, piece);
    }
    account(transfer, shape_.path, slot.chunk.pieces);
    slot.phase = Phase::free;
    --busy_slots_;
    Held& held = jobs_[slot.job];
    --held.chunks;
    held.job->finish_chunk();
    if (held.chunks == 0) release_finished_jobs(false);
}

void Session::release_finished_jobs(bool all) {
    for (Held& held : jobs_) {
        if (!held.job || held.chunks != 0 || !(all || held.job->exhausted())) continue;
        const std::shared_ptr<Job> job = std::move(held.job);
        held.job = nullptr;
        scheduler_.give_back(job);
    }
}

// Nothing touches the slots or the caller's memory once the station is shut; only then are the chunks given up.
void Session::abandon_all() {
    station_.shut();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        Slot& slot = slots_[i];
        if (slot.phase == Phase::free || slot.phase == Phase::given_up) continue;
        for (Piece& piece : slot.chunk.pieces) piece.moved_bytes = piece.fallen_back_bytes = 0;
        if (team_) {
            hand_over(i);
        } else {
            finish(i);
        }
    }
    if (team_) team_->give_up();
    leave_team();
    release_finished_jobs(true);
}

}  // namespace penstock::engine
