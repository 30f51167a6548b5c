// Copies that the lanes of a warp make together. Each lane moves 16 bytes where both sides allow it, and has several
// such moves under way, because the latency of host memory is hidden by how much is asked for at once.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

struct alignas(16) Quad {
    u64 low, high;
};

template <class P, class T>
PENSTOCK_ONDEVICE void copy_as(Lanes group, void* to, const void* from, u64 bytes) {
    constexpr u32 at_once = 8;
    T* const target = static_cast<T*>(to);
    const T* const source = static_cast<const T*>(from);
    const u64 items = bytes / sizeof(T);
    const u32 lanes = count(group);
    u64 at = rank<P>(group);
    for (; at + (at_once - 1) * lanes < items; at += at_once * lanes) {
        T held[at_once];
PENSTOCK_UNROLLED
        for (u32 i = 0; i < at_once; ++i) held[i] = source[at + i * lanes];
PENSTOCK_UNROLLED
        for (u32 i = 0; i < at_once; ++i) target[at + i * lanes] = held[i];
    }
    for (; at < items; at += lanes) target[at] = source[at];
}

// Copies bytes; all lanes of `group` call with the same arguments. Other lanes see the bytes once they have
// synchronised with the callers.
template <class P>
PENSTOCK_ONDEVICE void copy_together(Lanes group, void* to, const void* from, u64 bytes) {
#if defined(__CUDA_ARCH__)
    const u64 skew = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes;
    if (skew % 16 == 0)
        copy_as<P, Quad>(group, to, from, bytes);
    else if (skew % 4 == 0)
        copy_as<P, u32>(group, to, from, bytes);
    else
        copy_as<P, u8>(group, to, from, bytes);
#else
    static_cast<void>(group);
    __builtin_memcpy(to, from, bytes);
#endif
}

#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize_thread, noinline)) inline void copy_unseen(void* to, const void* from, u64 bytes) {
    volatile u8* const target = static_cast<u8*>(to);
    const volatile u8* const source = static_cast<const u8*>(from);
    for (u64 at = 0; at < bytes; ++at) target[at] = source[at];
}
#endif

// Copies bytes that other threads may store to meanwhile; the copy then has a part of these stores, or none. For a
// caller that learns of such stores afterwards and copies again. The thread sanitizer is told not to report this race.
template <class P>
PENSTOCK_ONDEVICE void copy_unsettled(Lanes group, void* to, const void* from, u64 bytes) {
#if defined(__SANITIZE_THREAD__)
    static_cast<void>(group);
    copy_unseen(to, from, bytes);
#else
    copy_together<P>(group, to, from, bytes);
#endif
}

template <class P>
PENSTOCK_ONDEVICE void zero_together(Lanes group, void* to, u64 bytes) {
    u8* const target = static_cast<u8*>(to);
    for (u64 at = rank<P>(group); at < bytes; at += count(group)) target[at] = 0;
}

}  // namespace penstock::ondevice
