// fread() and fwrite(). The stream stays libc's own, with its buffer and its number, so that fileno() and all else need
// no care.
//
// Memory of a GPU must not reach libc, which would copy to and from its buffer there. The stream's buffer is then
// written out, the engine moves the bytes, and the stream is put behind them.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include <algorithm>

#include "preload/symbols/moving.hpp"
#include "preload/symbols/next.hpp"

using preload::Direction;
using preload::watch;

namespace {

// Smaller items are not counted: a program that writes numbers one by one makes a call every 30 ns.
constexpr std::int64_t kLeastCounted = 512;
constexpr std::int64_t kBounceBytes = 8192;  // of the stack

void tell(FILE* stream, Direction direction, std::size_t bytes) {
    if (bytes == 0) return;
    const int saved = errno;  // a stream of memory has no number, and the call has been made
    const int number = ::fileno(stream);
    errno = saved;
    if (preload::Descriptor* one = watch.find(number)) {
        watch.moved(*one, {direction, static_cast<std::int64_t>(bytes)});
    }
}

// The stream is this thread's, as in libc's own calls, which take the same lock once more. A thread that is cancelled
// would keep it.
class StreamLock {
public:
    explicit StreamLock(FILE* stream) : stream_(stream) {
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_);
        ::flockfile(stream_);
    }
    ~StreamLock() {
        ::funlockfile(stream_);
        ::pthread_setcancelstate(state_, nullptr);
    }
    StreamLock(const StreamLock&) = delete;
    StreamLock& operator=(const StreamLock&) = delete;

private:
    FILE* stream_;
    int state_ = 0;
};

std::size_t behind(FILE* stream, const preload::GpuCall& call) {
    const auto bytes = static_cast<std::size_t>(call.bytes);
    if (call.direction == Direction::read) return PENSTOCK_NEXT(fread)(call.data, 1, bytes, stream);
    return PENSTOCK_NEXT(fwrite)(call.data, 1, bytes, stream);
}

preload::GpuCall rest_of(const preload::GpuCall& call, std::int64_t done) {
    preload::GpuCall rest = call;
    rest.data = static_cast<char*>(call.data) + done;
    rest.bytes = call.bytes - done;
    return rest;
}

// A stream that cannot be put elsewhere, such as a pipe's, may hold bytes that it read ahead: libc gives those first.
std::size_t read_by_host(FILE* stream, const preload::GpuCall& call, const preload::GpuPointer& pointer) {
    char host[kBounceBytes];
    std::int64_t done = 0;
    while (done < call.bytes) {
        preload::GpuCall piece = rest_of(call, done);
        void* const there = piece.data;
        piece.data = host;
        piece.bytes = std::min(kBounceBytes, piece.bytes);
        const auto got = static_cast<std::int64_t>(behind(stream, piece));
        if (got > 0 && !preload::copy_to_gpu(pointer, there, host, got)) break;
        done += got;
        if (got < piece.bytes) break;
    }
    return static_cast<std::size_t>(done);
}

// libc marks a stream in its own calls alone. Where a file has ended one more byte is asked of them; no call of theirs
// fails at will, and so the mark is set that ferror(), a macro of libc's, looks at.
void mark(FILE* stream, bool has_ended) {
    const int cause = errno;
    char byte;
    if (has_ended) static_cast<void>(!PENSTOCK_NEXT(fread)(&byte, 1, 1, stream));
    else stream->_flags |= _IO_ERR_SEEN;
    errno = cause;
}

// By the engine and past the stream's buffer, which is empty. Managed memory that the engine does not take is libc's.
// Returns as many bytes as moved, with errno telling why not all.
std::size_t by_placed_calls(FILE* stream, const preload::GpuCall& call, const preload::GpuPointer& pointer) {
    std::int64_t done = 0;
    ssize_t moved = 1;
    bool taken = true;
    while (done < call.bytes && taken && moved > 0) {
        preload::GpuCall rest = rest_of(call, done);
        if (call.offset >= 0) rest.offset = call.offset + done;
        taken = preload::move_by_gpu(rest, pointer, moved);
        if (taken && moved > 0) done += moved;
    }
    if (call.offset >= 0) ::fseeko64(stream, call.offset + done, SEEK_SET);
    if (!taken && pointer.kind == preload::GpuPointer::Kind::managed) {
        const std::size_t more = behind(stream, rest_of(call, done));
        tell(stream, call.direction, more);
        return static_cast<std::size_t>(done) + more;
    }
    if (!taken) errno = EFAULT;
    if (done < call.bytes) mark(stream, taken && moved == 0 && call.direction == Direction::read);
    return static_cast<std::size_t>(done);
}

std::size_t by_gpu(FILE* stream, preload::GpuCall call, const preload::GpuPointer& pointer) {
    const StreamLock locked(stream);
    const int saved = errno;
    const off64_t begin = ::ftello64(stream);
    call.number = ::fileno(stream);
    errno = saved;
    const bool reads = call.direction == Direction::read;
    const bool appends = !reads && (::fcntl(call.number, F_GETFL) & O_APPEND) != 0;
    if ((begin < 0 && reads) || call.number < 0) {
        if (pointer.kind == preload::GpuPointer::Kind::managed) return behind(stream, call);
        if (reads) return read_by_host(stream, call, pointer);
        errno = EFAULT;  // a stream of memory of the host, to which libc would copy with the CPU
        mark(stream, false);
        return 0;
    }
    if (::fflush(stream) != 0) return 0;
    call.offset = appends ? -1 : begin;
    return by_placed_calls(stream, call, pointer);
}

template <typename Plain>
std::size_t items(FILE* stream, const preload::GpuCall& call, std::size_t size, Plain plain) {
    if (const preload::GpuPointer pointer = preload::asked_pointer(call.data, call.bytes)) {
        return by_gpu(stream, call, pointer) / size;
    }
    const std::size_t got = plain();
    tell(stream, call.direction, got * size);
    return got;
}

// The bytes of a call; below 0: more than there can be, which is libc's to answer.
std::int64_t bytes_of(std::size_t size, std::size_t count) {
    std::int64_t bytes = 0;
    return __builtin_mul_overflow(size, count, &bytes) ? -1 : bytes;
}

}  // namespace

#define PENSTOCK_STREAM(direction, function, type)                                                                    \
    PENSTOCK_SHOWN size_t function(type data, size_t size, size_t count, FILE* stream) {                              \
        const auto plain = [&] { return PENSTOCK_NEXT(function)(data, size, count, stream); };                        \
        const std::int64_t bytes = bytes_of(size, count);                                                             \
        if (bytes < kLeastCounted) [[likely]] return plain();                                                         \
        return items(stream, {direction, -1, const_cast<void*>(static_cast<const void*>(data)), bytes}, size, plain); \
    }
PENSTOCK_STREAM(Direction::read, fread, void*)
PENSTOCK_STREAM(Direction::read, fread_unlocked, void*)
PENSTOCK_STREAM(Direction::write, fwrite, const void*)
PENSTOCK_STREAM(Direction::write, fwrite_unlocked, const void*)

#define PENSTOCK_STREAM_CHK(function)                                                                  \
    extern "C" size_t function(void* data, size_t most, size_t size, size_t count, FILE* stream);      \
    PENSTOCK_SHOWN size_t function(void* data, size_t most, size_t size, size_t count, FILE* stream) { \
        const auto plain = [&] { return PENSTOCK_NEXT(function)(data, most, size, count, stream); };   \
        const std::int64_t bytes = bytes_of(size, count);                                              \
        if (bytes < kLeastCounted || static_cast<std::size_t>(bytes) > most) return plain();           \
        return items(stream, {Direction::read, -1, data, bytes}, size, plain);                         \
    }
PENSTOCK_STREAM_CHK(__fread_chk)
PENSTOCK_STREAM_CHK(__fread_unlocked_chk)
