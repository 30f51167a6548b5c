// Model: a platform for the device headers. Each of its operations is a step of the explorer (explorer_rig.hpp says
// what that covers). Mutants of it lack one thing each, as controls that the explorer would find the lack.
#pragma once

#include "ondevice/model/explorer_rig.hpp"

namespace penstock::ondevice {

// What a mutant lacks.
enum class Broken { nothing, release_of_stores, release_of_exchanges, acquire_of_loads, one_step_of_exchanges };

template <Broken broken>
struct ModelOf {
    template <Scope S, Order O = Order::acquire, class T>
    static T load(const T* word) {
        at().step(word, false, "loads");
        at().seen(word, *word, sizeof(T));
        if (O == Order::acquire && broken != Broken::acquire_of_loads) at().acquire(word);
        return *word;
    }
    template <Scope S, Order O = Order::release, class T>
    static void store(T* word, T value) {
        at().step(word, true, "stores");
        if (O == Order::relaxed || broken == Broken::release_of_stores) at().forget(word);
        else at().release(word, false);
        *word = value;
        at().made(word, value, sizeof(T));
    }
    template <Scope S, Order O = Order::both, class T>
    static T add(T* word, T value) {
        const T before = exchange<O>(word, "adds to", [value](T there) { return static_cast<T>(there + value); });
        at().counted(word);
        return before;
    }
    template <Scope S, Order O = Order::both, class T>
    static T set_bits(T* word, T bits) {
        return exchange<O>(word, "sets bits of", [bits](T before) { return static_cast<T>(before | bits); });
    }
    template <Scope S, Order O = Order::both, class T>
    static T clear_bits(T* word, T bits) {
        return exchange<O>(word, "clears bits of", [bits](T before) { return static_cast<T>(before & ~bits); });
    }
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        const T wanted = expected;
        expected = exchange<O>(word, "swaps", [=](T before) { return before == wanted ? desired : before; });
        return expected == wanted;
    }

    template <Order O>
    static void store_pair(u64* pair, u64 first, u64 second) {
        at().step(pair + 1, true, "stores a pair at");
        *pair = first;
        at().in_one_piece(pair, sizeof(u64));
        if (broken == Broken::release_of_stores) at().forget(pair + 1);
        else if (O == Order::relaxed) at().release_reads(pair + 1);
        else at().release(pair + 1, false);
        pair[1] = second;
        at().made(pair + 1, second, sizeof(u64));
    }
    template <Order O>
    static void load_pair(const u64* pair, u64& first, u64& second) {
        at().step(pair + 1, false, "loads a pair at");
        first = pair[0];
        second = pair[1];
        at().seen(pair, first, sizeof(u64));
        at().seen(pair + 1, second, sizeof(u64));
        if (O == Order::acquire && broken != Broken::acquire_of_loads) at().acquire(pair + 1);
    }
    template <class T>
    static void tick(T* word, T value) {
        add<Scope::device>(word, value);
    }

    static u64 now_ns() { return 1; }  // a deadline of 0 or 1 is past, any other never is
    static u64 cycles() { return 1; }
    static void pause(u32) { at().pause(); }
    static u32 lane() { return 0; }
    static u32 caller() { return 0; }
    static u32 processor() { return 0; }
    static Lanes active() { return 1; }
    static void sync(Lanes) {}
    static Lanes same(Lanes, u64) { return 1; }
    static Lanes ballot(Lanes, bool condition) { return condition ? 1 : 0; }
    template <class T>
    static T from(Lanes, T value, u32) {
        return value;
    }

  private:
    static model::Explorer& at() { return *model::Explorer::current; }

    template <Order O, class T, class Change>
    static T exchange(T* word, const char* what, const Change& change) {
        at().step(word, true, what);
        const T before = *word;
        at().seen(word, before, sizeof(T));
        if (O == Order::acquire || O == Order::both) at().acquire(word);
        if (broken == Broken::one_step_of_exchanges) at().step(word, true, what);
        *word = change(before);
        const bool releases = (O == Order::release || O == Order::both) && broken != Broken::release_of_exchanges;
        if (*word != before && releases) at().release(word, true);
        at().made(word, *word, sizeof(T));
        return before;
    }
};

using Model = ModelOf<Broken::nothing>;

template <Broken broken>
struct Watch<ModelOf<broken>> {
    static void writes(const void* memory, u64 bytes) { model::Explorer::current->plain(memory, bytes, true); }
    static void reads(const void* memory, u64 bytes) { model::Explorer::current->plain(memory, bytes, false); }
};

}  // namespace penstock::ondevice
