// Native on the host: the compiler's atomics, which ThreadSanitizer follows, and a warp of one thread.
#pragma once

#include <sched.h>

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::load(const T* word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE void Native::store(T* word, T value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::add(T* word, T value) {
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::set_bits(T* word, T bits) {
    return __atomic_fetch_or(word, bits, __ATOMIC_ACQ_REL);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::clear_bits(T* word, T bits) {
    return __atomic_fetch_and(word, static_cast<T>(~bits), __ATOMIC_ACQ_REL);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE bool Native::swap_if(T* word, T& expected, T desired) {
    return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

template <class T>
PENSTOCK_ONDEVICE void Native::tick(T* word, T value) {
    __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

PENSTOCK_ONDEVICE u64 Native::now_ns() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<u64>(now.tv_sec) * 1'000'000'000u + static_cast<u64>(now.tv_nsec);
}

PENSTOCK_ONDEVICE u64 Native::cycles() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    u64 ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return now_ns();
#endif
}

PENSTOCK_ONDEVICE void Native::pause(u32) { sched_yield(); }

PENSTOCK_ONDEVICE u32 Native::lane() { return 0; }
PENSTOCK_ONDEVICE u32 Native::processor() { return 0; }
PENSTOCK_ONDEVICE Lanes Native::active() { return 1; }
PENSTOCK_ONDEVICE void Native::sync(Lanes) {}
PENSTOCK_ONDEVICE Lanes Native::same(Lanes, u64) { return 1; }
PENSTOCK_ONDEVICE Lanes Native::ballot(Lanes, bool condition) { return condition ? 1 : 0; }

template <class T>
PENSTOCK_ONDEVICE T Native::from(Lanes, T value, u32) {
    return value;
}

}  // namespace penstock::ondevice
