// The loop of session.hpp: chunks in, operations submitted, chunks out. Completions are in completion.cpp.
#include "engine/workers/session.hpp"

#include <algorithm>
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

std::uint64_t make_tag(std::uint32_t chunk, std::uint32_t piece) { return (std::uint64_t{chunk} << 32) | piece; }

TransferState& transfer_of(const Chunk& chunk) { return chunk.job->transfer(); }

}  // namespace

Session::Session(Scheduler& scheduler, WorkerPath& path, SlotSource& slots, os::System& system)
    : scheduler_(scheduler),
      path_(path),
      slots_(slots),
      system_(system),
      shape_(slots.shape()),
      capabilities_(path.path().capabilities()),
      chunks_(slots.chunks_at_once()),
      completions_(std::clamp<std::size_t>(capabilities_.max_in_flight, 1, 64)),
      quantum_end_(Clock::now() + kQuantum),
      last_movement_(Clock::now()),
      last_look_(last_movement_) {}

bool Session::run() {
    slots_.join();
    bool served = false;
    try {
        served = serve_all();
    } catch (...) {
        slots_.stop(info_of_current_exception());
    }
    if (!served) abandon_all();
    slots_.leave();
    return served && slots_.sound();
}

bool Session::serve_all() {
    while (true) {
        path_.path().tidy();
        if (start_next()) {
            advance();
            continue;
        }
        if (idle()) return true;
        if (!advance()) wait_for_something();
        if (hung()) return false;
        give_up_stopped();
    }
}

// Once true it stays so: the slots drain, the session ends, and the worker takes the job that waits.
bool Session::waiting_jobs_due() {
    if (yielding_ || Clock::now() < quantum_end_) return yielding_;
    quantum_end_ = Clock::now() + kQuantum;
    yielding_ = scheduler_.someone_waits();
    return yielding_;
}

bool Session::start_next() {
    const auto chunk =
        std::find_if(chunks_.begin(), chunks_.end(), [](const Chunk& one) { return one.job == nullptr; });
    if (chunk == chunks_.end() || !slots_.next(*chunk, !waiting_jobs_due())) return false;
    const bool lent =
        capabilities_.memory == OperationMemory::lent && !transfer_of(*chunk).request().host_memory;
    chunk->stopped_since = {};
    chunk->open_pieces = static_cast<std::uint32_t>(chunk->pieces.size());
    ++busy_chunks_;
    for (std::uint32_t i = 0; i < chunk->open_pieces; ++i) {
        Piece& piece = chunk->pieces[i];
        if (!shape_.staged) piece.operation_memory = lent ? nullptr : piece.memory;
        push_operation(static_cast<std::uint32_t>(chunk - chunks_.begin()), i);
    }
    return true;
}

void Session::push_operation(std::uint32_t chunk, std::uint32_t piece_index) {
    const Piece& piece = chunks_[chunk].pieces[piece_index];
    Operation operation;
    operation.direction = shape_.direction;
    operation.file = piece.file;
    operation.offset_bytes = piece.operation_offset + piece.moved_bytes;
    operation.memory = piece.operation_memory == nullptr ? nullptr : piece.operation_memory + piece.moved_bytes;
    operation.bytes = std::min(piece.operation_bytes - piece.moved_bytes, capabilities_.max_bytes);
    operation.tag = make_tag(chunk, piece_index);
    operation.staging = shape_.staged;
    backlog_.push_back(operation);
}

bool Session::flush() {
    if (backlog_.empty()) return false;
    const std::size_t taken = path_.path().submit(backlog_);
    for (std::size_t i = 0; i < taken; ++i) {
        transfer_of(chunks_[backlog_[i].tag >> 32]).count_operations(shape_.path, 1);
    }
    backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<std::ptrdiff_t>(taken));
    storage_in_flight_ += taken;
    return taken != 0;
}

bool Session::reap(Deadline deadline) {
    if (storage_in_flight_ == 0) return false;
    const std::size_t count = path_.path().reap(completions_, deadline);
    storage_in_flight_ -= count;
    for (std::size_t i = 0; i < count; ++i) complete(completions_[i]);
    return count != 0;
}

// One round of everything that does not block. A synchronous path blocks in flush, and that is its nature.
bool Session::advance() {
    bool moved = flush();
    moved |= reap(Deadline::now());
    moved |= slots_.collect();
    if (moved) last_movement_ = Clock::now();
    return moved;
}

void Session::wait_for_something() {
    if (storage_in_flight_ != 0) {
        if (reap(Deadline::after(slots_.copying() ? Clock::duration(kPollBoth) : Clock::duration(kWorkerSleep)))) {
            last_movement_ = Clock::now();
        }
    } else if (slots_.copying()) {
        slots_.wait_for_copy(Deadline::after(kWorkerSleep));
    } else if (!backlog_.empty()) {
        std::this_thread::yield();
    }
}

// Operations that do not come back although every transfer that wanted them has stopped.
bool Session::hung() {
    if ((storage_in_flight_ == 0 && backlog_.empty()) || Clock::now() - last_movement_ < kHungAfter) return false;
    if (scheduler_.stopping()) return true;
    if (slots_.copying()) return false;
    bool some_given_up = false;
    for (const Chunk& chunk : chunks_) {
        some_given_up |= chunk.given_up;
        if (chunk.job == nullptr || chunk.given_up) continue;
        transfer_of(chunk).check_deadline();
        if (!transfer_of(chunk).stopped()) return false;
    }
    // The path of what was given up is kept while it can serve: to close it is to wait for its operations.
    return !some_given_up || waiting_jobs_due();
}

// A synchronous path has no operation under way here.
void Session::give_up_stopped() {
    const auto now = Clock::now();
    if (!capabilities_.asynchronous || !shape_.staged || shape_.direction != Direction::read ||
        now - last_look_ < kLookEvery) {
        return;
    }
    last_look_ = now;
    for (std::uint32_t i = 0; i < chunks_.size(); ++i) {
        Chunk& chunk = chunks_[i];
        if (chunk.job == nullptr || chunk.given_up) continue;
        transfer_of(chunk).check_deadline();
        if (!transfer_of(chunk).stopped()) continue;
        if (chunk.stopped_since == Clock::time_point{}) chunk.stopped_since = now;
        if (now - chunk.stopped_since >= kGiveUpAfter) give_up(i);
    }
}

void Session::give_up(std::uint32_t index) {
    Chunk& chunk = chunks_[index];
    chunk.kept = transfer_of(chunk).request().keep_alive;
    if (!slots_.give_up(chunk)) return chunk.kept.clear();
    chunk.open_pieces -= static_cast<std::uint32_t>(
        std::erase_if(backlog_, [index](const Operation& waiting) { return waiting.tag >> 32 == index; }));
    chunk.given_up = true;
    land_given_up(chunk);
}

void Session::leave_storage(Chunk& chunk) {
    chunk.job = nullptr;
    chunk.given_up = false;
    --busy_chunks_;
}

void Session::land_given_up(Chunk& chunk) {
    if (chunk.open_pieces != 0) return;
    chunk.kept.clear();
    slots_.landed(chunk);
    leave_storage(chunk);
}

// Nothing touches the slots or the caller's memory once the path is shut; only then are the chunks given up.
void Session::abandon_all() {
    path_.shut();
    for (Chunk& chunk : chunks_) {
        if (chunk.job == nullptr || chunk.given_up) continue;
        for (Piece& piece : chunk.pieces) piece.moved_bytes = piece.fallen_back_bytes = 0;
        leave_storage(chunk);
        slots_.stored(chunk);
    }
    slots_.abandon();
}

}  // namespace penstock::engine
