// Tries every order of the steps of a few logical threads; model_rig.hpp makes a platform of it.
//
// Threads are fibres of one real thread, and each operation of the platform is a step. The explorer interleaves steps
// of different threads in every way that can matter, depth-first, and runs each schedule anew from the start. It leaves
// out schedules that differ only in the order of independent steps (dynamic partial-order reduction with sleep sets:
// two steps depend on each other if they touch one word and one of them writes). A thread in `pause` goes on only after
// a change of a word that it touched since its last pause, counters aside. So polling loops end, and a schedule in
// which no thread can go on is a failure.
//
// It covers all sequentially consistent orders of the atomic steps, and the order of plain data: releases and acquires
// alone must order each access that Watch is told of with the conflicting ones (vector clocks). So a publication that
// lacks its release fails in every schedule, and not by luck. It does not cover scopes, nor that different threads see
// two atomic words in different orders (store buffering). A program too long for every order is tried in every order in
// which the explorer leaves a thread that could go on at most so many times: faults seldom need more than two such
// switches.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <memory>

#include "ondevice/model/ordering_rig.hpp"
#include "ondevice/model/program_rig.hpp"
#include "ondevice/model/stack_rig.hpp"

namespace penstock::ondevice::model {

struct Stop {};  // unwinds a fibre whose schedule is over

class Explorer {
  public:
    static constexpr unsigned any_number = ~0u;
    Report run(const std::function<Program()>& make, u64 most_schedules, unsigned switches = any_number);

    // What fibres call.
    void step(const void* word, bool writes, const char* what);
    void pause();
    void fail(const std::string& cause);
    void seen(const void* word, u64 value, unsigned bytes);
    void made(const void* word, u64 value, unsigned bytes);  // the thread itself wrote the value
    void counted(const void* word);                          // the thread added to a count: no thread waits for that
    void acquire(const void* word) { ordering_.acquire(running_, word); }
    void release(const void* word, bool keeps) { ordering_.release(running_, word, keeps); }
    void release_reads(const void* word) { ordering_.release_reads(running_, word); }
    void in_one_piece(const void* memory, u64 bytes) { ordering_.in_one_piece(running_, memory, bytes); }
    void forget(const void* word) { ordering_.forget(word); }
    void plain(const void* memory, u64 bytes, bool writes);

    unsigned running() const { return running_; }

    static inline Explorer* current = nullptr;

  private:
    struct Watched {
        const void* word;
        u64 first, value;
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
        bool changed = false;  // others changed a word that it touched since its last pause
        std::vector<Watched>::iterator read_of(const void* word) {
            return std::find_if(reads.begin(), reads.end(), [&](const Watched& read) { return read.word == word; });
        }
    };
    struct Node {
        unsigned chosen = 0;
        unsigned enabled = 0, backtrack = 0, done = 0, sleep = 0;  // a bit for each thread
        unsigned goes_on = 0;   // the bit of the thread that made the step before, if it can go on
        unsigned switches = 0;  // switches away from such threads before this step
    };

    static void enter(unsigned low, unsigned high);
    void start(const Program& program);
    void resume(unsigned thread);
    void run_once(const Program& program);
    unsigned enabled() const;
    bool choose(std::size_t depth, unsigned enabled, unsigned sleep);
    Node node_of_few(std::size_t depth, unsigned enabled) const;
    unsigned sleep_after(const Node& node) const;
    void note_races();
    bool next_schedule();
    std::string trace() const;

    std::vector<std::unique_ptr<Fibre>> fibres_;
    ucontext_t main_{};
    Place main_place_;
    unsigned running_ = 0;
    unsigned switches_ = any_number;
    bool over_ = false;
    std::vector<Node> nodes_;
    std::vector<Step> steps_;
    std::vector<std::bitset<most_steps>> before_;  // by step: the steps that come before it in every order
    Ordering ordering_;
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
    ordering_.start();
    steps_.clear();
    before_.clear();
    over_ = false;
    for (unsigned thread = 0; thread < fibres_.size(); ++thread) {
        Fibre& fibre = *fibres_[thread];
        fibre.body = program.threads[thread];
        fibre.ended = false;
        fibre.reads.clear();
        fibre.gate.clear();
        fibre.changed = false;
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
    const bool changed = std::any_of(fibre.reads.begin(), fibre.reads.end(), [](const Watched& watched) {
        return watched.value != watched.first;
    });
    if (!changed && !fibre.changed) fibre.gate = std::move(fibre.reads);
    fibre.reads.clear();
    fibre.changed = false;
}

inline void Explorer::fail(const std::string& cause) {
    if (report_.failure.empty()) report_.failure = cause + "\n" + trace();
    over_ = true;
    throw Stop{};
}

inline void Explorer::seen(const void* word, u64 value, unsigned bytes) {
    Fibre& fibre = *fibres_[running_];
    const auto known = fibre.read_of(word);
    if (known == fibre.reads.end()) return fibre.reads.push_back({word, value, value, bytes});
    fibre.changed = fibre.changed || known->value != value;
    known->value = value;
}

inline void Explorer::made(const void* word, u64 value, unsigned bytes) {
    Fibre& fibre = *fibres_[running_];
    const auto known = fibre.read_of(word);
    if (known == fibre.reads.end()) fibre.reads.push_back({word, value, value, bytes});
    else known->value = value;
}

inline void Explorer::counted(const void* word) {
    Fibre& fibre = *fibres_[running_];
    const auto known = fibre.read_of(word);
    if (known != fibre.reads.end()) fibre.reads.erase(known);
}

inline void Explorer::plain(const void* memory, u64 bytes, bool writes) {
    const std::optional<unsigned> other = ordering_.plain(running_, memory, bytes, writes);
    if (!other) return;
    fail("plain memory is touched by threads " + std::to_string(*other) + " and " + std::to_string(running_) +
         " without order");
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

// Chooses the next thread. False: every thread that could go on is asleep, so another schedule is equal to this one.
inline bool Explorer::choose(std::size_t depth, unsigned enabled, unsigned sleep) {
    if (depth < nodes_.size()) {
        nodes_[depth].sleep = sleep;
        return true;
    }
    if (switches_ != any_number) {
        nodes_.push_back(node_of_few(depth, enabled));
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

// The choices if switches are limited: the thread of the step before goes on, or any other while there are switches
// left. If that thread cannot go on, any other does, and no switch is counted.
inline Explorer::Node Explorer::node_of_few(std::size_t depth, unsigned enabled) const {
    Node node;
    if (depth != 0) {
        const Node& last = nodes_[depth - 1];
        node.goes_on = enabled & 1u << last.chosen;
        node.switches = last.switches + (last.goes_on != 0 && last.goes_on != 1u << last.chosen ? 1 : 0);
    }
    node.enabled = enabled;
    node.chosen = lowest(node.goes_on != 0 ? node.goes_on : enabled);
    node.done = 1u << node.chosen;
    node.backtrack = node.goes_on == 0 || node.switches < switches_ ? enabled : node.done;
    return node;
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
        if (able == 0 && report_.failure.empty()) report_.failure = "no thread can go on\n" + trace();
        if (depth == most_steps && report_.failure.empty()) report_.failure = "too many steps\n" + trace();
        if (able == 0 || depth == most_steps || !choose(depth, able, sleep)) {
            over_ = true;
            break;
        }
        const Node& node = nodes_[depth];
        steps_.push_back(fibres_[node.chosen]->pending);
        if (switches_ == any_number) {
            sleep = sleep_after(node);
            note_races();
        }
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

// Finds the last step that the newest step might have come before, and adds the newest step's thread to its choices.
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

inline Report Explorer::run(const std::function<Program()>& make, u64 most_schedules, unsigned switches) {
    report_ = {};
    switches_ = switches;
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
