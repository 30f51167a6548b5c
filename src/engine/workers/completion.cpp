// What a session does with a completion: go on, retry, fall back, fail.
//
// Retries are for EINTR, EAGAIN and short counts. O_DIRECT refused at transfer time (EINVAL, EOPNOTSUPP) goes through
// the page cache instead, recorded as a fallback, or is an error in a strict transfer. Anything else ends the transfer.
#include <cerrno>

#include "engine/workers/session.hpp"
#include "os/file/move_all.hpp"

namespace penstock::engine {

void Session::complete(const Completion& completion) {
    const auto index = static_cast<std::uint32_t>(completion.tag >> 32);
    const auto piece_index = static_cast<std::uint32_t>(completion.tag);
    Chunk& chunk = chunks_[index];
    if (chunk.given_up) {
        --chunk.open_pieces;
        return land_given_up(chunk);
    }
    if (completion.status != ErrorCode::ok) return retry_or_fail(chunk, completion);
    TransferState& transfer = chunk.job->transfer();
    if (completion.bytes == 0) {
        if (shape_.direction == Direction::write) {
            Completion refused = completion;
            refused.status = ErrorCode::io_error;
            refused.system_code = EIO;
            return retry_or_fail(chunk, refused);
        }
        transfer.reached_end();
        return complete_piece(chunk);
    }
    Piece& piece = chunk.pieces[piece_index];
    if (completion.lent != nullptr && !slots_.copy_lent(chunk, piece, completion)) return complete_piece(chunk);
    piece.moved_bytes += completion.bytes;
    piece.retries = 0;
    const bool enough = piece.arrived_bytes() == piece.bytes;
    // A read that bypasses the cache ends inside a block only at the end of the file.
    const bool cut_by_end = shape_.direction == Direction::read && capabilities_.bypasses_cache &&
                            piece.moved_bytes % piece.file->offset_alignment != 0;
    if (!enough && !cut_by_end) return push_operation(index, piece_index);
    if (!enough) transfer.reached_end();
    complete_piece(chunk);
}

void Session::retry_or_fail(Chunk& chunk, const Completion& completion) {
    const auto piece_index = static_cast<std::uint32_t>(completion.tag);
    Piece& piece = chunk.pieces[piece_index];
    TransferState& transfer = chunk.job->transfer();
    const int number = completion.system_code;
    if (!transfer.stopped() && os::try_again(number, piece.retries)) {
        return push_operation(static_cast<std::uint32_t>(completion.tag >> 32), piece_index);
    }
    const bool refused = capabilities_.bypasses_cache && refuses_bypass(number) && !transfer.stopped() &&
                         piece.operation_memory != nullptr && piece.file->buffered_fd >= 0;
    if (refused && !transfer.request().strict) {
        transfer.add_fallback(shape_.path, PathKind::buffered, fall_back(system_, transfer, piece),
                              refused_at_transfer(number));
    } else if (refused) {
        transfer.stop(bypass_refused(operation_error(piece, shape_.direction, completion, shape_.path)));
    } else if (completion.status != ErrorCode::cancelled || !transfer.stopped()) {
        transfer.stop(operation_error(piece, shape_.direction, completion, shape_.path));
    }
    complete_piece(chunk);
}

void Session::complete_piece(Chunk& chunk) {
    if (--chunk.open_pieces != 0) return;
    leave_storage(chunk);
    slots_.stored(chunk);
}

}  // namespace penstock::engine
