// fread() and fwrite(). The stream stays libc's own, with its buffer and its number, so that fileno() and all else need
// no care.
//
// Memory of a GPU must not reach libc, which would copy to and from its buffer there. The stream's buffer is then
// written out, the engine moves the bytes, and the stream is put behind them.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "preload/symbols/moving.hpp"
#include "preload/symbols/next.hpp"

using preload::Direction;
using preload::watch;

namespace {

// Smaller items are not counted: a program that writes numbers one by one makes a call every 30 ns.
constexpr std::int64_t kLeastCounted = 512;

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

// As many bytes as moved, with errno telling why not all. Only libc's own functions may mark a stream, so that one more
// byte is asked of them where the file has ended.
std::size_t by_gpu(FILE* stream, preload::GpuCall call, const preload::GpuPointer& pointer) {
    const StreamLock locked(stream);
    const off64_t begin = ::ftello64(stream);
    if (::fflush(stream) != 0) return 0;
    call.number = ::fileno(stream);
    const bool appends = call.direction == Direction::write && (::fcntl(call.number, F_GETFL) & O_APPEND) != 0;
    const bool placed = begin >= 0 && !appends;
    std::int64_t done = 0;
    while (done < call.bytes) {
        preload::GpuCall rest = call;
        rest.data = static_cast<char*>(call.data) + done;
        rest.bytes = call.bytes - done;
        rest.offset = placed ? begin + done : -1;
        ssize_t moved = 0;
        if (!preload::move_by_gpu(rest, pointer, moved)) errno = EFAULT, moved = -1;
        if (moved <= 0) break;
        done += moved;
    }
    if (placed) ::fseeko64(stream, begin + done, SEEK_SET);
    if (done < call.bytes && call.direction == Direction::read) {
        char byte;
        static_cast<void>(!PENSTOCK_NEXT(fread)(&byte, 1, 1, stream));
    }
    return static_cast<std::size_t>(done);
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
