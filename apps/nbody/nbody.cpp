// A star cluster that writes snapshots and restarts, and goes on from the newest restart that is there:
//
//     nbody --bodies 4096 --until 2 --every 0.25 --output run/cluster [--device host] [--durable]
//
// writes run/cluster_000.hdf5, run/cluster_001.hdf5, ... for readers of GADGET-4's files, and the restart run/cluster.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "nbody/nbody_model.hpp"

namespace {

using penstock::nbody::Cluster;
using penstock::nbody::ClusterOptions;
using penstock::nbody::kLongestStep;
using penstock::nbody::kTick;

struct RunOptions {
    ClusterOptions cluster;
    double until = 1, every = 0.25;  // of time, in whole longest steps
    std::string output = "cluster", device;
    bool durable = false;
};

[[noreturn]] void refuse(const std::string& why) {
    std::fprintf(stderr,
                 "nbody: %s\nusage: nbody [--bodies N] [--seed N] [--until TIME] [--every TIME] [--output NAME] "
                 "[--device host|cuda:N] [--durable]\n",
                 why.c_str());
    std::exit(2);
}

double number(const char* option, const char* text) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !std::isfinite(value) || value <= 0)
        refuse(std::string(option) + " takes a number above 0, not '" + text + "'");
    return value;
}

// Whole, and small enough that a double has all of its digits.
std::int64_t whole_number(const char* option, const char* text) {
    const double value = number(option, text);
    if (value != std::floor(value) || value > 0x1p53)
        refuse(std::string(option) + " takes a whole number up to 2^53, not '" + text + "'");
    return static_cast<std::int64_t>(value);
}

RunOptions parsed(int count, char** arguments) {
    RunOptions run;
    for (int i = 1; i < count; ++i) {
        const std::string option = arguments[i];
        if (option == "--durable") {
            run.durable = true;
            continue;
        }
        if (i + 1 == count) refuse(option + " is no option, or lacks its value");
        const char* value = arguments[++i];
        if (option == "--bodies") run.cluster.bodies = whole_number("--bodies", value);
        else if (option == "--seed") run.cluster.seed = static_cast<std::uint64_t>(whole_number("--seed", value));
        else if (option == "--until") run.until = number("--until", value);
        else if (option == "--every") run.every = number("--every", value);
        else if (option == "--output") run.output = value;
        else if (option == "--device") run.device = value;
        else refuse("there is no option " + option);
    }
    return run;
}

std::string snapshot_name(const RunOptions& run, std::int64_t number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "_%03lld.hdf5", static_cast<long long>(number));
    return run.output + digits;
}

void run_cluster(const RunOptions& run) {
    const auto context = run.device.empty() ? penstock::Context() : penstock::Context({.device = run.device});
    Cluster cluster(context, run.cluster);
    penstock::Restart restart(context, run.output, {.durable = run.durable});
    cluster.describe(restart);
    if (restart.find()) {
        restart.read();
        cluster.resume(restart);
        std::printf("goes on from time %g of generation %llu\n", cluster.time(),
                    static_cast<unsigned long long>(restart.generation()));
    }
    const double step = static_cast<double>(kLongestStep) * kTick;
    const auto steps = std::max<std::int64_t>(1, std::llround(run.every / step));
    while (cluster.time() < run.until) {
        cluster.advance(steps);
        const std::int64_t written = std::llround(cluster.time() / (static_cast<double>(steps) * step));
        const penstock::SnapshotFacts facts = cluster.write_snapshot(snapshot_name(run, written), run.durable);
        cluster.describe(restart);
        restart.write();
        std::printf("time %g: energy %.9f, snapshot %lld in %.1f ms\n", cluster.time(), cluster.energy(),
                    static_cast<long long>(written), 1e3 * (facts.layout_seconds + facts.write_seconds));
    }
}

}  // namespace

int main(int count, char** arguments) {
    try {
        run_cluster(parsed(count, arguments));
        return 0;
    } catch (const penstock::Error& error) {
        std::fprintf(stderr, "nbody: %s\n", error.what());
        return 1;
    }
}
