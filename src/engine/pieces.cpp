// See pieces.hpp.
#include "engine/pieces.hpp"

#include <cerrno>
#include <cstring>

#include "engine/transfer_state.hpp"
#include "os/file/move_all.hpp"
#include "os/refusal.hpp"

namespace penstock::engine {
namespace {

const char* advice_for(const Completion& completion) {
    switch (completion.status) {
        case ErrorCode::no_space: return os::advice_for(completion.system_code);
        case ErrorCode::permission_denied: return "open the file for writing";
        case ErrorCode::io_error: return "look at the kernel's log (dmesg) for the device";
        default: return "";
    }
}

std::string cause_of(const Completion& completion) {
    const int code = completion.system_code;
    if (code > 0 && code < 4096) return std::strerror(code);
    const std::string status = to_string(completion.status);
    return code == 0 ? status : status + " (code " + std::to_string(code) + ")";
}

}  // namespace

int move_rest(os::System& system, TransferState& transfer, Piece& piece, PathKind path) {
    const bool direct = path == PathKind::direct;
    const auto moved = os::move_all(
        system, {.direction = transfer.request().direction,
                 .fd = direct ? piece.file->direct_fd : piece.file->buffered_fd,
                 .memory = piece.operation_memory + piece.moved_bytes,
                 .bytes = piece.lead_bytes() + piece.bytes - piece.moved_bytes,
                 .offset_bytes = piece.operation_offset + piece.moved_bytes,
                 .block_bytes = direct ? piece.file->offset_alignment : 1});
    transfer.count_operations(path, moved.calls);
    piece.moved_bytes += moved.bytes;
    if (moved.error_number == 0 && piece.arrived_bytes() < piece.bytes) transfer.reached_end();
    return moved.error_number;
}

std::uint64_t fall_back(os::System& system, TransferState& transfer, Piece& piece) {
    const std::uint64_t before = piece.arrived_bytes();
    const int error_number = move_rest(system, transfer, piece, PathKind::buffered);
    const std::uint64_t bytes = piece.arrived_bytes() - before;
    piece.fallen_back_bytes += bytes;
    if (error_number != 0) {
        transfer.stop(operation_error(piece, transfer.request().direction, error_number, PathKind::buffered));
    }
    return bytes;
}

ErrorInfo operation_error(const Piece& piece, Direction direction, const Completion& completion, PathKind path) {
    ErrorInfo info;
    info.code = completion.status;
    info.system_code = completion.system_code;
    info.operation = to_string(direction);
    info.file = piece.file->name;
    info.offset_bytes = piece.operation_offset + piece.moved_bytes;
    info.length_bytes = piece.operation_bytes - piece.moved_bytes;
    info.cause = cause_of(completion) + " (path " + to_string(path) + ")";
    info.advice = advice_for(completion);
    return info;
}

ErrorInfo operation_error(const Piece& piece, Direction direction, int error_number, PathKind path) {
    Completion failed;
    failed.status = code_from_errno(error_number);
    failed.system_code = error_number;
    return operation_error(piece, direction, failed, path);
}

bool refuses_bypass(int error_number) noexcept { return error_number == EINVAL || error_number == EOPNOTSUPP; }

ErrorInfo bypass_refused(ErrorInfo operation) {
    operation.code = ErrorCode::fallback_refused;
    operation.advice = "the file system refuses O_DIRECT here; use path buffered, or do not ask for strict";
    return operation;
}

std::string refused_at_transfer(int error_number) {
    return "O_DIRECT refused at transfer: " + std::string(std::strerror(error_number));
}

void gather_copies(std::span<const Piece> pieces, std::vector<CopyPiece>& copies) {
    copies.clear();
    const void* allocation = nullptr;
    for (const Piece& piece : pieces) {
        const std::uint64_t bytes = piece.arrived_bytes();
        if (bytes == 0) continue;
        const std::byte* source = piece.operation_memory + piece.lead_bytes();
        CopyPiece* last = copies.empty() || allocation != piece.allocation ? nullptr : &copies.back();
        allocation = piece.allocation;
        if (last != nullptr && static_cast<std::byte*>(last->destination) + last->bytes == piece.memory &&
            static_cast<const std::byte*>(last->source) + last->bytes == source) {
            last->bytes += bytes;
        } else {
            copies.push_back({piece.memory, source, bytes});
        }
    }
}

void account(TransferState& transfer, PathKind path, std::span<const Piece> pieces) {
    std::uint64_t arrived = 0;
    std::uint64_t fallen_back = 0;
    for (const Piece& piece : pieces) {
        const std::uint64_t bytes = piece.arrived_bytes();
        arrived += bytes - piece.fallen_back_bytes;
        fallen_back += piece.fallen_back_bytes;
        if (bytes < piece.bytes) transfer.short_at(piece.position + bytes);
    }
    if (arrived != 0) transfer.arrived(path, arrived);
    if (fallen_back != 0) transfer.arrived(PathKind::buffered, fallen_back);
}

}  // namespace penstock::engine
