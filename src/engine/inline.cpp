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

InlineLanes::InlineLanes(Device& device, os::System& system, std::uint64_t slot_bytes, std::size_t lanes_max)
    : device_(device), system_(system), slot_bytes_(slot_bytes), lanes_max_(lanes_max) {
    idle_.reserve(lanes_max);  // a lane that cannot be put there would be lost, and its caller's next one waited for
}

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
    arenas_.reserve(arenas_.size() + 1);  // what is registered is kept there, so that it is unregistered
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
    const PathKind path = transfer.plan().steps.front().shape.path;
    const int number = move_rest(system_, transfer, piece, path);
    if (number == 0) return;
    const bool refused = path == PathKind::direct && refuses_bypass(number);
    if (refused && !transfer.request().strict) {
        transfer.add_fallback(path, PathKind::buffered, fall_back(system_, transfer, piece),
                              refused_at_transfer(number));
        return;
    }
    ErrorInfo error = operation_error(piece, transfer.request().direction, number, path);
    transfer.stop(refused ? bypass_refused(std::move(error)) : std::move(error));
}

void InlineLanes::move_piece(Lane* lane, TransferState& transfer, const PlanPiece& planned) {
    const bool read = transfer.request().direction == Direction::read;
    const PathKind path = transfer.plan().steps.front().shape.path;
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
        transfer.count_staged(path, read ? piece.moved_bytes - piece.fallen_back_bytes : piece.bytes);
        transfer.count_staged(PathKind::buffered, piece.fallen_back_bytes);
    }
    account(transfer, path, {&piece, 1});
}

bool InlineLanes::read_small(int fd, std::uint64_t offset_bytes, std::span<std::byte> device_memory,
                             std::optional<std::uintptr_t> after) {
    std::unique_ptr<Lane> lane;
    bool all = false;
    try {
        const DeviceScope current(device_);
        lane = borrow();
        std::byte* const place = device_memory.size() <= kFewBytes ? lane->few.data() : lane->slot;
        const ssize_t got = system_.pread(fd, place, device_memory.size(), offset_bytes);
        all = got == static_cast<ssize_t>(device_memory.size());
        if (all && after) {
            lane->stream->copy_after(*after, {device_memory.data(), place, device_memory.size()});
        } else if (all) {
            lane->stream->copy(CopyDirection::to_device, device_memory.data(), place, device_memory.size());
            lane->stream->synchronize_soon();
        }
    } catch (const std::exception&) {  // the device, or no memory: whoever reads again by a transfer is told
        all = false;
    }
    if (lane) give_back(std::move(lane));
    return all;
}

bool InlineLanes::by_halves(const std::function<bool(Lane&)>& fill) {
    std::unique_ptr<Lane> lane;
    bool all = false;
    try {
        const DeviceScope current(device_);
        lane = borrow();
        all = fill(*lane);
        lane->stream->synchronize_soon();  // whoever borrows the lane next writes to its slot
    } catch (const std::exception&) {      // as in read_small
        all = false;
        if (lane) settle(*lane);
    }
    if (lane) give_back(std::move(lane));
    return all;
}

// Its slot is free of copies for whoever borrows the lane next, as far as the device still answers.
void InlineLanes::settle(Lane& lane) {
    try {
        lane.stream->synchronize();
    } catch (const Error&) {  // no copy of a device that failed goes on
    }
}

// A lane that was borrowed has no copy under way.
std::byte* InlineLanes::free_half(Lane& lane, const HalfTurn& turn) const {
    const std::size_t halves = slot_bytes_ / half_bytes(), half = turn.number % halves;
    if (turn.number >= halves && !lane.copied[half]->done()) lane.stream->synchronize();
    return lane.slot + half * half_bytes();
}

// Calls of the driver wait for each other when many threads make them, so none is made for a half that is not filled
// again.
void InlineLanes::copy_half(Lane& lane, const HalfTurn& turn, std::span<std::byte> device_memory) const {
    const std::size_t halves = slot_bytes_ / half_bytes(), half = turn.number % halves;
    lane.stream->copy(CopyDirection::to_device, device_memory.data(), lane.slot + half * half_bytes(),
                      device_memory.size());
    if (turn.number + halves >= turn.of) return;
    if (!lane.copied[half]) lane.copied[half] = device_.make_event();
    lane.stream->record(*lane.copied[half]);
}

std::size_t InlineLanes::turns_of(std::span<const RequestRange> ranges) const {
    std::size_t turns = 0;
    for (; !ranges.empty(); ++turns) ranges = ranges.subspan(side_by_side(ranges, half_bytes()));
    return turns;
}

bool InlineLanes::read_many(std::span<const RequestRange> ranges) {
    return by_halves([&](Lane& lane) { return fill_halves(lane, ranges); });
}

bool InlineLanes::fill_halves(Lane& lane, std::span<const RequestRange> ranges) {
    os::DiskWaits waits;
    for (HalfTurn turn{0, turns_of(ranges)}; !ranges.empty(); ++turn.number) {
        const std::span<const RequestRange> some = ranges.first(side_by_side(ranges, half_bytes()));
        if (!read_to(free_half(lane, turn), some, waits)) return false;
        const RequestRange& last = some.back();
        copy_half(lane, turn, {some.front().memory, last.memory + last.bytes});
        ranges = ranges.subspan(some.size());
    }
    return true;
}

bool InlineLanes::read_by_halves(std::span<std::byte> device_memory, const ReadPart& read_part) {
    return by_halves([&](Lane& lane) {
        HalfTurn turn{0, (device_memory.size() + half_bytes() - 1) / half_bytes()};
        for (std::uint64_t done = 0; done < device_memory.size(); ++turn.number) {
            const std::span<std::byte> part =
                device_memory.subspan(done, std::min<std::uint64_t>(half_bytes(), device_memory.size() - done));
            if (!read_part({free_half(lane, turn), part.size()}, done)) return false;
            copy_half(lane, turn, part);
            done += part.size();
        }
        return true;
    });
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
    const Step& step = transfer.plan().steps.front();
    const std::uint64_t part_bytes = step.shape.path == PathKind::direct ? slot_bytes_ : half_bytes();
    try {
        const DeviceScope current(device_);
        if (!transfer.request().host_memory) lane = borrow();
        for (const PlanPiece& piece : step.pieces) {
            const std::uint64_t most_bytes = lane ? part_bytes : piece.bytes;
            for (std::uint64_t done = 0; done < piece.bytes; done += most_bytes) {
                const PlanPiece part{piece.range, piece.offset_bytes + done, std::min(most_bytes, piece.bytes - done)};
                position = transfer.request().ranges[part.range].position + part.offset_bytes;
                transfer.check_deadline();
                if (transfer.stopped()) {
                    transfer.short_at(position);
                } else {
                    move_piece(lane.get(), transfer, part);
                }
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
