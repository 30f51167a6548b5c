// See inline.hpp.
#include "engine/inline.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/current_error.hpp"
#include "engine/pieces.hpp"

namespace penstock::engine {
namespace {

// How many ranges, from the first on, continue each other in memory.
std::size_t side_by_side(std::span<const RequestRange> ranges, std::uint64_t most_bytes) {
    std::size_t count = 1;
    for (std::uint64_t bytes = ranges[0].bytes; count < ranges.size(); ++count) {
        const RequestRange &last = ranges[count - 1], &next = ranges[count];
        bytes += next.bytes;
        if (next.memory != last.memory + last.bytes || bytes > most_bytes) break;
    }
    return count;
}

}  // namespace

InlineLanes::InlineLanes(Device& device, os::System& system, PathKind path, std::size_t lanes_max)
    : device_(device),
      system_(system),
      path_(path),
      slot_bytes_(path == PathKind::direct ? kDirectSlotBytes : kSlotBytes),
      lanes_max_(lanes_max) {}

InlineLanes::~InlineLanes() {
    idle_.clear();
    for (const os::Arena& arena : arenas_) device_.unregister_host(arena.memory().data());
}

std::uint64_t InlineLanes::pinned_bytes() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const os::Arena& arena : arenas_) bytes += arena.bytes();
    return bytes;
}

bool InlineLanes::fill(int byte_value) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() != made_) return false;
    for (const os::Arena& arena : arenas_) std::memset(arena.memory().data(), byte_value, arena.bytes());
    return true;
}

std::unique_ptr<InlineLanes::Lane> InlineLanes::borrow() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty() || made_ < lanes_max_; });
    if (!idle_.empty()) {
        std::unique_ptr<Lane> lane = std::move(idle_.back());
        idle_.pop_back();
        return lane;
    }
    auto lane = std::make_unique<Lane>();
    lane->slot = next_slot();
    lane->stream = device_.make_stream();
    ++made_;
    return lane;
}

std::byte* InlineLanes::next_slot() {
    std::uint64_t position = slot_bytes_ * made_;
    for (const os::Arena& arena : arenas_) {
        const std::uint64_t usable = arena.bytes() / slot_bytes_ * slot_bytes_;
        if (position < usable) return arena.memory().data() + position;
        position -= usable;
    }
    os::Arena arena(os::ArenaOptions{slot_bytes_, device_.info().numa_node});
    arena.touch();
    std::string why;
    if (!device_.register_host(arena.memory().data(), arena.bytes(), false, why)) {
        throw Error(ErrorCode::out_of_memory, "register staging memory", why);
    }
    arenas_.push_back(std::move(arena));
    return arenas_.back().memory().data();
}

void InlineLanes::give_back(std::unique_ptr<Lane> lane) {
    {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(lane));
    }
    returned_.notify_one();
}

void InlineLanes::move_storage(TransferState& transfer, Piece& piece) {
    const int number = move_rest(system_, transfer, piece, path_);
    if (number == 0) return;
    const bool refused = path_ == PathKind::direct && refuses_bypass(number);
    if (refused && !transfer.request().strict) {
        transfer.add_fallback(path_, PathKind::buffered, fall_back(system_, transfer, piece),
                              refused_at_transfer(number));
        return;
    }
    ErrorInfo error = operation_error(piece, transfer.request().direction, number, path_);
    transfer.stop(refused ? bypass_refused(std::move(error)) : std::move(error));
}

void InlineLanes::move_piece(Lane* lane, TransferState& transfer, const PlanPiece& planned) {
    const bool read = transfer.request().direction == Direction::read;
    const bool staged = lane != nullptr;
    Piece piece = Piece::of(transfer.request().ranges[planned.range].part(planned.offset_bytes, planned.bytes));
    piece.operation_memory = staged ? lane->slot : piece.memory;
    const auto copy = [&](CopyDirection direction, std::uint64_t bytes) {
        const bool up = direction == CopyDirection::to_device;
        lane->stream->copy(direction, up ? piece.memory : lane->slot, up ? lane->slot : piece.memory, bytes);
        lane->stream->synchronize_soon();
    };
    if (staged && !read) copy(CopyDirection::to_host, piece.bytes);
    move_storage(transfer, piece);
    if (staged && read && piece.moved_bytes != 0) copy(CopyDirection::to_device, piece.moved_bytes);
    if (staged) {
        transfer.count_staged(path_, read ? piece.moved_bytes - piece.fallen_back_bytes : piece.bytes);
        transfer.count_staged(PathKind::buffered, piece.fallen_back_bytes);
    }
    account(transfer, path_, {&piece, 1});
}

bool InlineLanes::read_small(int fd, std::uint64_t offset_bytes, std::span<std::byte> device_memory) {
    std::unique_ptr<Lane> lane;
    bool all = false;
    try {
        const DeviceScope current(device_);
        lane = borrow();
        std::byte* const place = device_memory.size() <= kFewBytes ? lane->few.data() : lane->slot;
        const ssize_t got = system_.pread(fd, place, device_memory.size(), offset_bytes);
        all = got == static_cast<ssize_t>(device_memory.size());
        if (all) {
            lane->stream->copy(CopyDirection::to_device, device_memory.data(), place, device_memory.size());
            lane->stream->synchronize_soon();
        }
    } catch (const Error&) {  // whoever reads again by a transfer is told
        all = false;
    }
    if (lane) give_back(std::move(lane));
    return all;
}

bool InlineLanes::read_many(std::span<const RequestRange> ranges) {
    std::unique_ptr<Lane> lane;
    bool all = false;
    try {
        const DeviceScope current(device_);
        lane = borrow();
        for (std::unique_ptr<Event>& copied : lane->copied) {
            if (!copied) copied = device_.make_event();
        }
        all = fill_halves(*lane, ranges);
        lane->stream->synchronize();  // whoever borrows the lane next writes to its slot
    } catch (const Error&) {          // as in read_small
        all = false;
    }
    if (lane) give_back(std::move(lane));
    return all;
}

bool InlineLanes::fill_halves(Lane& lane, std::span<const RequestRange> ranges) {
    const std::uint64_t half_bytes = std::max(kSlotBytes, slot_bytes_ / 2);
    const std::size_t halves = slot_bytes_ / half_bytes;
    os::DiskWaits waits;
    for (std::size_t turn = 0; !ranges.empty(); ++turn) {
        const std::span<const RequestRange> some = ranges.first(side_by_side(ranges, half_bytes));
        std::byte* const half = lane.slot + turn % halves * half_bytes;
        Event& copied = *lane.copied[turn % halves];
        if (!copied.done()) lane.stream->synchronize();
        if (!read_to(half, some, waits)) return false;
        const RequestRange& last = some.back();
        const auto bytes = static_cast<std::uint64_t>(last.memory + last.bytes - some.front().memory);
        lane.stream->copy(CopyDirection::to_device, some.front().memory, half, bytes);
        lane.stream->record(copied);
        ranges = ranges.subspan(some.size());
    }
    return true;
}

bool InlineLanes::read_to(std::byte* half, std::span<const RequestRange> ranges, os::DiskWaits& waits) {
    for (long before = system_.waits_of_thread(); !ranges.empty();) {
        const std::span<const RequestRange> some = ranges.first(std::min<std::size_t>(ranges.size(), waits.kReads));
        for (const RequestRange& range : some) {
            const ssize_t got = system_.pread(range.file->buffered_fd, half, range.bytes, range.offset_bytes);
            if (got != static_cast<ssize_t>(range.bytes)) return false;
            half += range.bytes;
        }
        const long now = system_.waits_of_thread();
        if (waits.many(some.size(), now - std::exchange(before, now))) return false;
        ranges = ranges.subspan(some.size());
    }
    return true;
}

void InlineLanes::run(TransferState& transfer) {
    std::unique_ptr<Lane> lane;
    std::uint64_t position = 0;
    try {
        const DeviceScope current(device_);
        if (!transfer.request().host_memory) lane = borrow();
        for (const PlanPiece& piece : transfer.plan().steps.front().pieces) {
            position = transfer.request().ranges[piece.range].position + piece.offset_bytes;
            transfer.check_deadline();
            if (transfer.stopped()) {
                transfer.short_at(position);
            } else {
                move_piece(lane.get(), transfer, piece);
            }
        }
    } catch (...) {
        transfer.short_at(position);
        transfer.stop(info_of_current_exception());
    }
    if (lane) give_back(std::move(lane));
    transfer.leave_job();
}

}  // namespace penstock::engine
