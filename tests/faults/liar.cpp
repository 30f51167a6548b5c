// A library to preload into a program. From some call on, reads of some files fail in ways that no kernel allows.
//
// LIAR_FILE is a pattern for the file's whole name. The first LIAR_AFTER calls of pread and preadv on such files are
// the real ones. Later ones do what LIAR_DO says. "nothing" reports that all was read and writes no byte. "refuse"
// returns EINVAL if the file was opened with O_DIRECT. Each call appends a letter to the file LIAR_LOG, t for a true
// one and l for a false one, so that a test knows that its fault happened.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls{0};

bool of_the_file(int descriptor) {
    const char* pattern = std::getenv("LIAR_FILE");
    char link[64], name[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = ::readlink(link, name, sizeof name - 1);
    if (pattern == nullptr || length < 0) return false;
    name[length] = '\0';
    return ::fnmatch(pattern, name, 0) == 0;
}

void log(char letter) {
    const char* file = std::getenv("LIAR_LOG");
    const int descriptor = file == nullptr ? -1 : ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor < 0) return;
    if (::write(descriptor, &letter, 1) != 1) std::abort();
    ::close(descriptor);
}

enum class Answer { real, claimed, refused };

Answer answer(int descriptor) {
    if (!of_the_file(descriptor)) return Answer::real;
    const char* after = std::getenv("LIAR_AFTER");
    const bool refuses = std::strcmp(std::getenv("LIAR_DO"), "refuse") == 0;
    const bool lies = calls++ >= std::atol(after) && (!refuses || (::fcntl(descriptor, F_GETFL) & O_DIRECT) != 0);
    log(lies ? 'l' : 't');
    if (!lies) return Answer::real;
    return refuses ? Answer::refused : Answer::claimed;
}

template <class Call>
Call* real(const char* name) {
    return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

// Makes `call` for a true answer, and otherwise reports what LIAR_DO says of `bytes` bytes.
template <class Call>
ssize_t answered(int descriptor, std::size_t bytes, const Call& call) {
    const Answer given = answer(descriptor);
    if (given == Answer::real) return call();
    if (given == Answer::claimed) return static_cast<ssize_t>(bytes);
    errno = EINVAL;
    return -1;
}

using Pread = ssize_t(int, void*, std::size_t, off64_t);
using Preadv = ssize_t(int, const iovec*, int, off64_t);

std::size_t bytes_of(const iovec* parts, int count) {
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    return bytes;
}

}  // namespace

extern "C" {

ssize_t pread(int descriptor, void* memory, std::size_t bytes, off_t offset) {
    return answered(descriptor, bytes, [&] { return real<Pread>("pread")(descriptor, memory, bytes, offset); });
}
ssize_t pread64(int descriptor, void* memory, std::size_t bytes, off64_t offset) {
    return answered(descriptor, bytes, [&] { return real<Pread>("pread64")(descriptor, memory, bytes, offset); });
}
ssize_t preadv(int descriptor, const iovec* parts, int count, off_t offset) {
    return answered(descriptor, bytes_of(parts, count),
                    [&] { return real<Preadv>("preadv")(descriptor, parts, count, offset); });
}
ssize_t preadv64(int descriptor, const iovec* parts, int count, off64_t offset) {
    return answered(descriptor, bytes_of(parts, count),
                    [&] { return real<Preadv>("preadv64")(descriptor, parts, count, offset); });
}
}
