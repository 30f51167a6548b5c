// open() and its kin, and whatever closes a number. Each makes the call behind it and tells the watch.
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "preload/symbols/next.hpp"
#include "preload/watch.hpp"

using preload::watch;

namespace {

constexpr int kMost = preload::kMostNumber;

bool makes(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

int told(int number, const char* name, const void* caller) {
    if (number >= 0) watch.opened(number, name, caller);
    return number;
}

}  // namespace

// The mode is there only if the flags say that a file may be made.
#define PENSTOCK_MODE(flags)                     \
    mode_t mode = 0;                             \
    if (makes(flags)) {                          \
        va_list more;                            \
        va_start(more, flags);                   \
        mode = va_arg(more, mode_t);             \
        va_end(more);                            \
    }

#define PENSTOCK_OPEN(function)                                                                          \
    PENSTOCK_SHOWN int function(const char* name, int flags, ...) {                                      \
        PENSTOCK_MODE(flags)                                                                             \
        return told(PENSTOCK_NEXT(function)(name, flags, mode), name, __builtin_return_address(0));      \
    }
#define PENSTOCK_OPENAT(function)                                                                           \
    PENSTOCK_SHOWN int function(int folder, const char* name, int flags, ...) {                             \
        PENSTOCK_MODE(flags)                                                                                \
        return told(PENSTOCK_NEXT(function)(folder, name, flags, mode), name, __builtin_return_address(0)); \
    }
#define PENSTOCK_CREAT(function)                                                                   \
    PENSTOCK_SHOWN int function(const char* name, mode_t mode) {                                   \
        return told(PENSTOCK_NEXT(function)(name, mode), name, __builtin_return_address(0));       \
    }
// What programs call that were compiled with _FORTIFY_SOURCE.
#define PENSTOCK_OPEN_2(function)                                                                  \
    extern "C" int function(const char* name, int flags);                                          \
    PENSTOCK_SHOWN int function(const char* name, int flags) {                                     \
        return told(PENSTOCK_NEXT(function)(name, flags), name, __builtin_return_address(0));      \
    }
#define PENSTOCK_OPENAT_2(function)                                                                     \
    extern "C" int function(int folder, const char* name, int flags);                                   \
    PENSTOCK_SHOWN int function(int folder, const char* name, int flags) {                              \
        return told(PENSTOCK_NEXT(function)(folder, name, flags), name, __builtin_return_address(0));   \
    }
#define PENSTOCK_FOPEN(function)                                                                        \
    PENSTOCK_SHOWN FILE* function(const char* name, const char* mode) {                                 \
        FILE* stream = PENSTOCK_NEXT(function)(name, mode);                                             \
        if (stream != nullptr) watch.opened(::fileno(stream), name, __builtin_return_address(0));       \
        if (stream != nullptr) watch.streamed(::fileno(stream), stream);                                \
        return stream;                                                                                  \
    }
#define PENSTOCK_FREOPEN(function)                                                                      \
    PENSTOCK_SHOWN FILE* function(const char* name, const char* mode, FILE* old) {                      \
        char before[preload::kMostName] = {};  /* without a name, the same file is opened another way */ \
        if (const preload::Descriptor* one = watch.find(::fileno(old))) {                               \
            std::memcpy(before, one->name, sizeof before - 1);                                          \
        }                                                                                               \
        watch.replaced(::fileno(old));                                                                  \
        FILE* stream = PENSTOCK_NEXT(function)(name, mode, old);                                        \
        const char* now = name != nullptr ? name : before;                                              \
        if (stream != nullptr && *now != 0) watch.opened(::fileno(stream), now, __builtin_return_address(0)); \
        if (stream != nullptr) watch.streamed(::fileno(stream), stream);                                \
        return stream;                                                                                  \
    }

PENSTOCK_OPEN(open)
PENSTOCK_OPEN(open64)
PENSTOCK_OPENAT(openat)
PENSTOCK_OPENAT(openat64)
PENSTOCK_CREAT(creat)
PENSTOCK_CREAT(creat64)
PENSTOCK_OPEN_2(__open_2)
PENSTOCK_OPEN_2(__open64_2)
PENSTOCK_OPENAT_2(__openat_2)
PENSTOCK_OPENAT_2(__openat64_2)
PENSTOCK_FOPEN(fopen)
PENSTOCK_FOPEN(fopen64)
PENSTOCK_FREOPEN(freopen)
PENSTOCK_FREOPEN(freopen64)

PENSTOCK_SHOWN FILE* fdopen(int number, const char* mode) noexcept {
    FILE* stream = PENSTOCK_NEXT(fdopen)(number, mode);
    if (stream != nullptr) watch.streamed(number, stream);
    return stream;
}

// ---- New files whose names libc makes up; programs rename them when they are whole ----

#define PENSTOCK_NEW(function, words, ...)                                              \
    PENSTOCK_SHOWN int function words {                                                 \
        return told(PENSTOCK_NEXT(function)(__VA_ARGS__), name, __builtin_return_address(0)); \
    }
PENSTOCK_NEW(mkstemp, (char* name), name)
PENSTOCK_NEW(mkstemp64, (char* name), name)
PENSTOCK_NEW(mkostemp, (char* name, int flags), name, flags)
PENSTOCK_NEW(mkostemp64, (char* name, int flags), name, flags)
PENSTOCK_NEW(mkstemps, (char* name, int behind), name, behind)
PENSTOCK_NEW(mkstemps64, (char* name, int behind), name, behind)
PENSTOCK_NEW(mkostemps, (char* name, int behind, int flags), name, behind, flags)
PENSTOCK_NEW(mkostemps64, (char* name, int behind, int flags), name, behind, flags)

// ---- What closes a number ----

PENSTOCK_SHOWN int close(int number) {
    int error = 0;
    preload::Descriptor* descriptor = watch.closing(number, error);
    const int result = PENSTOCK_NEXT(close)(number);
    watch.closed(descriptor);
    if (result == 0 && error != 0) errno = error;
    return result == 0 && error != 0 ? -1 : result;
}

// What a stream still holds is written before the file is made durable.
PENSTOCK_SHOWN int fclose(FILE* stream) {
    const int saved = errno;
    const int number = ::fileno(stream);
    errno = saved;  // a stream of memory has no number
    const bool writes = watch.settings().durable && number >= 0 && ::__fwritable(stream) != 0;
    const bool flushed = !writes || ::fflush(stream) == 0;  // of one that only reads it would move the file's position
    const int cause = errno;
    int error = 0;
    preload::Descriptor* descriptor = watch.closing(number, error);
    int result = PENSTOCK_NEXT(fclose)(stream);
    watch.closed(descriptor);
    if (result == 0 && (!flushed || error != 0)) {
        errno = flushed ? error : cause;
        result = EOF;
    }
    return result;
}

// ---- Another number for the same open file: NumPy writes by one ----

PENSTOCK_SHOWN int dup(int number) noexcept {
    const int other = PENSTOCK_NEXT(dup)(number);
    watch.duplicated(number, other);
    return other;
}

PENSTOCK_SHOWN int dup2(int number, int other) noexcept {
    if (number != other && preload::kernel::is_open(number)) watch.replaced(other);
    const int result = PENSTOCK_NEXT(dup2)(number, other);
    if (number != other) watch.duplicated(number, result);
    return result;
}

PENSTOCK_SHOWN int dup3(int number, int other, int flags) noexcept {
    const bool is_sound = number != other && (flags & ~O_CLOEXEC) == 0;
    if (is_sound && preload::kernel::is_open(number)) watch.replaced(other);
    const int result = PENSTOCK_NEXT(dup3)(number, other, flags);
    watch.duplicated(number, result);
    return result;
}

// The last word is a pointer, a number or absent; all come in the same register.
#define PENSTOCK_FCNTL(function)                                                                \
    PENSTOCK_SHOWN int function(int number, int what, ...) {                                    \
        va_list more;                                                                           \
        va_start(more, what);                                                                   \
        void* word = va_arg(more, void*);                                                       \
        va_end(more);                                                                           \
        const int result = PENSTOCK_NEXT(function)(number, what, word);                         \
        if (what == F_DUPFD || what == F_DUPFD_CLOEXEC) watch.duplicated(number, result);       \
        return result;                                                                          \
    }
PENSTOCK_FCNTL(fcntl)
PENSTOCK_FCNTL(fcntl64)

// ---- Many numbers at once ----

PENSTOCK_SHOWN void closefrom(int lowest) noexcept {
    for (int number = lowest < 0 ? 0 : lowest; number < kMost; ++number) watch.replaced(number);
    PENSTOCK_NEXT(closefrom)(lowest);
}

PENSTOCK_SHOWN int close_range(unsigned first, unsigned last, int flags) noexcept {
    if ((flags & CLOSE_RANGE_CLOEXEC) == 0) {
        for (unsigned number = first; number <= last && number < static_cast<unsigned>(kMost); ++number) {
            watch.replaced(static_cast<int>(number));
        }
    }
    return PENSTOCK_NEXT(close_range)(first, last, flags);
}
