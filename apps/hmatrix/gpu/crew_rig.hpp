// A team of host threads for tests: two workers of four lanes.
//
// Lanes exchange values through an array and a barrier. The code that divides leaves among threads thus runs as on a
// GPU, but more slowly.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>

namespace penstock::hmatrix::gpu {

struct Crew {
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
    int lane() const { return number % kLanes; }
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
    template <class Real>
    Real sum(Real value, int group) const {
        return sum_of(value, [&](int other) { return other / group == lane() / group; });
    }
    template <class Real>
    void add(Real* to, Real value) const {
        std::atomic_ref(*to).fetch_add(value);
    }
    template <class Use>
    void sum_four(const double (&values)[4], const Use& use) const {
        for (int i = 0; i < 4; ++i) {
            const double all = sum(values[i], kLanes);
            if (lane() == i) use(i, all);
        }
    }
    template <class Piece>
    void bring(int count, const Piece& piece) const {
        for (int i = lane(); i < count; i += kLanes) {
            const auto run = piece(i);
            std::copy_n(run.from, run.count, run.to);
        }
    }
    template <class Number>
    void copy(Number* to, const Number* from) const {
        *to = *from;
    }
    void copied() const { sync(); }
    void arrived() const { sync(); }

  private:
    template <class Real, class Chosen>
    Real sum_of(Real value, Chosen chosen) const {
        shared->values[number] = value;
        shared->of_worker[worker()].arrive_and_wait();
        Real sum = 0;
        for (int lane = 0; lane < kLanes; ++lane) {
            if (chosen(lane)) sum += static_cast<Real>(shared->values[worker() * kLanes + lane]);
        }
        shared->of_worker[worker()].arrive_and_wait();
        return sum;
    }
};

// A crew that acts as one-warp teams: sync() waits for the lanes of the own worker only.
struct CrewOfWarps : Crew {
    void sync() const { shared->of_worker[worker()].arrive_and_wait(); }
    void copied() const { sync(); }
    void arrived() const { sync(); }
};

}  // namespace penstock::hmatrix::gpu
