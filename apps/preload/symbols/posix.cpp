// read(), write() and their kin.
#include <sys/uio.h>
#include <unistd.h>

#include <climits>

#include "preload/gpu/loaded.hpp"
#include "preload/symbols/moving.hpp"
#include "preload/symbols/next.hpp"

using preload::Direction;
using preload::GpuCall;
using preload::through;

namespace {

std::int64_t room(std::size_t bytes) { return bytes > LONG_MAX ? LONG_MAX : static_cast<std::int64_t>(bytes); }

GpuCall reading(int number, void* data, std::size_t bytes, std::int64_t offset = -1) {
    return {Direction::read, number, data, room(bytes), offset};
}

GpuCall writing(int number, const void* data, std::size_t bytes, std::int64_t offset = -1) {
    return {Direction::write, number, const_cast<void*>(data), room(bytes), offset};
}

}  // namespace

PENSTOCK_SHOWN ssize_t read(int number, void* data, size_t bytes) {
    return through(reading(number, data, bytes), [&] { return PENSTOCK_NEXT(read)(number, data, bytes); });
}

PENSTOCK_SHOWN ssize_t write(int number, const void* data, size_t bytes) {
    return through(writing(number, data, bytes), [&] { return PENSTOCK_NEXT(write)(number, data, bytes); });
}

// Below 0 no offset is one, and the kernel says so; in a GpuCall it means where the descriptor stands.
#define PENSTOCK_PLACED(call, function, type, of)                                        \
    PENSTOCK_SHOWN ssize_t function(int number, type data, size_t bytes, off64_t offset) { \
        if (offset < 0) return PENSTOCK_NEXT(function)(number, data, bytes, offset);     \
        return through(call(number, data, bytes, of),                                    \
                       [&] { return PENSTOCK_NEXT(function)(number, data, bytes, offset); }); \
    }
PENSTOCK_PLACED(reading, pread, void*, offset)
PENSTOCK_PLACED(reading, pread64, void*, offset)
PENSTOCK_PLACED(writing, pwrite, const void*, offset)
PENSTOCK_PLACED(writing, pwrite64, const void*, offset)

// What programs call that were compiled with _FORTIFY_SOURCE; `most` is the room that the compiler knows of.
extern "C" ssize_t __read_chk(int number, void* data, size_t bytes, size_t most);
extern "C" ssize_t __pread_chk(int number, void* data, size_t bytes, off64_t offset, size_t most);
extern "C" ssize_t __pread64_chk(int number, void* data, size_t bytes, off64_t offset, size_t most);

PENSTOCK_SHOWN ssize_t __read_chk(int number, void* data, size_t bytes, size_t most) {
    if (bytes > most) return PENSTOCK_NEXT(__read_chk)(number, data, bytes, most);
    return through(reading(number, data, bytes), [&] { return PENSTOCK_NEXT(__read_chk)(number, data, bytes, most); });
}

#define PENSTOCK_PLACED_CHK(function)                                                                       \
    PENSTOCK_SHOWN ssize_t function(int number, void* data, size_t bytes, off64_t offset, size_t most) {     \
        if (bytes > most || offset < 0) return PENSTOCK_NEXT(function)(number, data, bytes, offset, most);   \
        return through(reading(number, data, bytes, offset),                                                \
                       [&] { return PENSTOCK_NEXT(function)(number, data, bytes, offset, most); });          \
    }
PENSTOCK_PLACED_CHK(__pread_chk)
PENSTOCK_PLACED_CHK(__pread64_chk)

// ---- Several pieces of memory. Where one is of a GPU, each moves by a call of its own: others may move bytes
// between them. ----

namespace {

struct Pieces {
    Direction direction;
    int number;
    const iovec* all;
    int count;
    std::int64_t offset = -1;  // below 0: where the descriptor stands
};

GpuCall first_of(const Pieces& pieces) {
    for (int i = 0; i < pieces.count; ++i) {
        const iovec& one = pieces.all[i];
        if (one.iov_len != 0) return {pieces.direction, pieces.number, one.iov_base, room(one.iov_len), pieces.offset};
    }
    return {pieces.direction, pieces.number, nullptr, 0, pieces.offset};
}

bool any_of_gpu(const Pieces& pieces) {
    for (int i = 0; i < pieces.count; ++i) {
        const iovec& one = pieces.all[i];
        if (one.iov_len < static_cast<std::size_t>(preload::kPointerBytes)) continue;
        if (!preload::has_cuda()) return false;
        if (preload::gpu_pointer(one.iov_base)) return true;
    }
    return false;
}

// `plain` makes the call behind with so many pieces at an offset.
template <typename Plain>
ssize_t each_through(const Pieces& pieces, Plain plain) {
    if (pieces.count < 2 || !any_of_gpu(pieces)) {
        return through(first_of(pieces), [&] { return plain(pieces.all, pieces.count, pieces.offset); });
    }
    ssize_t done = 0;
    for (int i = 0; i < pieces.count; ++i) {
        const Pieces one{pieces.direction, pieces.number, pieces.all + i, 1,
                         pieces.offset < 0 ? pieces.offset : pieces.offset + done};
        const ssize_t moved = through(first_of(one), [&] { return plain(one.all, 1, one.offset); });
        if (moved < 0) return done > 0 ? done : moved;
        done += moved;
        if (static_cast<std::size_t>(moved) < one.all->iov_len) break;
    }
    return done;
}

}  // namespace

#define PENSTOCK_PIECES_HERE(direction, function)                                                         \
    PENSTOCK_SHOWN ssize_t function(int number, const iovec* pieces, int count) {                         \
        return each_through({direction, number, pieces, count}, [&](const iovec* some, int few, off64_t) { \
            return PENSTOCK_NEXT(function)(number, some, few);                                            \
        });                                                                                               \
    }
PENSTOCK_PIECES_HERE(Direction::read, readv)
PENSTOCK_PIECES_HERE(Direction::write, writev)

#define PENSTOCK_PIECES(direction, function)                                                                        \
    PENSTOCK_SHOWN ssize_t function(int number, const iovec* pieces, int count, off64_t offset) {                   \
        if (offset < 0) return PENSTOCK_NEXT(function)(number, pieces, count, offset);                              \
        return each_through({direction, number, pieces, count, offset}, [&](const iovec* some, int few, off64_t at) { \
            return PENSTOCK_NEXT(function)(number, some, few, at);                                                  \
        });                                                                                                         \
    }
PENSTOCK_PIECES(Direction::read, preadv)
PENSTOCK_PIECES(Direction::read, preadv64)
PENSTOCK_PIECES(Direction::write, pwritev)
PENSTOCK_PIECES(Direction::write, pwritev64)

// An offset of -1 means where the descriptor stands, as it does here.
#define PENSTOCK_PIECES_2(direction, function)                                                                      \
    PENSTOCK_SHOWN ssize_t function(int number, const iovec* pieces, int count, off64_t offset, int flags) {        \
        if (offset < -1) return PENSTOCK_NEXT(function)(number, pieces, count, offset, flags);                      \
        return each_through({direction, number, pieces, count, offset}, [&](const iovec* some, int few, off64_t at) { \
            return PENSTOCK_NEXT(function)(number, some, few, at, flags);                                           \
        });                                                                                                         \
    }
PENSTOCK_PIECES_2(Direction::read, preadv2)
PENSTOCK_PIECES_2(Direction::read, preadv64v2)
PENSTOCK_PIECES_2(Direction::write, pwritev2)
PENSTOCK_PIECES_2(Direction::write, pwritev64v2)
