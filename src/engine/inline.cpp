// See inline.hpp.
#include "engine/inline.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/current_error.hpp"
#include "engine/workers/session.hpp"

namespace penstock::engine {
namespace {

constexpr int kRetriesMax = 200;

}  // namespace

struct InlineLanes::Lane {
    std::unique_ptr<Stream> stream;
    std::byte* slot = nullptr;
};

struct InlineLanes::Span {
    const FileHandle* file;
    std::uint64_t offset_bytes;
    std::uint64_t bytes;
    PathKind path;

    Span from(std::uint64_t moved) const { return {file, offset_bytes + moved, bytes - moved, path}; }
    int fd() const { return path == PathKind::direct ? file->direct_fd : file->buffered_fd; }
    // A read that bypasses the cache ends inside a block only at the end of the file.
    bool cut_by_end(std::uint64_t moved) const {
        return path == PathKind::direct && moved < bytes && moved % file->offset_alignment != 0;
    }
    ErrorInfo error(Direction direction, int error_number) const {
        Piece piece;
        piece.file = file;
        piece.operation_offset = offset_bytes;
        piece.operation_bytes = bytes;
        Completion failed;
        failed.status = code_from_errno(error_number);
        failed.system_code = error_number;
        return operation_error(piece, direction, failed, path);
    }
};

// Fewer bytes than asked for: the file ended (read) or the transfer stopped.
struct InlineLanes::Moved {
    std::uint64_t bytes = 0;        // by the lanes' path
    std::uint64_t other_bytes = 0;  // after it was refused: through the page cache
    int refusal = 0;                // of O_DIRECT at transfer time: the errno

    std::uint64_t all() const { return bytes + other_bytes; }
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

InlineLanes::Moved InlineLanes::storage(TransferState& transfer, std::byte* memory, const Span& span) {
    const Direction direction = transfer.request().direction;
    const bool read = direction == Direction::read;
    Moved moved;
    for (int retries = 0; moved.bytes < span.bytes;) {
        const Span rest = span.from(moved.bytes);
        transfer.count_operation(span.path);
        std::byte* part = memory + moved.bytes;
        const ssize_t count = read ? system_.pread(rest.fd(), part, rest.bytes, rest.offset_bytes)
                                   : system_.pwrite(rest.fd(), part, rest.bytes, rest.offset_bytes);
        const int number = count == 0 ? EIO : errno;
        if (count > 0) moved.bytes += static_cast<std::uint64_t>(count);
        if ((count == 0 && read) || (count > 0 && span.cut_by_end(moved.bytes))) {
            transfer.reached_end();
            break;
        }
        if (count > 0) continue;
        if ((number == EINTR || number == EAGAIN) && ++retries < kRetriesMax) continue;
        if (span.path == PathKind::direct && (number == EINVAL || number == EOPNOTSUPP)) {
            moved.refusal = number;
        } else {
            transfer.stop(rest.error(direction, number));
        }
        break;
    }
    return moved;
}

InlineLanes::Moved InlineLanes::move_span(TransferState& transfer, std::byte* memory, const Span& span) {
    Moved moved = storage(transfer, memory, span);
    if (moved.refusal == 0) return moved;
    Span rest = span.from(moved.bytes);
    if (transfer.request().strict) {
        transfer.stop(bypass_refused(rest.error(transfer.request().direction, moved.refusal)));
        return moved;
    }
    rest.path = PathKind::buffered;
    moved.other_bytes = storage(transfer, memory + moved.bytes, rest).bytes;
    transfer.add_fallback(span.path, rest.path, moved.other_bytes, refused_at_transfer(moved.refusal));
    return moved;
}

void InlineLanes::move_piece(Lane& lane, TransferState& transfer, const PlanPiece& piece) {
    const RequestRange& range = transfer.request().ranges[piece.range];
    const bool read = transfer.request().direction == Direction::read;
    const bool staged = !transfer.request().host_memory;
    std::byte* memory = range.memory + piece.offset_bytes;
    const Span span{range.file, range.offset_bytes + piece.offset_bytes, piece.bytes, options_.path};
    const auto copy = [&](CopyDirection direction, std::uint64_t bytes) {
        const bool up = direction == CopyDirection::to_device;
        lane.stream->copy(direction, up ? memory : lane.slot, up ? lane.slot : memory, bytes);
        lane.stream->synchronize();
    };
    if (staged && !read) copy(CopyDirection::to_host, span.bytes);
    const Moved moved = move_span(transfer, staged ? lane.slot : memory, span);
    if (staged && read && moved.all() != 0) copy(CopyDirection::to_device, moved.all());
    if (staged) {
        transfer.count_staged(options_.path, read ? moved.bytes : span.bytes);
        transfer.count_staged(PathKind::buffered, moved.other_bytes);
    }
    if (moved.bytes != 0) transfer.arrived(options_.path, moved.bytes);
    if (moved.other_bytes != 0) transfer.arrived(PathKind::buffered, moved.other_bytes);
    if (moved.all() < piece.bytes) transfer.short_at(range.position + piece.offset_bytes + moved.all());
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
