// See inline.hpp.
#include "engine/inline.hpp"

#include <cstring>
#include <utility>

#include "base/current_error.hpp"
#include "engine/pieces.hpp"

namespace penstock::engine {
namespace {

Piece whole_piece(const RequestRange& range, const PlanPiece& planned) {
    Piece piece;
    piece.file = range.file;
    piece.memory = range.memory + planned.offset_bytes;
    piece.position = range.position + planned.offset_bytes;
    piece.offset_bytes = piece.operation_offset = range.offset_bytes + planned.offset_bytes;
    piece.bytes = piece.operation_bytes = planned.bytes;
    return piece;
}

}  // namespace

struct InlineLanes::Lane {
    std::unique_ptr<Stream> stream;
    std::byte* slot = nullptr;
};

InlineLanes::InlineLanes(Device& device, os::System& system, LaneOptions options)
    : device_(device), system_(system), options_(options) {}

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
    returned_.wait(lock, [this] { return !idle_.empty() || made_ < options_.lanes_max; });
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

// Needs mutex_.
std::byte* InlineLanes::next_slot() {
    std::uint64_t position = options_.slot_bytes * made_;
    for (const os::Arena& arena : arenas_) {
        const std::uint64_t usable = arena.bytes() / options_.slot_bytes * options_.slot_bytes;
        if (position < usable) return arena.memory().data() + position;
        position -= usable;
    }
    os::Arena arena(os::ArenaOptions{options_.slot_bytes, device_.info().numa_node});
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
    const PathKind path = options_.path;
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

void InlineLanes::move_piece(Lane& lane, TransferState& transfer, const PlanPiece& planned) {
    const bool read = transfer.request().direction == Direction::read;
    const bool staged = !transfer.request().host_memory;
    Piece piece = whole_piece(transfer.request().ranges[planned.range], planned);
    piece.operation_memory = staged ? lane.slot : piece.memory;
    const auto copy = [&](CopyDirection direction, std::uint64_t bytes) {
        const bool up = direction == CopyDirection::to_device;
        lane.stream->copy(direction, up ? piece.memory : lane.slot, up ? lane.slot : piece.memory, bytes);
        lane.stream->synchronize();
    };
    if (staged && !read) copy(CopyDirection::to_host, piece.bytes);
    move_storage(transfer, piece);
    if (staged && read && piece.moved_bytes != 0) copy(CopyDirection::to_device, piece.moved_bytes);
    if (staged) {
        transfer.count_staged(options_.path, read ? piece.moved_bytes - piece.fallen_back_bytes : piece.bytes);
        transfer.count_staged(PathKind::buffered, piece.fallen_back_bytes);
    }
    account(transfer, options_.path, {&piece, 1});
}

void InlineLanes::run(TransferState& transfer) {
    std::unique_ptr<Lane> lane;
    std::uint64_t position = 0;
    try {
        device_.enter_thread();
        lane = borrow();
        for (const PlanPiece& piece : transfer.plan().steps.front().pieces) {
            position = transfer.request().ranges[piece.range].position + piece.offset_bytes;
            transfer.check_deadline();
            if (transfer.stopped()) {
                transfer.short_at(position);
            } else {
                move_piece(*lane, transfer, piece);
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
