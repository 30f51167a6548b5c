// A kernel that keeps a log, in C++: it opens a file by name, each warp appends its lines by one call, and at the end
// of a step it calls a function of the host. Without a GPU the host does the same through the same header. Link the
// CMake target penstock::cpp, then
//
//     ./gpu_log steps.log
#include <penstock/device_calls.hpp>
#include <penstock/ondevice/calls.hpp>

#include <cstdio>
#include <fstream>
#include <string>

using penstock::ondevice::CallEnd;
using penstock::ondevice::CallsRef;

constexpr unsigned kSteps = 10, kThreads = 64;

// The steps of one thread: a number that grows, a line for each, and the first thread tells the host of the step.
__host__ __device__ void run_steps(const CallsRef* calls, unsigned step_ended, const char* name, unsigned thread) {
    const CallEnd log = calls->open(name, penstock::ondevice::file_append | penstock::ondevice::file_create);
    double energy = 1.0 / (thread + 1);
    for (unsigned step = 0; step < kSteps; ++step) {
        energy *= 1.01;
        calls->print(log.value, "step ", step, " thread ", thread, " energy ", energy);
        if (thread == 0) calls->call(step_ended, step);
    }
    calls->close(log.value);
}

struct Name {
    char text[256];
};

__global__ void steps(const CallsRef* calls, unsigned step_ended, Name name) {
    run_steps(calls, step_ended, name.text, blockIdx.x * blockDim.x + threadIdx.x);
}

static unsigned lines_of(const char* name) {
    std::ifstream file(name);
    unsigned lines = 0;
    for (std::string line; std::getline(file, line);) lines += line.rfind("step ", 0) == 0;
    return lines;
}

int main(int count, char** arguments) {
    Name name{};
    if (count < 2 || std::snprintf(name.text, sizeof name.text, "%s", arguments[1]) >= int{sizeof name.text}) {
        return std::fprintf(stderr, "usage: %s FILE (it is made; a name of at most 255 bytes)\n", arguments[0]), 2;
    }
    std::remove(name.text);
    try {
        const penstock::Context context;
        const penstock::DeviceCalls calls(context);
        const unsigned step_ended = calls.add("step ended", [](const penstock::HostCall& call) {
            std::printf("step %llu ended\n", static_cast<unsigned long long>(call.value));
            return penstock::HostAnswer{};
        });
        const bool gpu = !context.device().info().emulated;
        if (gpu) {
            steps<<<2, kThreads / 2>>>(calls.ref(), step_ended, name);
            if (const auto error = cudaDeviceSynchronize(); error != cudaSuccess) {
                return std::fprintf(stderr, "the kernel failed: %s\n", cudaGetErrorString(error)), 1;
            }
        } else {
            for (unsigned thread = 0; thread < kThreads; ++thread) {
                run_steps(calls.ref(), step_ended, name.text, thread);
            }
        }
        calls.close();
        for (const auto& [function, what] : calls.errors()) {
            std::fprintf(stderr, "%s: %s\n", function.c_str(), what.c_str());
        }
        const unsigned lines = lines_of(name.text);
        std::printf("%s has %u lines of %u, by %llu calls of %s\n", name.text, lines, kSteps * kThreads,
                    static_cast<unsigned long long>(calls.statistics().calls), gpu ? "a GPU" : "the host");
        return lines == kSteps * kThreads && calls.errors().empty() ? 0 : 1;
    } catch (const penstock::Error& error) {
        return std::fprintf(stderr, "%s\n", error.what()), 1;
    }
}
