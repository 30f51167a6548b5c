// The interface of a platform, and Native, the platform of a GPU and of the host. native_gpu.hpp and native_host.hpp
// say what its functions do. platform.hpp includes the one that the compiler needs.
//
// Order comes from acquiring loads, releasing stores and acquire-release exchanges alone. There are no fences, so that
// the thread sanitizer can judge it. Scope `device` is for words that one GPU alone touches. Words that the host
// touches too have scope `system`.
#pragma once

#include "penstock/host_device.hpp"

namespace penstock::ondevice {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
static_assert(sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void*) == 8, "LP64 only");

enum class Scope : u8 { device, system };

// A set of lanes of a warp, a bit each. Mostly those that go on together.
using Lanes = u32;
inline constexpr Lanes kWholeWarp = ~0u;

// What an access orders. acquire: a thread that sees a releasing store sees what was written before that store.
// release: a thread that acquires this store sees what the caller did before it. relaxed: nothing. A relaxed access is
// for a word that the caller alone changes at the time, or whose value an ordering access looks at again.
enum class Order : u8 { relaxed, acquire, release, both };

// The interface of a platform; all of it is static. T is u32 or u64, naturally aligned.
struct Native {
    template <Scope S, Order O = Order::acquire, class T>
    static PENSTOCK_ONDEVICE T load(const T* word);
    template <Scope S, Order O = Order::release, class T>
    static PENSTOCK_ONDEVICE void store(T* word, T value);
    // add, set_bits and clear_bits return the word as it was before.
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE T add(T* word, T value);
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE T set_bits(T* word, T bits);
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE T clear_bits(T* word, T bits);
    // Stores `desired` if the word is `expected`, and returns whether it was. If not, `expected` becomes the word's
    // value.
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE bool swap_if(T* word, T& expected, T desired);
    // Stores two words, aligned to 16 bytes, so that a thread that sees the second sees the first. System scope. With
    // relaxed, it orders nothing else but the loads that have already returned to the caller.
    template <Order O>
    static PENSTOCK_ONDEVICE void store_pair(u64* pair, u64 first, u64 second);
    // Loads what store_pair stored: the first word is of the same store as the second, or of a later one. System scope.
    // With acquire, the second is loaded as `load` does.
    template <Order O>
    static PENSTOCK_ONDEVICE void load_pair(const u64* pair, u64& first, u64& second);
    // Adds to a count and orders nothing: the count is read when all callers are done. Requires: one GPU (or process)
    // alone touches the word.
    template <class T>
    static PENSTOCK_ONDEVICE void tick(T* word, T value);

    static PENSTOCK_ONDEVICE u64 now_ns();             // by a clock that all threads of the platform share
    static PENSTOCK_ONDEVICE u64 cycles();             // for differences within one thread only
    static PENSTOCK_ONDEVICE void pause(u32 about_ns);  // lets other threads go on; may return at once

    // The calling threads of one warp. On the host each thread is a warp of one lane.
    static PENSTOCK_ONDEVICE u32 lane();
    static PENSTOCK_ONDEVICE u32 caller();     // a number that differs for most warps, so that they spread
    static PENSTOCK_ONDEVICE u32 processor();  // the multiprocessor that the caller runs on; 0 on the host
    static PENSTOCK_ONDEVICE Lanes active();
    static PENSTOCK_ONDEVICE void sync(Lanes lanes);
    static PENSTOCK_ONDEVICE Lanes same(Lanes lanes, u64 value);  // the lanes with the caller's value
    static PENSTOCK_ONDEVICE Lanes ballot(Lanes lanes, bool condition);
    template <class T>
    static PENSTOCK_ONDEVICE T from(Lanes lanes, T value, u32 source);  // the value of lane `source`
};

}  // namespace penstock::ondevice
