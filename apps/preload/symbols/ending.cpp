// Ends of a process that run no destructor: what the library owes is done first. And calls that the kernel refuses, or
// that never end, while a process has threads which are not the program's.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
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
