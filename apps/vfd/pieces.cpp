// See pieces.hpp.
#include "vfd/pieces.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "vfd/plain.hpp"

namespace penstock::vfd {
namespace {

constexpr std::size_t kGapBytes = 4096;                       // a larger gap is cheaper to skip than to read
constexpr std::size_t kLargePieceBytes = std::size_t{64} << 10;  // moves by itself
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;    // stays in the cache of a core
static_assert(kWindowBytes <= Engine::kStagingBytes);

class Windows {
  public:
    Windows(Mover& mover, bool write) : mover_(mover), write_(write) {}

    void add(const Piece& piece, const Place& place) {
        if (!pieces_.empty() && !fits(piece, place)) flush();
        if (pieces_.empty()) {
            start_ = end_ = piece.offset_bytes;
            place_ = place;
            has_gaps_ = false;
            continues_ = true;
        }
        has_gaps_ = has_gaps_ || piece.offset_bytes != end_;
        continues_ = continues_ && !has_gaps_ &&
                     (pieces_.empty() || pieces_.back().memory + pieces_.back().bytes == piece.memory);
        end_ = piece.offset_bytes + piece.bytes;
        pieces_.push_back(piece);
    }

    void flush() {
        if (pieces_.empty()) return;
        if (continues_) {
            mover_.move(write_, {start_, window_bytes(), pieces_.front().memory}, place_);
        } else {
            if (place_.on_device()) by_device();
            else by_host();
            Moved& moved = mover_.tally().moved(write_);
            moved.windows.add(window_bytes());
            moved.pieces.fetch_add(pieces_.size(), std::memory_order_relaxed);
        }
        pieces_.clear();
    }

  private:
    std::size_t window_bytes() const noexcept { return static_cast<std::size_t>(end_ - start_); }

    bool fits(const Piece& piece, const Place& place) const {
        return piece.offset_bytes >= end_ && piece.offset_bytes - end_ < kGapBytes &&
               piece.offset_bytes + piece.bytes - start_ <= kWindowBytes && place == place_;
    }

    void by_host() {
        if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kWindowBytes);
        if (!write_ || has_gaps_) read_or_zero(mover_.fd(), buffer_.get(), window_bytes(), start_);
        for (const Piece& piece : pieces_) {
            std::byte* inside = buffer_.get() + (piece.offset_bytes - start_);
            if (write_) std::memcpy(inside, piece.memory, piece.bytes);
            else std::memcpy(piece.memory, inside, piece.bytes);
        }
        if (write_) write_plain(mover_.fd(), buffer_.get(), window_bytes(), start_);
    }

    void by_device() {
        const std::shared_ptr<Engine> engine = mover_.settled_engine_of(place_);
        engine->with_staging([&](std::byte* staging) {
            copies_.clear();
            for (const Piece& piece : pieces_) {
                void* inside = staging + (piece.offset_bytes - start_);
                copies_.push_back(write_ ? penstock_copy{inside, piece.memory, piece.bytes}
                                         : penstock_copy{piece.memory, inside, piece.bytes});
            }
            if (!write_ || has_gaps_) read_or_zero(mover_.fd(), staging, window_bytes(), start_);
            engine->copy_pieces(write_ ? PENSTOCK_TO_FILE : PENSTOCK_TO_MEMORY, copies_);
            if (write_) write_plain(mover_.fd(), staging, window_bytes(), start_);
        });
    }

    Mover& mover_;
    bool write_;
    std::vector<Piece> pieces_;
    std::vector<penstock_copy> copies_;
    std::uint64_t start_ = 0, end_ = 0;
    Place place_;
    bool has_gaps_ = false;   // bytes of the file between pieces
    bool continues_ = true;   // the pieces are consecutive in the file and in memory
    std::unique_ptr<std::byte[]> buffer_;
};

// Pieces that move by themselves, or together as one transfer.
class LargePieces {
  public:
    LargePieces(Mover& mover, bool write) : mover_(mover), write_(write) {}
    void add(const Piece& piece, const Place& place) {
        if (place != place_) flush();
        place_ = place;
        if (!pieces_.empty() && continues(pieces_.back(), piece)) pieces_.back().bytes += piece.bytes;
        else pieces_.push_back(piece);
    }
    void flush() {
        if (!pieces_.empty()) mover_.move_all(write_, pieces_, place_);
        pieces_.clear();
    }

  private:
    static bool continues(const Piece& last, const Piece& next) {
        return last.offset_bytes + last.bytes == next.offset_bytes && last.memory + last.bytes == next.memory;
    }
    Mover& mover_;
    bool write_;
    std::vector<Piece> pieces_;
    Place place_;
};

}  // namespace

void move_pieces(Mover& mover, bool write, const PieceArrays& arrays) {
    Places places;
    Windows windows(mover, write);
    LargePieces large(mover, write);
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
        if (bytes >= kLargePieceBytes) large.add(piece, place);
        else windows.add(piece, place);
    }
    windows.flush();
    large.flush();
}

}  // namespace penstock::vfd
