// What the explorer of all orders (explorer_rig.hpp) takes and returns: programs of a few logical threads, their steps,
// and a report of the schedules that it tried.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
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
    std::function<void()> after;  // runs when all threads have ended
};

struct Report {
    u64 schedules = 0;
    u64 steps = 0;
    std::size_t longest = 0;
    bool complete = false;  // no schedule is left
    std::string failure;    // the first schedule that failed, with its trace; empty: none did
};

}  // namespace penstock::ondevice::model
