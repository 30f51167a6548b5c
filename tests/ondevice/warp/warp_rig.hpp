// A platform of several warps of several lanes on the host. It tries, seed by seed, what a GPU may do with the lanes of
// a warp, where a test can look at it.
//
// Every lane is a fibre. At each access to shared memory the machine may let other lanes go on, which it chooses at
// random. A collective ends when all lanes of its mask are in it. They must be at one place of the program, unless it
// is `sync`, since on a GPU lanes that exchange values at two places go astray. `sync` alone orders memory between
// lanes. A place is known by the frame pointers; so tests on this platform are compiled with frame pointers and without
// optimisation, which would give one place several addresses. `active` gives the lanes that wait at the same place: all
// that come there, or, in a loose machine, any part of them, because a GPU promises no more. Time is counted in steps,
// so a test of deadlines takes no longer than its steps. If no lane can go on any more, or a mask names a lane that
// does not take part, the program ends and says where each lane was.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "ondevice/warp/fibre_rig.hpp"

namespace penstock::ondevice {

class Warps {
  public:
    struct Options {
        u32 warps = 8;
        u32 lanes = 4;
        u64 seed = 1;
        bool loose = false;
    };
    explicit Warps(const Options& options) : options_(options), draws_(options.seed * 0x9e3779b97f4a7c15ull + 1) {}

    // Runs `body(warp, lane)` on all lanes, until all have ended.
    void run(const std::function<void(u32 warp, u32 lane)>& body) {
        current_ = this;
        for (u32 i = 0; i < options_.warps * options_.lanes; ++i) {
            lanes_.push_back(std::make_unique<Lane>(i / options_.lanes, i % options_.lanes, body));
        }
        left_ = options_.warps * options_.lanes;
        while (left_ != 0) {
            Lane* lane = nullptr;
            const u32 first = draw(options_.warps);
            for (u32 turn = 0; turn < options_.warps && lane == nullptr; ++turn) {
                const u32 warp = (first + turn) % options_.warps;
                release_some(warp);
                lane = ready(warp);
            }
            if (lane != nullptr) go_on(*lane);
            else pass_time();
        }
        lanes_.clear();
        current_ = nullptr;
    }

    u64 steps() const { return clock_ / kStepNs; }

    // What the platform calls for the lane that runs.
    void step() {
        const Unseen unseen;
        clock_ += kStepNs;
        if (draw(2) == 0) running_->fibre.rest();
    }
    void pause(u32 about_ns) {
        const Unseen unseen;
        clock_ += kStepNs;
        running_->wakes = clock_ + about_ns;
        running_->doing = Doing::pauses;
        ++pauses_[running_->warp];
        running_->fibre.rest();
    }
    u64 now() const {
        const Unseen unseen;
        return clock_;
    }
    u32 lane() const {
        const Unseen unseen;
        return running_->lane;
    }
    u32 warp() const {
        const Unseen unseen;
        return running_->warp;
    }
    Lanes active() {
        const Unseen unseen;
        running_->doing = Doing::asks;
        running_->site = running_->fibre.place();
        running_->fibre.rest();
        return running_->mask;
    }
    void sync(Lanes mask) {
        u32* const here = &pauses_[warp()];
        hands_on(here);
        meet(Kind::sync, mask, 0, 0);
        takes_over(here);
    }
    Lanes same(Lanes mask, u64 value) { return static_cast<Lanes>(meet(Kind::same, mask, value, 0)); }
    Lanes ballot(Lanes mask, bool condition) { return static_cast<Lanes>(meet(Kind::ballot, mask, condition, 0)); }
    u64 from(Lanes mask, u64 value, u32 source) { return meet(Kind::from, mask, value, source); }

    static Warps& current() {
        const Unseen unseen;
        return *current_;
    }

  private:
    enum class Doing { goes, pauses, asks, meets, over };
    enum class Kind { sync, same, ballot, from };
    struct Lane {
        Lane(u32 of, u32 number, const std::function<void(u32, u32)>& body)
            : warp(of), lane(number), fibre([of, number, body] { body(of, number); }) {}
        u32 warp, lane;
        Fibre fibre;
        Doing doing = Doing::goes;
        Kind kind = Kind::sync;
        Lanes mask = 0;  // the collective's, or the one that `active` gives
        u64 wakes = 0, site = 0, value = 0;
        u32 source = 0;
    };
    static constexpr u64 kStepNs = 100;
    static constexpr u32 kPatience = 8;  // pauses of a warp's lanes before its other lanes that can go on do

    u32 draw(u32 below) {
        draws_ += 0x9e3779b97f4a7c15ull;
        u64 mixed = draws_;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
        return static_cast<u32>((mixed >> 33) % below);
    }
    Lane& at(u32 warp, u32 lane) { return *lanes_[warp * options_.lanes + lane]; }

    void go_on(Lane& lane) {
        running_ = &lane;
        lane.doing = Doing::goes;
        lane.fibre.resume();
        if (!lane.fibre.over()) return;
        lane.doing = Doing::over;
        --left_;
    }

    // Picks one of the warp's lanes that can go on, from a random lane on.
    Lane* ready(u32 warp) {
        const u32 first = draw(options_.lanes);
        for (u32 turn = 0; turn < options_.lanes; ++turn) {
            Lane& lane = at(warp, (first + turn) % options_.lanes);
            if (lane.doing == Doing::goes || (lane.doing == Doing::pauses && lane.wakes <= clock_)) return &lane;
        }
        return nullptr;
    }

    // Called when no lane can go on: lanes that sleep wake up; if none sleeps, none will ever go on.
    void pass_time() {
        u64 first = ~0ull;
        for (const auto& lane : lanes_)
            if (lane->doing == Doing::pauses && lane->wakes < first) first = lane->wakes;
        if (first == ~0ull) end("nothing can go on");
        if (first > clock_) clock_ = first;
    }

    // Lets lanes in `active` go on. They wait there until the other lanes of the warp have come as far as they can.
    void release_some(u32 warp) {
        Lanes asking = 0;
        bool others = false;
        for (u32 lane = 0; lane < options_.lanes; ++lane) {
            const Doing doing = at(warp, lane).doing;
            if (doing == Doing::asks) asking |= 1u << lane;
            others |= doing == Doing::goes || doing == Doing::pauses;
        }
        const bool waits = others && pauses_[warp] < kPatience;
        if (asking == 0 || (waits && !(options_.loose && draw(8) == 0))) return;
        u32 chosen = draw(options_.lanes);
        while ((asking >> chosen & 1) == 0) chosen = (chosen + 1) % options_.lanes;
        Lanes together = 0;
        for (u32 lane = 0; lane < options_.lanes; ++lane)
            if ((asking >> lane & 1) != 0 && at(warp, lane).site == at(warp, chosen).site &&
                (lane == chosen || !options_.loose || draw(2) == 0))
                together |= 1u << lane;
        for (u32 lane = 0; lane < options_.lanes; ++lane) {
            if ((together >> lane & 1) == 0) continue;
            at(warp, lane).mask = together;
            at(warp, lane).doing = Doing::goes;
        }
        pauses_[warp] = 0;
    }

    u64 meet(Kind kind, Lanes mask, u64 value, u32 source) {
        const Unseen unseen;
        Lane& self = *running_;
        self.kind = kind;
        self.mask = mask;
        self.value = value;
        self.source = source;
        self.site = kind == Kind::sync ? 0 : self.fibre.place();
        self.doing = Doing::meets;
        if ((mask >> self.lane & 1) == 0) end("a lane calls for others only");
        if (mask >> options_.lanes != 0) end("a mask names lanes that there are not");
        if (kind == Kind::from && (mask >> source & 1) == 0) end("a value of a lane that does not take part");
        bool all_there = true;
        for (u32 lane = 0; lane < options_.lanes; ++lane) {
            if ((mask >> lane & 1) == 0) continue;
            const Lane& other = at(self.warp, lane);
            if (other.doing == Doing::over) end("a mask names a lane that has gone");
            const bool there = other.doing == Doing::meets && other.kind == kind && other.mask == mask;
            if (there && other.site != self.site) end("lanes of one collective are at different places");
            all_there &= there;
        }
        if (all_there) complete(self.warp, mask);
        self.fibre.rest();
        return self.value;
    }

    void complete(u32 warp, Lanes mask) {
        u64 before[32] = {};
        for (u32 lane = 0; lane < options_.lanes; ++lane) before[lane] = at(warp, lane).value;
        for (u32 lane = 0; lane < options_.lanes; ++lane) {
            if ((mask >> lane & 1) == 0) continue;
            Lane& self = at(warp, lane);
            self.doing = Doing::goes;
            self.value = self.kind == Kind::from ? before[self.source] : 0;
            for (u32 other = 0; other < options_.lanes; ++other) {
                const bool counts = self.kind == Kind::ballot  ? before[other] != 0
                                    : self.kind == Kind::same && before[other] == before[lane];
                if ((mask >> other & 1) != 0 && counts) self.value |= 1u << other;
            }
        }
    }

    [[noreturn]] void end(const char* why) {
        std::fprintf(stderr, "%s, seed %llu, step %llu, lane %u of warp %u\n", why, options_.seed, steps(),
                     running_->lane, running_->warp);
        for (const auto& lane : lanes_)
            std::fprintf(stderr, "  warp %u lane %u: doing %d, collective %d, mask %x, site %llx\n", lane->warp,
                         lane->lane, static_cast<int>(lane->doing), static_cast<int>(lane->kind), lane->mask,
                         lane->site);
        std::abort();
    }

    Options options_;
    u64 draws_;
    u64 clock_ = 1;
    u32 left_ = 0;
    u32 pauses_[64] = {};  // by warp: pauses of its lanes since some of them went on together
    std::vector<std::unique_ptr<Lane>> lanes_;
    Lane* running_ = nullptr;
    static inline Warps* current_ = nullptr;
};

// The platform: the host's memory, and the lanes of the machine that runs.
struct Warped : Native {
    template <Scope S, Order O = Order::acquire, class T>
    static T load(const T* word) {
        at().step();
        return Native::load<S, O>(word);
    }
    template <Scope S, Order O = Order::release, class T>
    static void store(T* word, T value) {
        at().step();
        Native::store<S, O>(word, value);
    }
    template <Scope S, Order O = Order::both, class T>
    static T add(T* word, T value) {
        at().step();
        return Native::add<S, O>(word, value);
    }
    template <Scope S, Order O = Order::both, class T>
    static T set_bits(T* word, T bits) {
        at().step();
        return Native::set_bits<S, O>(word, bits);
    }
    template <Scope S, Order O = Order::both, class T>
    static T clear_bits(T* word, T bits) {
        at().step();
        return Native::clear_bits<S, O>(word, bits);
    }
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        at().step();
        return Native::swap_if<S, O>(word, expected, desired);
    }

    template <Order O>
    static void load_pair(const u64* pair, u64& first, u64& second) {
        at().step();
        Native::load_pair<O>(pair, first, second);
    }

    static u64 now_ns() { return at().now(); }
    static u64 cycles() { return at().now(); }
    static void pause(u32 about_ns) { at().pause(about_ns); }
    static u32 lane() { return at().lane(); }
    static u32 caller() { return at().warp(); }
    static Lanes active() { return at().active(); }
    static void sync(Lanes lanes) { at().sync(lanes); }
    static Lanes same(Lanes lanes, u64 value) { return at().same(lanes, value); }
    static Lanes ballot(Lanes lanes, bool condition) { return at().ballot(lanes, condition); }
    template <class T>
    static T from(Lanes lanes, T value, u32 source) {
        return static_cast<T>(at().from(lanes, static_cast<u64>(value), source));
    }

  private:
    static Warps& at() { return Warps::current(); }
};

}  // namespace penstock::ondevice
