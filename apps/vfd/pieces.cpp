// See pieces.hpp.
#include "vfd/pieces.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "vfd/plain.hpp"

namespace penstock::vfd {
namespace {

static_assert(2 * kWindowBytes <= Engine::kStagingBytes, "a window, and its pieces packed");

// `Bytes` is 0 where the length is no constant: then it is the run's.
template <std::size_t Bytes>
void copy_run(const Run& run, std::byte* window, std::byte* memory, bool to_window) {
    const std::size_t bytes = Bytes == 0 ? run.first.bytes : Bytes;
    for (std::size_t i = 0; i < run.count; ++i) {
        std::memcpy(to_window ? window : memory, to_window ? memory : window, bytes);
        window += run.file_step;
        memory += run.memory_step;
    }
}

// A copy of a few bytes is inline where the compiler knows how many.
void copy_run(const Run& run, std::byte* window, std::byte* memory, bool to_window) {
    switch (run.first.bytes) {
        case 4: return copy_run<4>(run, window, memory, to_window);
        case 8: return copy_run<8>(run, window, memory, to_window);
        case 12: return copy_run<12>(run, window, memory, to_window);
        case 16: return copy_run<16>(run, window, memory, to_window);
        case 24: return copy_run<24>(run, window, memory, to_window);
        default: return copy_run<0>(run, window, memory, to_window);
    }
}

bool continues(const Piece& last, const Piece& next) {
    return last.offset_bytes + last.bytes == next.offset_bytes && last.memory + last.bytes == next.memory;
}

}  // namespace

void Windows::begin(const Piece& piece, const Place& place) noexcept {
    start_ = end_ = piece.offset_bytes;
    memory_end_ = piece.memory;
    place_ = place;
    piece_bytes_ = 0;
    has_gaps_ = false;
    is_packed_ = true;
}

void Windows::flush() {
    if (pieces_ == 0) return;
    if (is_packed_ && !has_gaps_) {
        mover_.move(write_, {start_, window_bytes(), runs_.front().first.memory}, place_);
    } else {
        if (place_.on_device()) by_device();
        else by_host();
        Moved& moved = mover_.tally().moved(write_);
        moved.windows.add(window_bytes());
        moved.pieces.fetch_add(pieces_, std::memory_order_relaxed);
    }
    runs_.clear();
    pieces_ = 0;
}

void Windows::copy_runs(std::byte* window, std::byte* packed) const {
    for (const Run& run : runs_) {
        std::byte* memory = run.first.memory;
        if (packed != nullptr) memory = packed + (memory - runs_.front().first.memory);
        copy_run(run, window + (run.first.offset_bytes - start_), memory, write_);
    }
}

void Windows::by_host() {
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kWindowBytes);
    if (!write_ || has_gaps_) read_or_zero(mover_.fd(), buffer_.get(), window_bytes(), start_);
    copy_runs(buffer_.get(), nullptr);
    if (write_) write_plain(mover_.fd(), buffer_.get(), window_bytes(), start_);
}

void Windows::by_device() {
    const std::shared_ptr<Engine> engine = mover_.settled_engine_of(place_);
    engine->with_staging([&](std::byte* staging) {
        std::byte* memory = runs_.front().first.memory;
        std::byte* packed = staging + kWindowBytes;
        if (!write_ || has_gaps_) read_or_zero(mover_.fd(), staging, window_bytes(), start_);
        if (is_packed_ && write_) engine->copy_to_host(packed, memory, piece_bytes_);
        if (is_packed_) copy_runs(staging, packed);
        else copy_by_kernel(*engine, staging);
        if (is_packed_ && !write_) engine->copy_to_device(memory, packed, piece_bytes_);
        if (write_) write_plain(mover_.fd(), staging, window_bytes(), start_);
    });
}

void Windows::copy_by_kernel(const Engine& engine, std::byte* staging) {
    copies_.clear();
    for (const Run& run : runs_) {
        std::byte* inside = staging + (run.first.offset_bytes - start_);
        std::byte* memory = run.first.memory;
        for (std::size_t i = 0; i < run.count; ++i, inside += run.file_step, memory += run.memory_step) {
            copies_.push_back(write_ ? penstock_copy{inside, memory, run.first.bytes}
                                     : penstock_copy{memory, inside, run.first.bytes});
        }
    }
    engine.copy_pieces(write_ ? PENSTOCK_TO_FILE : PENSTOCK_TO_MEMORY, copies_);
}

void LargePieces::add(const Piece& piece, const Place& place) {
    if (place != place_) flush();
    place_ = place;
    if (!pieces_.empty() && continues(pieces_.back(), piece)) pieces_.back().bytes += piece.bytes;
    else pieces_.push_back(piece);
}

void LargePieces::flush() {
    if (!pieces_.empty()) mover_.move_all(write_, pieces_, place_);
    pieces_.clear();
}

void PieceMover::flush() {
    windows_.flush();
    large_.flush();
    file_end_ = 0;
    memory_end_ = nullptr;
}

void move_pieces(Mover& mover, bool write, const PieceArrays& arrays) {
    Places places;
    PieceMover moves(mover, write);
    bool same_bytes = false, same_use = false;
    std::size_t bytes = 0;
    Use use = Use::any;
    for (std::uint32_t i = 0; i < arrays.count; ++i) {
        same_bytes = same_bytes || (i > 0 && arrays.bytes[i] == 0);
        same_use = same_use || (i > 0 && arrays.uses[i] == Use::same_as_before);
        if (!same_bytes) bytes = arrays.bytes[i];
        if (!same_use) use = arrays.uses[i];
        if (bytes == 0) continue;
        const Piece piece{arrays.offsets[i], bytes, static_cast<std::byte*>(arrays.memory[i])};
        const Place place = use == Use::raw ? places.of(mover, piece.memory) : Place{};
        moves.add(piece, place);
    }
    moves.flush();
}

}  // namespace penstock::vfd
