// Tries every order of the steps of a few logical threads; model_rig.hpp makes a platform of it.
//
// Threads are fibres of one real thread; each operation of the platform is a step, and steps of different threads are
// interleaved in every way that can matter: depth-first, each schedule run anew from the start, leaving out those that
// differ only in the order of independent steps (dynamic partial-order reduction with sleep sets: steps depend on each
// other when they touch one word and one writes). `pause` means: nothing more until a word read since the last pause
// has another value; so polling loops end, and a schedule in which nobody can go on is a failure.
// What it covers: all sequentially consistent orders of the atomic steps, and the order of plain data: each access told
// to Watch must be ordered, by releases and acquires alone, with the conflicting ones (vector clocks). So a publication
// that lacks its release fails in every schedule, not by luck. What it does not: two atomic words seen in different
// orders by different threads (store buffering), and scopes.
#pragma once

#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice::model {

constexpr unsigned most_threads = 4;
constexpr std::size_t most_steps = 512;
using Clock = std::array<u32, most_threads>;

struct Step {
    unsigned thread;
    const void* word;
    bool writes;
    const char* what;
    std::vector<const void*> gate;  // words whose change let the thread go on
    bool touches(const void* other) const {
        return word == other || std::find(gate.begin(), gate.end(), other) != gate.end();
    }
    bool depends(const Step& other) const {
        return (writes && other.touches(word)) || (other.writes && touches(other.word));
    }
};

struct Program {
    std::vector<std::function<void()>> threads;
    std::function<void()> after;  // when all have ended
};

struct Report {
    u64 schedules = 0;
    u64 steps = 0;
    std::size_t longest = 0;
    bool complete = false;  // no schedule is left
    std::string failure;    // of the first schedule that failed, with its trace; empty: none did
};

struct Stop {};  // unwinds a fibre whose schedule is over

class Explorer {
  public:
    Report run(const std::function<Program()>& make, u64 most_schedules);

    // Of the fibres.
    void step(const void* word, bool writes, const char* what);
    void pause();
    void fail(const std::string& cause);
    void seen(const void* word, u64 value, unsigned bytes);
    void acquire(const void* word);
    void release(const void* word, bool keeps);  // keeps: joins what was released there before
    void forget(const void* word) { released_.erase(word); }
    void plain(const void* memory, u64 bytes, bool writes);

    static inline Explorer* current = nullptr;

  private:
    struct Watched {
        const void* word;
        u64 value;
        unsigned bytes;
    };
    struct Fibre {
        ucontext_t context{};
        std::vector<char> stack;
        void* kept = nullptr;
        std::function<void()> body;
        bool ended = false;
        Step pending{};
        std::vector<Watched> reads, gate;
        Clock clock{};
    };
    struct Node {
        unsigned chosen = 0;
        unsigned enabled = 0, backtrack = 0, done = 0, sleep = 0;  // a bit for each thread
    };
    struct Access {
        Clock written{};
        Clock read{};
    };

    // The address sanitizer is told of each change of stack.
    struct Place {
        const void* bottom = nullptr;
        std::size_t bytes = 0;
    };
    static void leaving([[maybe_unused]] void** kept, [[maybe_unused]] const Place& to) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(kept, to.bottom, to.bytes);
#endif
    }
    static void arrived([[maybe_unused]] void* kept, [[maybe_unused]] Place* from) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(kept, from == nullptr ? nullptr : &from->bottom,
                                        from == nullptr ? nullptr : &from->bytes);
#endif
    }

    static void enter(unsigned low, unsigned high);
    void start(const Program& program);
    void resume(unsigned thread);
    void run_once(const Program& program);
    unsigned enabled() const;
    bool choose(std::size_t depth, unsigned enabled, unsigned sleep);
    unsigned sleep_after(const Node& node) const;
    void note_races();
    bool next_schedule();
    std::string trace() const;

    std::vector<std::unique_ptr<Fibre>> fibres_;
    ucontext_t main_{};
    Place main_place_;
    unsigned running_ = 0;
    bool over_ = false;
    std::vector<Node> nodes_;
    std::vector<Step> steps_;
    std::vector<std::bitset<most_steps>> before_;  // of each step, those that come before it in every order
    std::map<const void*, Clock> released_;
    std::map<u64, Access> accesses_;
    Report report_;
};

inline u64 value_at(const void* word, unsigned bytes) {
    return bytes == 4 ? *static_cast<const u32*>(word) : *static_cast<const u64*>(word);
}

inline void Explorer::enter(unsigned low, unsigned high) {
    auto* const fibre = reinterpret_cast<Fibre*>(u64{high} << 32 | low);
    arrived(nullptr, &current->main_place_);
    try {
        fibre->body();
    } catch (const Stop&) {
    }
    fibre->ended = true;
    leaving(nullptr, current->main_place_);
    swapcontext(&fibre->context, &current->main_);
}

inline void Explorer::start(const Program& program) {
    if (fibres_.size() != program.threads.size()) fibres_.clear();
    while (fibres_.size() < program.threads.size()) {
        fibres_.push_back(std::make_unique<Fibre>());
        fibres_.back()->stack.resize(64 * 1024);
    }
    released_.clear();
    accesses_.clear();
    steps_.clear();
    before_.clear();
    over_ = false;
    for (unsigned thread = 0; thread < fibres_.size(); ++thread) {
        Fibre& fibre = *fibres_[thread];
        fibre.body = program.threads[thread];
        fibre.ended = false;
        fibre.reads.clear();
        fibre.gate.clear();
        fibre.clock.fill(0);
        fibre.clock[thread] = 1;
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.data();
        fibre.context.uc_stack.ss_size = fibre.stack.size();
        fibre.context.uc_link = nullptr;
        const u64 self = reinterpret_cast<u64>(&fibre);
        auto* const enters = reinterpret_cast<void (*)()>(reinterpret_cast<void*>(&Explorer::enter));
        makecontext(&fibre.context, enters, 2, static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
        resume(thread);  // to its first step
    }
}

inline void Explorer::resume(unsigned thread) {
    running_ = thread;
    void* kept = nullptr;
    leaving(&kept, {fibres_[thread]->stack.data(), fibres_[thread]->stack.size()});
    swapcontext(&main_, &fibres_[thread]->context);
    arrived(kept, nullptr);
}

inline void Explorer::step(const void* word, bool writes, const char* what) {
    Fibre& fibre = *fibres_[running_];
    fibre.pending = {running_, word, writes, what, {}};
    for (const Watched& watched : fibre.gate) fibre.pending.gate.push_back(watched.word);
    leaving(&fibre.kept, main_place_);
    swapcontext(&fibre.context, &main_);
    arrived(fibre.kept, nullptr);
    if (over_) throw Stop{};
    fibre.gate.clear();
}

inline void Explorer::pause() {
    Fibre& fibre = *fibres_[running_];
    fibre.gate = std::move(fibre.reads);
    fibre.reads.clear();
}

inline void Explorer::fail(const std::string& cause) {
    if (report_.failure.empty()) report_.failure = cause + "\n" + trace();
    over_ = true;
    throw Stop{};
}

inline void Explorer::seen(const void* word, u64 value, unsigned bytes) {
    auto& reads = fibres_[running_]->reads;
    const auto known = std::find_if(reads.begin(), reads.end(), [&](const Watched& read) { return read.word == word; });
    if (known != reads.end()) known->value = value;
    else reads.push_back({word, value, bytes});
}

inline void Explorer::acquire(const void* word) {
    const auto clock = released_.find(word);
    if (clock == released_.end()) return;
    Clock& own = fibres_[running_]->clock;
    for (unsigned thread = 0; thread < most_threads; ++thread) {
        own[thread] = std::max(own[thread], clock->second[thread]);
    }
}

inline void Explorer::release(const void* word, bool keeps) {
    Clock& own = fibres_[running_]->clock;
    Clock& clock = released_[word];
    for (unsigned thread = 0; thread < most_threads; ++thread) {
        clock[thread] = keeps ? std::max(clock[thread], own[thread]) : own[thread];
    }
    own[running_] += 1;
}

inline void Explorer::plain(const void* memory, u64 bytes, bool writes) {
    const Clock& own = fibres_[running_]->clock;
    const u64 first = reinterpret_cast<u64>(memory) / 4;
    for (u64 at = first; at < first + (bytes + 3) / 4; ++at) {
        Access& access = accesses_[at];
        for (unsigned thread = 0; thread < most_threads; ++thread) {
            if (thread == running_) continue;
            const bool unordered = access.written[thread] > own[thread];
            if (unordered || (writes && access.read[thread] > own[thread])) {
                fail("plain memory is touched by threads " + std::to_string(thread) + " and " +
                     std::to_string(running_) + " without order");
            }
        }
        (writes ? access.written : access.read)[running_] = own[running_];
    }
}

inline unsigned Explorer::enabled() const {
    unsigned bits = 0;
    for (unsigned thread = 0; thread < fibres_.size(); ++thread) {
        const Fibre& fibre = *fibres_[thread];
        if (fibre.ended) continue;
        const bool changed = std::any_of(fibre.gate.begin(), fibre.gate.end(), [](const Watched& watched) {
            return value_at(watched.word, watched.bytes) != watched.value;
        });
        if (fibre.gate.empty() || changed) bits |= 1u << thread;
    }
    return bits;
}

// False: every thread that could go on is asleep, so this schedule is another's equal.
inline bool Explorer::choose(std::size_t depth, unsigned enabled, unsigned sleep) {
    if (depth < nodes_.size()) {
        nodes_[depth].sleep = sleep;
        return true;
    }
    const unsigned awake = enabled & ~sleep;
    if (awake == 0) return false;
    Node node;
    node.chosen = lowest(awake);
    node.enabled = enabled;
    node.sleep = sleep;
    node.backtrack = 1u << node.chosen;
    node.done = node.backtrack;
    nodes_.push_back(node);
    return true;
}

inline unsigned Explorer::sleep_after(const Node& node) const {
    unsigned sleep = (node.sleep | node.done) & ~(1u << node.chosen);
    for (unsigned thread = 0; thread < fibres_.size(); ++thread) {
        if ((sleep >> thread & 1) == 0) continue;
        if (fibres_[thread]->pending.depends(fibres_[node.chosen]->pending)) sleep &= ~(1u << thread);
    }
    return sleep;
}

inline void Explorer::run_once(const Program& program) {
    start(program);
    unsigned sleep = 0;
    for (std::size_t depth = 0; !over_; ++depth) {
        const unsigned able = enabled();
        const bool ended = std::all_of(fibres_.begin(), fibres_.end(), [](const auto& fibre) { return fibre->ended; });
        if (ended) break;
        if (able == 0 && report_.failure.empty()) report_.failure = "nobody can go on\n" + trace();
        if (depth == most_steps && report_.failure.empty()) report_.failure = "too many steps\n" + trace();
        if (able == 0 || depth == most_steps || !choose(depth, able, sleep)) {
            over_ = true;
            break;
        }
        const Node& node = nodes_[depth];
        sleep = sleep_after(node);
        steps_.push_back(fibres_[node.chosen]->pending);
        note_races();
        resume(node.chosen);
    }
    const bool whole = !over_;
    for (unsigned thread = 0; thread < fibres_.size(); ++thread) {
        if (!fibres_[thread]->ended) resume(thread);  // unwinds
    }
    if (!whole) return;
    over_ = false;
    running_ = 0;
    try {
        if (program.after) program.after();
    } catch (const Stop&) {
    }
}

// The last step that the newest one might have come before gets the newest one's thread as another choice.
inline void Explorer::note_races() {
    const std::size_t now = steps_.size() - 1;
    const Step& step = steps_[now];
    std::bitset<most_steps> before;
    for (std::size_t at = now; at-- > 0;) {
        if (steps_[at].thread != step.thread) continue;
        before = before_[at];
        before.set(at);
        break;
    }
    bool noted = false;
    std::bitset<most_steps> all = before;
    for (std::size_t at = now; at-- > 0;) {
        if (steps_[at].thread == step.thread || !steps_[at].depends(step)) continue;
        if (!noted && !before.test(at)) {
            Node& node = nodes_[at];
            node.backtrack |= (node.enabled >> step.thread & 1) != 0 ? 1u << step.thread : node.enabled;
            noted = true;
        }
        all |= before_[at];
        all.set(at);
    }
    before_.push_back(all);
}

inline bool Explorer::next_schedule() {
    while (!nodes_.empty()) {
        Node& node = nodes_.back();
        const unsigned left = node.backtrack & ~node.done & ~node.sleep;
        if (left != 0) {
            node.chosen = lowest(left);
            node.done |= 1u << node.chosen;
            return true;
        }
        nodes_.pop_back();
    }
    return false;
}

inline std::string Explorer::trace() const {
    std::map<const void*, std::size_t> names;
    std::string text;
    for (const Step& step : steps_) {
        const std::size_t name = names.emplace(step.word, names.size()).first->second;
        text += "  thread " + std::to_string(step.thread) + " " + step.what + " word " + std::to_string(name) + "\n";
    }
    return text;
}

inline Report Explorer::run(const std::function<Program()>& make, u64 most_schedules) {
    report_ = {};
    nodes_.clear();
    current = this;
    do {
        run_once(make());
        report_.schedules += 1;
        report_.steps += steps_.size();
        report_.longest = std::max(report_.longest, steps_.size());
        if (!report_.failure.empty()) return report_;
        if (report_.schedules == most_schedules) return report_;
    } while (next_schedule());
    report_.complete = true;
    return report_;
}

inline void check(bool holds, const char* cause) {
    if (!holds) Explorer::current->fail(cause);
}

}  // namespace penstock::ondevice::model
