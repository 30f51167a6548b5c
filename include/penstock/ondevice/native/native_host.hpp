// Native on the host: the compiler's atomics, which ThreadSanitizer follows, and a warp of one thread.
#pragma once

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "penstock/ondevice/native/native.hpp"

namespace penstock::ondevice {

constexpr int host_order(Order order) {
    switch (order) {
        case Order::relaxed: return __ATOMIC_RELAXED;
        case Order::acquire: return __ATOMIC_ACQUIRE;
        case Order::release: return __ATOMIC_RELEASE;
        case Order::both: return __ATOMIC_ACQ_REL;
    }
    return __ATOMIC_SEQ_CST;
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::load(const T* word) {
    return __atomic_load_n(word, host_order(O));
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE void Native::store(T* word, T value) {
    __atomic_store_n(word, value, host_order(O));
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::add(T* word, T value) {
    return __atomic_fetch_add(word, value, host_order(O));
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::set_bits(T* word, T bits) {
    return __atomic_fetch_or(word, bits, host_order(O));
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::clear_bits(T* word, T bits) {
    return __atomic_fetch_and(word, static_cast<T>(~bits), host_order(O));
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE bool Native::swap_if(T* word, T& expected, T desired) {
    constexpr int failed = O == Order::relaxed || O == Order::release ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE;
    return __atomic_compare_exchange_n(word, &expected, desired, false, host_order(O), failed);
}

// The second word releases even with `relaxed`: the host's CPUs order stores at no cost, and C++ has no order for the
// caller's loads alone, which is what `relaxed` asks for. Platforms of tests (model_rig.hpp, publication_race_test.cpp)
// give no more order than is asked for.
template <Order O>
PENSTOCK_ONDEVICE void Native::store_pair(u64* pair, u64 first, u64 second) {
    __atomic_store_n(pair, first, __ATOMIC_RELAXED);
    __atomic_store_n(pair + 1, second, __ATOMIC_RELEASE);
}

// The second word acquires even with `relaxed`, so that the first is not loaded before it.
template <Order O>
PENSTOCK_ONDEVICE void Native::load_pair(const u64* pair, u64& first, u64& second) {
    second = __atomic_load_n(pair + 1, __ATOMIC_ACQUIRE);
    first = __atomic_load_n(pair, __ATOMIC_RELAXED);
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

// A long pause naps, which frees the core for the kernel's own threads too; a yield passes those over. If more threads
// wait than there are cores, a disk would otherwise lack the workers that complete its requests. A short pause yields,
// because a nap takes 50 us.
PENSTOCK_ONDEVICE void Native::pause(u32 about_ns) {
    constexpr u32 kNap = 16 * 1024;
    if (about_ns < kNap) {
        sched_yield();
        return;
    }
    const timespec nap{0, static_cast<long>(about_ns)};
    nanosleep(&nap, nullptr);
}

PENSTOCK_ONDEVICE u32 Native::lane() { return 0; }
PENSTOCK_ONDEVICE u32 Native::caller() { return static_cast<u32>(reinterpret_cast<u64>(&errno) >> 12); }
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
