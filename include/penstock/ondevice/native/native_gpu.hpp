// Native on a GPU of compute capability 7.0 or newer. It uses PTX's own acquire and release, so that it needs no
// library header and NVRTC compiles it as it is.
#pragma once

#include "penstock/ondevice/native/native.hpp"

namespace penstock::ondevice {
namespace ptx {

// One function for each kind of access, order, scope and width: an order or scope of PTX is part of the instruction.
#define PENSTOCK_PTX_LOAD(name, modifiers, type, suffix, letter)                                            \
    PENSTOCK_ONDEVICE type name(const type* word) {                                                        \
        type value;                                                                                        \
        asm volatile("ld." modifiers ".u" suffix " %0, [%1];" : "=" letter(value) : "l"(word) : "memory"); \
        return value;                                                                                      \
    }
#define PENSTOCK_PTX_STORE(name, modifiers, type, suffix, letter)                                          \
    PENSTOCK_ONDEVICE void name(type* word, type value) {                                                  \
        asm volatile("st." modifiers ".u" suffix " [%0], %1;" ::"l"(word), letter(value) : "memory");      \
    }
#define PENSTOCK_PTX_EXCHANGE(name, modifiers, operation, type, letter)                                    \
    PENSTOCK_ONDEVICE type name(type* word, type operand) {                                                \
        type before;                                                                                       \
        asm volatile("atom." modifiers "." operation " %0, [%1], %2;"                                      \
                     : "=" letter(before)                                                                  \
                     : "l"(word), letter(operand)                                                          \
                     : "memory");                                                                          \
        return before;                                                                                     \
    }
#define PENSTOCK_PTX_SWAP(name, modifiers, operation, type, letter)                                        \
    PENSTOCK_ONDEVICE type name(type* word, type expected, type desired) {                                 \
        type before;                                                                                       \
        asm volatile("atom." modifiers "." operation " %0, [%1], %2, %3;"                                  \
                     : "=" letter(before)                                                                  \
                     : "l"(word), letter(expected), letter(desired)                                        \
                     : "memory");                                                                          \
        return before;                                                                                     \
    }
#define PENSTOCK_PTX_WIDTHS(scope, order)                                                                  \
    PENSTOCK_PTX_EXCHANGE(add_##order##_##scope, #order "." #scope, "add.u32", u32, "r")                   \
    PENSTOCK_PTX_EXCHANGE(add_##order##_##scope, #order "." #scope, "add.u64", u64, "l")                   \
    PENSTOCK_PTX_EXCHANGE(or_##order##_##scope, #order "." #scope, "or.b32", u32, "r")                     \
    PENSTOCK_PTX_EXCHANGE(or_##order##_##scope, #order "." #scope, "or.b64", u64, "l")                     \
    PENSTOCK_PTX_EXCHANGE(and_##order##_##scope, #order "." #scope, "and.b32", u32, "r")                   \
    PENSTOCK_PTX_EXCHANGE(and_##order##_##scope, #order "." #scope, "and.b64", u64, "l")                   \
    PENSTOCK_PTX_SWAP(swap_##order##_##scope, #order "." #scope, "cas.b32", u32, "r")                      \
    PENSTOCK_PTX_SWAP(swap_##order##_##scope, #order "." #scope, "cas.b64", u64, "l")
#define PENSTOCK_PTX_SCOPE(scope)                                                                          \
    PENSTOCK_PTX_LOAD(load_relaxed_##scope, "relaxed." #scope, u32, "32", "r")                             \
    PENSTOCK_PTX_LOAD(load_relaxed_##scope, "relaxed." #scope, u64, "64", "l")                             \
    PENSTOCK_PTX_LOAD(load_acquire_##scope, "acquire." #scope, u32, "32", "r")                             \
    PENSTOCK_PTX_LOAD(load_acquire_##scope, "acquire." #scope, u64, "64", "l")                             \
    PENSTOCK_PTX_STORE(store_relaxed_##scope, "relaxed." #scope, u32, "32", "r")                           \
    PENSTOCK_PTX_STORE(store_relaxed_##scope, "relaxed." #scope, u64, "64", "l")                           \
    PENSTOCK_PTX_STORE(store_release_##scope, "release." #scope, u32, "32", "r")                           \
    PENSTOCK_PTX_STORE(store_release_##scope, "release." #scope, u64, "64", "l")                           \
    PENSTOCK_PTX_WIDTHS(scope, relaxed)                                                                    \
    PENSTOCK_PTX_WIDTHS(scope, acquire)                                                                    \
    PENSTOCK_PTX_WIDTHS(scope, release)                                                                    \
    PENSTOCK_PTX_WIDTHS(scope, acq_rel)

PENSTOCK_PTX_SCOPE(gpu)
PENSTOCK_PTX_SCOPE(sys)

#undef PENSTOCK_PTX_SCOPE
#undef PENSTOCK_PTX_WIDTHS
#undef PENSTOCK_PTX_SWAP
#undef PENSTOCK_PTX_EXCHANGE
#undef PENSTOCK_PTX_STORE
#undef PENSTOCK_PTX_LOAD

PENSTOCK_ONDEVICE void tick_device(u32* word, u32 value) {
    const u64 global = __cvta_generic_to_global(word);
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(global), "r"(value) : "memory");
}
PENSTOCK_ONDEVICE void tick_device(u64* word, u64 value) {
    const u64 global = __cvta_generic_to_global(word);
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(global), "l"(value) : "memory");
}

}  // namespace ptx

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::load(const T* word) {
    static_assert(O == Order::relaxed || O == Order::acquire, "a load releases nothing");
    if constexpr (S == Scope::device) {
        if constexpr (O == Order::relaxed) return ptx::load_relaxed_gpu(word);
        else return ptx::load_acquire_gpu(word);
    } else {
        if constexpr (O == Order::relaxed) return ptx::load_relaxed_sys(word);
        else return ptx::load_acquire_sys(word);
    }
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE void Native::store(T* word, T value) {
    static_assert(O == Order::relaxed || O == Order::release, "a store acquires nothing");
    if constexpr (S == Scope::device) {
        if constexpr (O == Order::relaxed) return ptx::store_relaxed_gpu(word, value);
        else return ptx::store_release_gpu(word, value);
    } else {
        if constexpr (O == Order::relaxed) return ptx::store_relaxed_sys(word, value);
        else return ptx::store_release_sys(word, value);
    }
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::add(T* word, T value) {
    if constexpr (S == Scope::device) {
        if constexpr (O == Order::relaxed) return ptx::add_relaxed_gpu(word, value);
        else if constexpr (O == Order::acquire) return ptx::add_acquire_gpu(word, value);
        else if constexpr (O == Order::release) return ptx::add_release_gpu(word, value);
        else return ptx::add_acq_rel_gpu(word, value);
    } else {
        if constexpr (O == Order::relaxed) return ptx::add_relaxed_sys(word, value);
        else if constexpr (O == Order::acquire) return ptx::add_acquire_sys(word, value);
        else if constexpr (O == Order::release) return ptx::add_release_sys(word, value);
        else return ptx::add_acq_rel_sys(word, value);
    }
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::set_bits(T* word, T bits) {
    if constexpr (S == Scope::device) {
        if constexpr (O == Order::relaxed) return ptx::or_relaxed_gpu(word, bits);
        else if constexpr (O == Order::acquire) return ptx::or_acquire_gpu(word, bits);
        else if constexpr (O == Order::release) return ptx::or_release_gpu(word, bits);
        else return ptx::or_acq_rel_gpu(word, bits);
    } else {
        if constexpr (O == Order::relaxed) return ptx::or_relaxed_sys(word, bits);
        else if constexpr (O == Order::acquire) return ptx::or_acquire_sys(word, bits);
        else if constexpr (O == Order::release) return ptx::or_release_sys(word, bits);
        else return ptx::or_acq_rel_sys(word, bits);
    }
}

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T Native::clear_bits(T* word, T bits) {
    if constexpr (S == Scope::device) {
        if constexpr (O == Order::relaxed) return ptx::and_relaxed_gpu(word, static_cast<T>(~bits));
        else if constexpr (O == Order::acquire) return ptx::and_acquire_gpu(word, static_cast<T>(~bits));
        else if constexpr (O == Order::release) return ptx::and_release_gpu(word, static_cast<T>(~bits));
        else return ptx::and_acq_rel_gpu(word, static_cast<T>(~bits));
    } else {
        if constexpr (O == Order::relaxed) return ptx::and_relaxed_sys(word, static_cast<T>(~bits));
        else if constexpr (O == Order::acquire) return ptx::and_acquire_sys(word, static_cast<T>(~bits));
        else if constexpr (O == Order::release) return ptx::and_release_sys(word, static_cast<T>(~bits));
        else return ptx::and_acq_rel_sys(word, static_cast<T>(~bits));
    }
}

namespace ptx {
template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE T swapped(T* word, T expected, T desired) {
    if constexpr (S == Scope::device) {
        if constexpr (O == Order::relaxed) return swap_relaxed_gpu(word, expected, desired);
        else if constexpr (O == Order::acquire) return swap_acquire_gpu(word, expected, desired);
        else if constexpr (O == Order::release) return swap_release_gpu(word, expected, desired);
        else return swap_acq_rel_gpu(word, expected, desired);
    } else {
        if constexpr (O == Order::relaxed) return swap_relaxed_sys(word, expected, desired);
        else if constexpr (O == Order::acquire) return swap_acquire_sys(word, expected, desired);
        else if constexpr (O == Order::release) return swap_release_sys(word, expected, desired);
        else return swap_acq_rel_sys(word, expected, desired);
    }
}
}  // namespace ptx

template <Scope S, Order O, class T>
PENSTOCK_ONDEVICE bool Native::swap_if(T* word, T& expected, T desired) {
    const T before = ptx::swapped<S, O>(word, expected, desired);
    const bool swapped = before == expected;
    expected = before;
    return swapped;
}

// One store of 16 bytes. The fence before it is what st.release has too, which has no form of 16 bytes. A fence behind
// the first of two stores would wait until that one is in the host's memory.
template <Order O>
PENSTOCK_ONDEVICE void Native::store_pair(u64* pair, u64 first, u64 second) {
    if constexpr (O != Order::relaxed) asm volatile("fence.acq_rel.sys;" ::: "memory");
    asm volatile(
        "{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.sys.b128 [%0], both; }" ::"l"(pair), "l"(first),
        "l"(second)
        : "memory");
}

template <Order O>
PENSTOCK_ONDEVICE void Native::load_pair(const u64* pair, u64& first, u64& second) {
    if constexpr (O == Order::relaxed) {
        asm volatile("{ .reg .b128 both; ld.relaxed.sys.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
                     : "=l"(first), "=l"(second)
                     : "l"(pair)
                     : "memory");
    } else {
        asm volatile("{ .reg .b128 both; ld.acquire.sys.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
                     : "=l"(first), "=l"(second)
                     : "l"(pair)
                     : "memory");
    }
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

PENSTOCK_ONDEVICE u32 Native::caller() {
    const u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    return (block * (blockDim.x * blockDim.y * blockDim.z) + thread) / 32;
}

PENSTOCK_ONDEVICE u32 Native::processor() {
    u32 processor;
    asm("mov.u32 %0, %%smid;" : "=r"(processor));
    return processor;
}

// Adds the lane's own bit, which __activemask has too. Without that, the assembler takes the mask for that of all lanes
// which happen to go on together later, and looks at one lane's mask only (docs/design/ondevice.md).
PENSTOCK_ONDEVICE Lanes Native::active() { return __activemask() | 1u << lane(); }
PENSTOCK_ONDEVICE void Native::sync(Lanes lanes) { __syncwarp(lanes); }
PENSTOCK_ONDEVICE Lanes Native::same(Lanes lanes, u64 value) { return __match_any_sync(lanes, value); }
PENSTOCK_ONDEVICE Lanes Native::ballot(Lanes lanes, bool condition) { return __ballot_sync(lanes, condition); }

template <class T>
PENSTOCK_ONDEVICE T Native::from(Lanes lanes, T value, u32 source) {
    return __shfl_sync(lanes, value, static_cast<int>(source));
}

}  // namespace penstock::ondevice
