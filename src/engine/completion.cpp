// What a session does with a completion: go on, retry, fall back, fail.
//
// Retries are for EINTR, EAGAIN and short counts. O_DIRECT refused at transfer time (EINVAL, EOPNOTSUPP) goes through
// the page cache instead, recorded as a fallback, or is an error in a strict transfer. Anything else ends the transfer.
#include <cerrno>

#include "engine/workers/session.hpp"
#include "os/file/move_all.hpp"
#include "path/mapped/mappings.hpp"

namespace penstock::engine {

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
    if (!transfer.stopped() && os::try_again(number, piece.retries)) {
        push_operation(index, piece_index);
        return;
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
    complete_piece(index, piece);
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
