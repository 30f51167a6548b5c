// What a session does with a completion: go on, retry, fall back, fail.
//
// Retries are for EINTR, EAGAIN and short counts. O_DIRECT refused at transfer time (EINVAL, EOPNOTSUPP) goes through
// the page cache instead, recorded as a fallback, or is an error in a strict transfer. Anything else ends the transfer.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "engine/workers/session.hpp"
#include "os/refusal.hpp"
#include "path/mapped/mappings.hpp"

namespace penstock::engine {
namespace {

constexpr std::uint32_t kRetriesMax = 200;

const char* advice_for(const Completion& completion) {
    switch (completion.status) {
        case ErrorCode::no_space: return os::advice_for(completion.system_code);
        case ErrorCode::permission_denied: return "open the file for writing";
        case ErrorCode::io_error: return "look at the kernel's log (dmesg) for the device";
        default: return "";
    }
}

}  // namespace

ErrorInfo operation_error(const Piece& piece, Direction direction, const Completion& completion, PathKind path) {
    ErrorInfo info;
    info.code = completion.status;
    info.system_code = completion.system_code;
    info.operation = to_string(direction);
    info.file = piece.file->name;
    info.offset_bytes = piece.operation_offset + piece.moved_bytes;
    info.length_bytes = piece.operation_bytes - piece.moved_bytes;
    if (completion.system_code > 0 && completion.system_code < 4096) {
        info.cause = std::strerror(completion.system_code);
    } else if (completion.system_code != 0) {
        info.cause =
            std::string(to_string(completion.status)) + " (code " + std::to_string(completion.system_code) + ")";
    } else {
        info.cause = to_string(completion.status);
    }
    info.cause += std::string(" (path ") + to_string(path) + ")";
    info.advice = advice_for(completion);
    return info;
}

ErrorInfo bypass_refused(ErrorInfo operation) {
    operation.code = ErrorCode::fallback_refused;
    operation.advice = "the file system refuses O_DIRECT here; use path buffered, or do not ask for strict";
    return operation;
}

std::string refused_at_transfer(int error_number) {
    return "O_DIRECT refused at transfer: " + std::string(std::strerror(error_number));
}

void Session::complete(const Completion& completion) {
    const auto index = static_cast<std::uint32_t>(completion.tag >> 32);
    const auto piece_index = static_cast<std::uint32_t>(completion.tag);
    Slot& slot = slots_[index];
    if (slot.phase == Phase::given_up) {
        --slot.open_pieces;
        land_given_up(slot);
        return;
    }
    Piece& piece = slot.chunk.pieces[piece_index];
    if (completion.status != ErrorCode::ok) {
        retry_or_fail(index, piece_index, completion);
        return;
    }
    if (completion.bytes == 0) {
        if (shape_.direction == Direction::write) {
            Completion refused = completion;
            refused.status = ErrorCode::io_error;
            refused.system_code = EIO;
            retry_or_fail(index, piece_index, refused);
            return;
        }
        transfer_of(slot).reached_end();
        complete_piece(index, piece);
        return;
    }
    if (completion.lent != nullptr && !copy_lent(slot, piece, completion)) {
        complete_piece(index, piece);
        return;
    }
    piece.moved_bytes += completion.bytes;
    const bool enough = piece.arrived_bytes() == piece.bytes;
    // A read that bypasses the cache ends inside a block only at the end of the file.
    const bool cut_by_end = shape_.direction == Direction::read && capabilities_.bypasses_cache &&
                            piece.moved_bytes % piece.file->offset_alignment != 0;
    if (enough || cut_by_end) {
        if (!enough) transfer_of(slot).reached_end();
        complete_piece(index, piece);
    } else {
        push_operation(index, piece_index);
    }
}

void Session::retry_or_fail(std::uint32_t index, std::uint32_t piece_index, const Completion& completion) {
    Slot& slot = slots_[index];
    Piece& piece = slot.chunk.pieces[piece_index];
    TransferState& transfer = transfer_of(slot);
    const int number = completion.system_code;
    if ((number == EINTR || number == EAGAIN) && piece.retries < kRetriesMax && !transfer.stopped()) {
        if (++piece.retries > 20) std::this_thread::sleep_for(std::chrono::microseconds(100));
        push_operation(index, piece_index);
        return;
    }
    const bool refused_bypass = capabilities_.bypasses_cache && (number == EINVAL || number == EOPNOTSUPP);
    std::byte* memory = operation_memory(index, piece);
    if (refused_bypass && !transfer.stopped() && memory != nullptr && piece.file->buffered_fd >= 0) {
        if (!transfer.request().strict) {
            fall_back(piece, memory, transfer, number);
            complete_piece(index, piece);
            return;
        }
        transfer.stop(bypass_refused(operation_error(piece, shape_.direction, completion, shape_.path)));
    } else if (completion.status != ErrorCode::cancelled || !transfer.stopped()) {
        transfer.stop(operation_error(piece, shape_.direction, completion, shape_.path));
    }
    complete_piece(index, piece);
}

void Session::fall_back(Piece& piece, std::byte* memory, TransferState& transfer, int error_number) {
    const std::uint64_t before = piece.arrived_bytes();
    transfer.count_operation(PathKind::buffered);
    while (piece.arrived_bytes() < piece.bytes) {
        const std::uint64_t left = piece.operation_bytes - piece.moved_bytes;
        const std::uint64_t offset = piece.operation_offset + piece.moved_bytes;
        const ssize_t count = shape_.direction == Direction::read
                                  ? system_.pread(piece.file->buffered_fd, memory + piece.moved_bytes, left, offset)
                                  : system_.pwrite(piece.file->buffered_fd, memory + piece.moved_bytes, left, offset);
        if (count < 0 && (errno == EINTR || errno == EAGAIN) && ++piece.retries < kRetriesMax) continue;
        if (count < 0 || (count == 0 && shape_.direction == Direction::write)) {
            const int number = count < 0 ? errno : EIO;
            Completion failed;
            failed.status = code_from_errno(number);
            failed.system_code = number;
            transfer.stop(operation_error(piece, shape_.direction, failed, PathKind::buffered));
            break;
        }
        if (count == 0) {
            transfer.reached_end();
            break;
        }
        piece.moved_bytes += static_cast<std::uint64_t>(count);
    }
    const std::uint64_t bytes = piece.arrived_bytes() - before;
    piece.fallen_back_bytes += bytes;
    transfer.add_fallback(shape_.path, PathKind::buffered, bytes, refused_at_transfer(error_number));
}

bool Session::copy_lent(Slot& slot, Piece& piece, const Completion& completion) {
    TransferState& transfer = transfer_of(slot);
    try {
        station_.stream().copy(CopyDirection::to_device, piece.memory + piece.moved_bytes, completion.lent,
                               completion.bytes);
    } catch (const Error& error) {
        spent_ = true;
        transfer.stop(error.info());
        return false;
    }
    slot.copied_from_lent = true;
    if (completion.lent_pinned) transfer.count_lent_pinned(shape_.path);
    return true;
}

// A file cut short while the device read its mapping may have given bytes that no longer exist.
void Session::check_lent(const Slot& slot, Piece& piece) {
    if (piece.moved_bytes == 0 ||
        path::Mappings::still_inside(*piece.file, piece.operation_offset, piece.moved_bytes)) {
        return;
    }
    piece.moved_bytes = 0;
    transfer_of(slot).reached_end();
}

void Session::complete_piece(std::uint32_t index, Piece&) {
    Slot& slot = slots_[index];
    if (--slot.open_pieces == 0) storage_done(index);
}

void Session::storage_done(std::uint32_t index) {
    Slot& slot = slots_[index];
    if (team_) {
        hand_over(index);
    } else if (slot.copied_from_lent) {
        slot.phase = Phase::copying;
        station_.stream().record(station_.event(index));
        copying_.push_back(index);
    } else if (shape_.staged && shape_.direction == Direction::read) {
        copies_to_device(index);
    } else {
        finish(index);
    }
}

}  // namespace penstock::engine
