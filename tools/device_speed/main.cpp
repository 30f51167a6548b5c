// device_speed: what a device's copies, batches, boxes, packs, cells, stamps and waits cost, one line each. Run by hand
// when kernels or waits change: `device_speed [cuda:0 [packs | cells]]`; the second word leaves out the rest. Numbers
// are medians of a few repetitions; GB/s are decimal.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "boxes.hpp"
#include "cells.hpp"
#include "packs.hpp"
#include "penstock/device.hpp"

namespace penstock {

double median_seconds(const std::function<void()>& work) {
    std::vector<double> times;
    work();
    for (int i = 0; i < 5; ++i) {
        const auto start = Clock::now();
        work();
        times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + 2, times.end());
    return times[2];
}

namespace {

struct Bench {
    std::shared_ptr<Device> device;
    std::unique_ptr<Stream> stream;
    unsigned char* memory;
    unsigned char* pinned;
    std::uint64_t memory_bytes, pinned_bytes;
};

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure_stamps(Bench& bench) {
    for (const std::uint64_t skew : {0u, 8u, 1u}) {
        const std::uint64_t bytes = bench.memory_bytes - 16;
        unsigned char* start = bench.memory + skew;
        std::uint64_t bad = 0;
        const double write = median_seconds([&] {
            bench.stream->stamp(start, bytes, 0, 1);
            bench.stream->synchronize();
        });
        const double check = median_seconds([&] { bad += bench.stream->verify_stamp(start, bytes, 0, 1).bad_bytes; });
        std::printf("stamp   skew %llu: write %.2f TB/s, verify %.2f TB/s, bad bytes %llu\n",
                    static_cast<unsigned long long>(skew), static_cast<double>(bytes) / write / 1e12,
                    static_cast<double>(bytes) / check / 1e12, static_cast<unsigned long long>(bad));
    }
}

struct BatchShape {
    CopyDirection direction;
    std::uint64_t piece_bytes, count, skew;
};

std::vector<CopyPiece> pieces_of(const Bench& bench, const BatchShape& shape) {
    std::mt19937_64 random(1);
    std::vector<CopyPiece> pieces(shape.count);
    const std::uint64_t pages = (bench.pinned_bytes - shape.piece_bytes - 4096) / 4096;
    for (CopyPiece& piece : pieces) {
        unsigned char* host = bench.pinned + random() % pages * 4096 + shape.skew;
        unsigned char* device = bench.memory + random() % pages * 4096;
        const bool up = shape.direction == CopyDirection::to_device;
        piece = {up ? device : host, up ? host : device, shape.piece_bytes};
    }
    return pieces;
}

void measure_batch(Bench& bench, const BatchShape& shape) {
    const auto pieces = pieces_of(bench, shape);
    const std::uint64_t bytes = shape.piece_bytes * shape.count;
    const int repeats = static_cast<int>(std::clamp<std::uint64_t>(1'000'000'000 / bytes, 2, 200));
    const double many = median_seconds([&] {
        for (int i = 0; i < repeats; ++i) bench.stream->copy_batch(shape.direction, pieces);
        bench.stream->synchronize();
    });
    const double alone = median_seconds([&] {
        bench.stream->copy_batch(shape.direction, pieces);
        bench.stream->synchronize();
    });
    std::printf("batch   %s %5llu x %6llu B skew %llu: %6.2f GB/s, %6.2f M pieces/s; one batch alone %.1f us\n",
                shape.direction == CopyDirection::to_device ? "up  " : "down",
                static_cast<unsigned long long>(shape.count), static_cast<unsigned long long>(shape.piece_bytes),
                static_cast<unsigned long long>(shape.skew), static_cast<double>(bytes) * repeats / many / 1e9,
                static_cast<double>(shape.count) * repeats / many / 1e6, alone * 1e6);
}

void measure_batches(Bench& bench) {
    for (const CopyDirection direction : {CopyDirection::to_device, CopyDirection::to_host}) {
        for (const std::uint64_t piece : {512u, 4096u, 16384u, 65536u, 200'000u}) {
            for (const std::uint64_t count : {8u, 64u, 512u, 4096u}) {
                for (const std::uint64_t skew : {0u, 1u}) measure_batch(bench, {direction, piece, count, skew});
            }
        }
    }
}

void measure_waits(Bench& bench, std::uint64_t bytes, std::size_t slots) {
    std::vector<std::unique_ptr<Event>> events(slots);
    for (auto& event : events) event = bench.device->make_event();
    const std::size_t repeats = std::min<std::uint64_t>(8'000'000'000 / bytes, 20'000);
    const double cpu = cpu_seconds();
    const auto start = Clock::now();
    for (std::size_t i = 0; i < repeats; ++i) {
        Event& event = *events[i % slots];
        event.wait(Deadline::never());
        const std::uint64_t at = i % slots * bytes;
        bench.stream->copy(CopyDirection::to_device, bench.memory + at, bench.pinned + at, bytes);
        bench.stream->record(event);
    }
    bench.stream->synchronize();
    const double wall = std::chrono::duration<double>(Clock::now() - start).count();
    const double used = cpu_seconds() - cpu, count = static_cast<double>(repeats);
    std::printf("wait    %5llu KiB x %zu in flight: %.1f us each, %.2f GB/s, CPU %.1f us each (%.0f %%)\n",
                static_cast<unsigned long long>(bytes / kKiB), slots, wall / count * 1e6,
                count * static_cast<double>(bytes) / wall / 1e9, used / count * 1e6, 100 * used / wall);
}

void run(const char* name, const char* only) {
    const auto wants = [&](const char* what) { return *only == 0 || std::strcmp(only, what) == 0; };
    Bench bench;
    bench.device = make_device(name);
    bench.device->enter_thread();
    const DeviceInfo info = bench.device->info();
    std::printf("device  %s, %s, bus %s, NUMA node %d, coherent %d, driver %d, runtime %d\n", info.name.c_str(),
                info.model.c_str(), info.bus.c_str(), info.numa_node, info.coherent_with_host, info.driver_version,
                info.runtime_version);
    bench.stream = bench.device->make_stream();
    bench.memory_bytes = info.emulated ? kGiB : 8 * kGiB;
    bench.pinned_bytes = kGiB;
    bench.memory = static_cast<unsigned char*>(bench.device->allocate(MemoryKind::device, bench.memory_bytes));
    bench.pinned = static_cast<unsigned char*>(bench.device->allocate(MemoryKind::pinned, bench.pinned_bytes));
    std::memset(bench.pinned, 1, bench.pinned_bytes);
    if (wants("packs")) measure_packs(*bench.stream, bench.memory, bench.memory_bytes);
    if (wants("cells")) measure_cells(*bench.stream, {bench.memory, bench.pinned, bench.pinned_bytes});
    if (*only == 0) {
        measure_stamps(bench);
        measure_boxes(*bench.stream, bench.memory, bench.memory_bytes);
        measure_batches(bench);
        for (const std::uint64_t bytes : {64 * kKiB, kMiB, 4 * kMiB, 16 * kMiB}) {
            for (const std::size_t slots : {1u, 3u}) measure_waits(bench, bytes, slots);
        }
    }
    bench.device->release(MemoryKind::device, bench.memory);
    bench.device->release(MemoryKind::pinned, bench.pinned);
}

}  // namespace

int measure(int count, char** words) {
    try {
        run(count > 1 ? words[1] : "auto", count > 2 ? words[2] : "");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "device_speed: %s\n", error.what());
        return 1;
    }
    return 0;
}

}  // namespace penstock

int main(int count, char** words) { return penstock::measure(count, words); }
