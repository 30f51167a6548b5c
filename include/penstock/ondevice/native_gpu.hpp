// Native on a GPU of compute capability 7.0 or newer: PTX's own acquire and release, so that no library header is
// needed and NVRTC compiles it as it is.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {
namespace ptx {

PENSTOCK_ONDEVICE u32 load_device(const u32* word) {
    u32 value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}
PENSTOCK_ONDEVICE void store_device(u32* word, u32 value) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
PENSTOCK_ONDEVICE u32 add_device(u32* word, u32 value) {
    u32 before;
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u32 or_device(u32* word, u32 bits) {
    u32 before;
    asm volatile("atom.acq_rel.gpu.or.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u32 and_device(u32* word, u32 bits) {
    u32 before;
    asm volatile("atom.acq_rel.gpu.and.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u32 swap_device(u32* word, u32 expected, u32 desired) {
    u32 before;
    asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(word), "r"(expected), "r"(desired)
                 : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 load_device(const u64* word) {
    u64 value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
PENSTOCK_ONDEVICE void store_device(u64* word, u64 value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
PENSTOCK_ONDEVICE u64 add_device(u64* word, u64 value) {
    u64 before;
    asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 or_device(u64* word, u64 bits) {
    u64 before;
    asm volatile("atom.acq_rel.gpu.or.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 and_device(u64* word, u64 bits) {
    u64 before;
    asm volatile("atom.acq_rel.gpu.and.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 swap_device(u64* word, u64 expected, u64 desired) {
    u64 before;
    asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(before)
                 : "l"(word), "l"(expected), "l"(desired)
                 : "memory");
    return before;
}
PENSTOCK_ONDEVICE u32 load_system(const u32* word) {
    u32 value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}
PENSTOCK_ONDEVICE void store_system(u32* word, u32 value) {
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
PENSTOCK_ONDEVICE u32 add_system(u32* word, u32 value) {
    u32 before;
    asm volatile("atom.acq_rel.sys.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(value) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u32 or_system(u32* word, u32 bits) {
    u32 before;
    asm volatile("atom.acq_rel.sys.or.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u32 and_system(u32* word, u32 bits) {
    u32 before;
    asm volatile("atom.acq_rel.sys.and.b32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u32 swap_system(u32* word, u32 expected, u32 desired) {
    u32 before;
    asm volatile("atom.acq_rel.sys.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(word), "r"(expected), "r"(desired)
                 : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 load_system(const u64* word) {
    u64 value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
PENSTOCK_ONDEVICE void store_system(u64* word, u64 value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
PENSTOCK_ONDEVICE u64 add_system(u64* word, u64 value) {
    u64 before;
    asm volatile("atom.acq_rel.sys.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(value) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 or_system(u64* word, u64 bits) {
    u64 before;
    asm volatile("atom.acq_rel.sys.or.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 and_system(u64* word, u64 bits) {
    u64 before;
    asm volatile("atom.acq_rel.sys.and.b64 %0, [%1], %2;" : "=l"(before) : "l"(word), "l"(bits) : "memory");
    return before;
}
PENSTOCK_ONDEVICE u64 swap_system(u64* word, u64 expected, u64 desired) {
    u64 before;
    asm volatile("atom.acq_rel.sys.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(before)
                 : "l"(word), "l"(expected), "l"(desired)
                 : "memory");
    return before;
}

PENSTOCK_ONDEVICE void tick_device(u32* word, u32 value) {
    asm volatile("red.relaxed.gpu.add.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
PENSTOCK_ONDEVICE void tick_device(u64* word, u64 value) {
    asm volatile("red.relaxed.gpu.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

}  // namespace ptx

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::load(const T* word) {
    if constexpr (S == Scope::device) return ptx::load_device(word);
    else return ptx::load_system(word);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE void Native::store(T* word, T value) {
    if constexpr (S == Scope::device) ptx::store_device(word, value);
    else ptx::store_system(word, value);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::add(T* word, T value) {
    if constexpr (S == Scope::device) return ptx::add_device(word, value);
    else return ptx::add_system(word, value);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::set_bits(T* word, T bits) {
    if constexpr (S == Scope::device) return ptx::or_device(word, bits);
    else return ptx::or_system(word, bits);
}

template <Scope S, class T>
PENSTOCK_ONDEVICE T Native::clear_bits(T* word, T bits) {
    if constexpr (S == Scope::device) return ptx::and_device(word, static_cast<T>(~bits));
    else return ptx::and_system(word, static_cast<T>(~bits));
}

template <Scope S, class T>
PENSTOCK_ONDEVICE bool Native::swap_if(T* word, T& expected, T desired) {
    T before;
    if constexpr (S == Scope::device) before = ptx::swap_device(word, expected, desired);
    else before = ptx::swap_system(word, expected, desired);
    const bool swapped = before == expected;
    expected = before;
    return swapped;
}

template <class T>
PENSTOCK_ONDEVICE void Native::tick(T* word, T value) {
    ptx::tick_device(word, value);
}

PENSTOCK_ONDEVICE u64 Native::now_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

PENSTOCK_ONDEVICE u64 Native::cycles() { return static_cast<u64>(clock64()); }

PENSTOCK_ONDEVICE void Native::pause(u32 about_ns) {
    if (about_ns != 0) __nanosleep(about_ns);
}

PENSTOCK_ONDEVICE u32 Native::lane() {
    u32 lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

PENSTOCK_ONDEVICE u32 Native::processor() {
    u32 processor;
    asm("mov.u32 %0, %%smid;" : "=r"(processor));
    return processor;
}

PENSTOCK_ONDEVICE Lanes Native::active() { return __activemask(); }
PENSTOCK_ONDEVICE void Native::sync(Lanes lanes) { __syncwarp(lanes); }
PENSTOCK_ONDEVICE Lanes Native::same(Lanes lanes, u64 value) { return __match_any_sync(lanes, value); }
PENSTOCK_ONDEVICE Lanes Native::ballot(Lanes lanes, bool condition) { return __ballot_sync(lanes, condition); }

template <class T>
PENSTOCK_ONDEVICE T Native::from(Lanes lanes, T value, u32 source) {
    return __shfl_sync(lanes, value, static_cast<int>(source));
}

}  // namespace penstock::ondevice
