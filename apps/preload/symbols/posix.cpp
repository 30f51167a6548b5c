// read(), write() and their kin.
#include <sys/uio.h>
#include <unistd.h>

#include <climits>

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

#define PENSTOCK_PLACED(call, function, type, of)                                        \
    PENSTOCK_SHOWN ssize_t function(int number, type data, size_t bytes, off64_t offset) { \
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
        if (bytes > most) return PENSTOCK_NEXT(function)(number, data, bytes, offset, most);                 \
        return through(reading(number, data, bytes, offset),                                                \
                       [&] { return PENSTOCK_NEXT(function)(number, data, bytes, offset, most); });          \
    }
PENSTOCK_PLACED_CHK(__pread_chk)
PENSTOCK_PLACED_CHK(__pread64_chk)

// ---- Several pieces of memory. Only the first is asked whether it is of a GPU. The program then gets the count of
// that piece, which is short, and goes on by itself. ----

namespace {

GpuCall of_pieces(Direction direction, int number, const iovec* pieces, int count) {
    for (int i = 0; i < count; ++i) {
        if (pieces[i].iov_len != 0) return {direction, number, pieces[i].iov_base, room(pieces[i].iov_len), -1};
    }
    return {direction, number, nullptr, 0, -1};
}

GpuCall placed(GpuCall call, std::int64_t offset) {
    call.offset = offset;
    return call;
}

}  // namespace

PENSTOCK_SHOWN ssize_t readv(int number, const iovec* pieces, int count) {
    return through(of_pieces(Direction::read, number, pieces, count),
                   [&] { return PENSTOCK_NEXT(readv)(number, pieces, count); });
}

PENSTOCK_SHOWN ssize_t writev(int number, const iovec* pieces, int count) {
    return through(of_pieces(Direction::write, number, pieces, count),
                   [&] { return PENSTOCK_NEXT(writev)(number, pieces, count); });
}

#define PENSTOCK_PIECES(direction, function)                                                       \
    PENSTOCK_SHOWN ssize_t function(int number, const iovec* pieces, int count, off64_t offset) {  \
        return through(placed(of_pieces(direction, number, pieces, count), offset),                \
                       [&] { return PENSTOCK_NEXT(function)(number, pieces, count, offset); });    \
    }
PENSTOCK_PIECES(Direction::read, preadv)
PENSTOCK_PIECES(Direction::read, preadv64)
PENSTOCK_PIECES(Direction::write, pwritev)
PENSTOCK_PIECES(Direction::write, pwritev64)

// An offset of -1 means where the descriptor stands, as it does here.
#define PENSTOCK_PIECES_2(direction, function)                                                               \
    PENSTOCK_SHOWN ssize_t function(int number, const iovec* pieces, int count, off64_t offset, int flags) { \
        return through(placed(of_pieces(direction, number, pieces, count), offset),                          \
                       [&] { return PENSTOCK_NEXT(function)(number, pieces, count, offset, flags); });       \
    }
PENSTOCK_PIECES_2(Direction::read, preadv2)
PENSTOCK_PIECES_2(Direction::read, preadv64v2)
PENSTOCK_PIECES_2(Direction::write, pwritev2)
PENSTOCK_PIECES_2(Direction::write, pwritev64v2)
