// What tests of leaves by teams share: a crew of host threads that acts as a block, and a launcher that needs no GPU.
#pragma once

#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

#include "hmatrix/gpu/aca_team.hpp"

namespace penstock::hmatrix::test {

// Two workers of four lanes: what lanes exchange goes through an array and a barrier, so the code that shares out a
// leaf runs as on a GPU, only slower.
struct LeafCrew {
    static constexpr int kLanes = 4;
    static constexpr int kWorkers = 2;
    struct Shared {
        std::barrier<> all{kLanes * kWorkers};
        std::barrier<> of_worker[kWorkers]{std::barrier<>(kLanes), std::barrier<>(kLanes)};
        double values[kLanes * kWorkers] = {};
    };
    Shared* shared = nullptr;
    int number = 0;

    int rank() const { return number; }
    int size() const { return kLanes * kWorkers; }
    int lanes() const { return kLanes; }
    int worker() const { return number / kLanes; }
    int workers() const { return kWorkers; }
    void sync() const { shared->all.arrive_and_wait(); }
    template <class Value>
    Value exchange(Value value, int step) const {
        shared->values[number] = static_cast<double>(value);
        shared->of_worker[worker()].arrive_and_wait();
        const auto other = static_cast<Value>(shared->values[number ^ step]);
        shared->of_worker[worker()].arrive_and_wait();
        return other;
    }
};

struct LeafAlone : gpu::Alone {
    template <class Value>
    Value exchange(Value value, int) const {
        return value;
    }
};

template <class Functor>
void run_alone(const Functor& functor, const gpu::Group& group, int task) {
    gpu::Findings shared[2];
    gpu::AcaTeam<Functor, LeafAlone>({}, functor, group, shared).run(group.tasks[task], group.results[task]);
}

// Tasks [first, end), by one crew.
template <class Functor>
void run_crew(const Functor& functor, const gpu::Group& group, int first, int end) {
    LeafCrew::Shared shared;
    gpu::Findings findings[2 * LeafCrew::kWorkers];
    std::vector<std::thread> threads;
    for (int number = 0; number < LeafCrew::kLanes * LeafCrew::kWorkers; ++number) {
        threads.emplace_back([&, number] {
            for (int task = first; task < end; ++task) {
                const LeafCrew crew{&shared, number};
                gpu::AcaTeam<Functor, LeafCrew>(crew, functor, group, findings)
                    .run(group.tasks[task], group.results[task]);
                crew.sync();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// As launch_group of leaf_kernels.hpp, on memory of the emulated GPU; done on return.
template <class Functor>
const char* launch_on_host(const void* functor, const gpu::Group& group, void*) {
    const int tasks = group.wide + group.blocks + group.warps;
    for (int task = 0; task < tasks; ++task) run_alone(*static_cast<const Functor*>(functor), group, task);
    return nullptr;
}

}  // namespace penstock::hmatrix::test
