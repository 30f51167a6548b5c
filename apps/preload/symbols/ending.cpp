// Ends of a process that run no destructor: what the library owes is done first. And calls that the kernel refuses, or
// that never end, while a process has threads which are not the program's; and those by which a program gives up system
// calls that the library makes.
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "preload/symbols/next.hpp"
#include "preload/watch.hpp"

namespace {

// The process then lives as long as its other threads.
void thread_ends() {
    if (::syscall(SYS_gettid) == ::syscall(SYS_getpid)) preload::watch.main_thread_ends();
}

}  // namespace

PENSTOCK_SHOWN void _exit(int code) {
    preload::watch.end();
    PENSTOCK_NEXT(_exit)(code);
    __builtin_unreachable();
}

PENSTOCK_SHOWN void _Exit(int code) noexcept {
    preload::watch.end();
    PENSTOCK_NEXT(_Exit)(code);
    __builtin_unreachable();
}

PENSTOCK_SHOWN void pthread_exit(void* value) {
    thread_ends();
    PENSTOCK_NEXT(pthread_exit)(value);
    __builtin_unreachable();
}

PENSTOCK_SHOWN void thrd_exit(int value) {
    thread_ends();
    PENSTOCK_NEXT(thrd_exit)(value);
    __builtin_unreachable();
}

PENSTOCK_SHOWN int unshare(int flags) noexcept {
    if ((flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)) != 0) preload::watch.be_one_thread();
    return PENSTOCK_NEXT(unshare)(flags);
}

PENSTOCK_SHOWN int setns(int number, int kind) noexcept {
    preload::watch.be_one_thread();
    return PENSTOCK_NEXT(setns)(number, kind);
}

// The kernel would end the program for a system call of the library. A filter is preceded by PR_SET_NO_NEW_PRIVS where
// the caller has no rights of an administrator, and libseccomp asks for that by this function.
PENSTOCK_SHOWN int prctl(int what, ...) noexcept {
    va_list more;
    va_start(more, what);
    unsigned long words[4];
    for (unsigned long& word : words) word = va_arg(more, unsigned long);
    va_end(more);
    if (what == PR_SET_SECCOMP || what == PR_SET_NO_NEW_PRIVS) preload::watch.stand_aside();
    return PENSTOCK_NEXT(prctl)(what, words[0], words[1], words[2], words[3]);
}
