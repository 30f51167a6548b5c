// Shared by tests of leaves made by teams: runs tasks with one thread or with a crew that acts as a block, and a
// launcher that needs no GPU.
#pragma once

#include <cstring>
#include <thread>
#include <vector>

#include "hmatrix/gpu/crew_rig.hpp"
#include "hmatrix/gpu/leaves/aca_team.hpp"

namespace penstock::hmatrix::test {

using gpu::Crew;

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

// Runs tasks [first, end) with one crew.
template <class Functor>
void run_crew(const Functor& functor, const gpu::Group& group, int first, int end) {
    Crew::Shared shared;
    gpu::Findings findings[2 * Crew::kWorkers];
    std::vector<std::thread> threads;
    for (int number = 0; number < Crew::kLanes * Crew::kWorkers; ++number) {
        threads.emplace_back([&, number] {
            for (int task = first; task < end; ++task) {
                const Crew crew{&shared, number};
                gpu::AcaTeam<Functor, Crew>(crew, functor, group, findings)
                    .run(group.tasks[task], group.results[task]);
                crew.sync();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// Like launch_group of leaf_kernels.hpp, in memory of the emulated GPU. The work is complete on return.
template <class Functor>
const char* launch_on_host(const void* functor, const gpu::Group& group, void*) {
    const int tasks = group.wide + group.blocks + group.warps;
    for (int task = 0; task < tasks; ++task) run_alone(*static_cast<const Functor*>(functor), group, task);
    return nullptr;
}

}  // namespace penstock::hmatrix::test
