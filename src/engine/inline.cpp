// See inline.hpp.
#include "engine/inline.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/session.hpp"

namespace penstock::engine {

struct InlineLanes::Lane {
    std::unique_ptr<Stream> stream;
    std::byte* slot = nullptr;
};

struct InlineSpan {
    const FileHandle* file;
    std::uint64_t offset_bytes;
    std::uint64_t bytes;
};

InlineLanes::InlineLanes(Device& device, os::System& system) : device_(device), system_(system) {}

InlineLanes::~InlineLanes() {
    idle_.clear();
    if (arena_.bytes() != 0) device_.unregister_host(arena_.memory().data());
}

std::uint64_t InlineLanes::pinned_bytes() const {
    const std::lock_guard lock(mutex_);
    return arena_.bytes();
}

std::unique_ptr<InlineLanes::Lane> InlineLanes::borrow() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty() || made_ < kLanesMax; });
    if (!idle_.empty()) {
        std::unique_ptr<Lane> lane = std::move(idle_.back());
        idle_.pop_back();
        return lane;
    }
    if (arena_.bytes() == 0) {
        os::Arena arena(os::ArenaOptions{kSlotBytes * kLanesMax, device_.info().numa_node});
        arena.touch();
        std::string why;
        if (!device_.register_host(arena.memory().data(), arena.bytes(), false, why)) {
            throw Error(ErrorCode::out_of_memory, "register staging memory", why);
        }
        arena_ = std::move(arena);
    }
    auto lane = std::make_unique<Lane>();
    lane->stream = device_.make_stream();
    lane->slot = arena_.memory().data() + kSlotBytes * made_++;
    return lane;
}

void InlineLanes::give_back(std::unique_ptr<Lane> lane) {
    {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(lane));
    }
    returned_.notify_one();
}

// Reads or writes a span; returns the bytes that moved. Fewer than asked: the file ended (read) or the transfer
// stopped.
std::uint64_t InlineLanes::storage(TransferState& transfer, std::byte* memory, const InlineSpan& span) {
    const bool read = transfer.request().direction == Direction::read;
    std::uint64_t moved = 0;
    for (int retries = 0; moved < span.bytes;) {
        transfer.count_operation(PathKind::buffered);
        const std::uint64_t left = span.bytes - moved;
        const ssize_t count =
            read ? system_.pread(span.file->buffered_fd, memory + moved, left, span.offset_bytes + moved)
                 : system_.pwrite(span.file->buffered_fd, memory + moved, left, span.offset_bytes + moved);
        if (count > 0) {
            moved += static_cast<std::uint64_t>(count);
            continue;
        }
        if (count == 0 && read) {
            transfer.reached_end();
            break;
        }
        const int number = count == 0 ? EIO : errno;
        if ((number == EINTR || number == EAGAIN) && ++retries < 200) continue;
        Piece piece;
        piece.file = span.file;
        piece.operation_offset = span.offset_bytes + moved;
        piece.operation_bytes = left;
        Completion failed;
        failed.status = code_from_errno(number);
        failed.system_code = number;
        transfer.stop(operation_error(piece, transfer.request().direction, failed, PathKind::buffered));
        break;
    }
    return moved;
}

void InlineLanes::move_piece(Lane& lane, TransferState& transfer, const PlanPiece& piece) {
    const RequestRange& range = transfer.request().ranges[piece.range];
    const bool read = transfer.request().direction == Direction::read;
    std::byte* memory = range.memory + piece.offset_bytes;
    const InlineSpan span{range.file, range.offset_bytes + piece.offset_bytes, piece.bytes};
    std::uint64_t moved = 0;
    if (transfer.request().host_memory) {
        moved = storage(transfer, memory, span);
    } else if (read) {
        moved = storage(transfer, lane.slot, span);
        if (moved != 0) {
            lane.stream->copy(CopyDirection::to_device, memory, lane.slot, moved);
            lane.stream->synchronize();
            transfer.count_staged(PathKind::buffered, moved);
        }
    } else {
        lane.stream->copy(CopyDirection::to_host, lane.slot, memory, span.bytes);
        lane.stream->synchronize();
        transfer.count_staged(PathKind::buffered, span.bytes);
        moved = storage(transfer, lane.slot, span);
    }
    if (moved != 0) transfer.arrived(PathKind::buffered, moved);
    if (moved < piece.bytes) transfer.short_at(range.position + piece.offset_bytes + moved);
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
