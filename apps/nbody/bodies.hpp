// The bodies and the physics, body by body: the same code on the host's threads and on a GPU. PODs for nvcc (C++17) and
// g++.
//
// A Hermite scheme of fourth order with block time steps (Makino and Aarseth, 1992): each body has a step of its own, a
// power of two of ticks, and is moved when its step ends; the others are predicted to that moment. Units: the constant
// of gravitation, the total mass and the virial radius are 1. What must stay true: Evaluate reads the bodies and writes
// the scratch, Correct reads the scratch and writes the body alone, and each sum goes over all bodies in their order.
// So results depend on no number of threads.
#pragma once

#include <cmath>
#include <cstdint>

#include "penstock/host_device.hpp"

namespace penstock::nbody {

constexpr std::int64_t kLongestStep = 64;  // ticks
constexpr double kTick = 1.0 / 1024;       // of time; exact

struct Bodies {
    std::int64_t count = 0;
    double* position = nullptr;      // three of each body
    double* velocity = nullptr;
    double* acceleration = nullptr;  // at the begin of the body's step
    double* jerk = nullptr;
    double* mass = nullptr;
    std::int64_t* began = nullptr;  // ticks: when the step of the body began
    std::int64_t* step = nullptr;   // ticks: how long it is
    double* scratch = nullptr;      // six of each body: acceleration and jerk at its end
};

struct Vector {
    double x, y, z;
};

PENSTOCK_HOST_DEVICE inline Vector at(const double* values, std::int64_t i) {
    return {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
}
PENSTOCK_HOST_DEVICE inline void put(double* values, std::int64_t i, const Vector& v) {
    values[3 * i] = v.x;
    values[3 * i + 1] = v.y;
    values[3 * i + 2] = v.z;
}
PENSTOCK_HOST_DEVICE inline Vector sum(const Vector& a, double factor, const Vector& b) {
    return {a.x + factor * b.x, a.y + factor * b.y, a.z + factor * b.z};
}
PENSTOCK_HOST_DEVICE inline double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

PENSTOCK_HOST_DEVICE inline bool ends(const Bodies& all, std::int64_t i, std::int64_t tick) {
    return all.began[i] + all.step[i] == tick;
}

// Where a body is at a tick within its step, and how fast.
struct Predicted {
    Vector position, velocity;
};
PENSTOCK_HOST_DEVICE inline Predicted predicted(const Bodies& all, std::int64_t i, std::int64_t tick) {
    const double dt = static_cast<double>(tick - all.began[i]) * kTick;
    const Vector v = at(all.velocity, i), a = at(all.acceleration, i), j = at(all.jerk, i);
    const Vector velocity = sum(sum(v, dt, a), dt * dt / 2, j);
    return {sum(sum(sum(at(all.position, i), dt, v), dt * dt / 2, a), dt * dt * dt / 6, j), velocity};
}

// Acceleration and jerk of the bodies whose step ends at the tick; of all, where `begins`: nothing is predicted then.
struct Evaluate {
    Bodies all;
    std::int64_t tick = 0;
    double softening = 0;
    bool begins = false;

    PENSTOCK_HOST_DEVICE void operator()(std::int64_t i) const {
        if (!begins && !ends(all, i, tick)) return;
        const Predicted mine = predicted(all, i, tick);
        Vector acceleration{0, 0, 0}, jerk{0, 0, 0};
        for (std::int64_t k = 0; k < all.count; ++k) {
            if (k == i) continue;
            const Predicted other = predicted(all, k, tick);
            const Vector r = sum(other.position, -1, mine.position), v = sum(other.velocity, -1, mine.velocity);
            const double r2 = dot(r, r) + softening * softening;
            const double pull = all.mass[k] / (r2 * std::sqrt(r2));
            acceleration = sum(acceleration, pull, r);
            jerk = sum(sum(jerk, pull, v), -3 * pull * dot(r, v) / r2, r);
        }
        put(all.scratch, 2 * i, acceleration);
        put(all.scratch, 2 * i + 1, jerk);
    }
};

// Moves these bodies to the tick, and chooses their next step.
struct Correct {
    Bodies all;
    std::int64_t tick = 0;
    double accuracy = 0.02;  // of a step, in parts of the time in which the acceleration changes
    bool begins = false;

    PENSTOCK_HOST_DEVICE void operator()(std::int64_t i) const {
        if (!begins && !ends(all, i, tick)) return;
        const Vector a1 = at(all.scratch, 2 * i), j1 = at(all.scratch, 2 * i + 1);
        if (!begins) {
            const double dt = static_cast<double>(all.step[i]) * kTick;
            const Vector v0 = at(all.velocity, i), a0 = at(all.acceleration, i), j0 = at(all.jerk, i);
            const Vector v1 = sum(sum(v0, dt / 2, sum(a0, 1, a1)), dt * dt / 12, sum(j0, -1, j1));
            put(all.position, i, sum(sum(at(all.position, i), dt / 2, sum(v0, 1, v1)), dt * dt / 12, sum(a0, -1, a1)));
            put(all.velocity, i, v1);
        }
        put(all.acceleration, i, a1);
        put(all.jerk, i, j1);
        all.began[i] = tick;
        all.step[i] = next_step(a1, j1, begins ? kLongestStep : 2 * all.step[i]);
    }

  private:
    // The longest that is accurate and not longer than `most`, and ends at a tick that it divides.
    PENSTOCK_HOST_DEVICE std::int64_t next_step(const Vector& a, const Vector& j, std::int64_t most) const {
        const double wanted = accuracy * std::sqrt(dot(a, a) / (dot(j, j) + 1e-300)) / kTick;
        std::int64_t step = kLongestStep;
        while (step > 1 && (step > most || static_cast<double>(step) > wanted || tick % step != 0)) step /= 2;
        return step;
    }
};

}  // namespace penstock::nbody
