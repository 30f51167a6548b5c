// See cells.hpp. Rates of a gather count the rows that it reads and writes, and not the numbers of the order. Beside it
// is a plain copy of as many bytes.
#include "cells.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

#include "boxes.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kParticles = 10'000'000;
constexpr std::uint64_t kFieldBytes = 24 * kParticles;

// The order, a field, and room for the field in that order.
struct Fields {
    std::uint32_t* order;
    unsigned char *from, *to;
};

void make_places(Stream& stream, const CellRoom& room, unsigned char* positions, double spread) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform(0.5 - spread / 2, 0.5 + spread / 2);
    const std::uint64_t piece = room.pinned_bytes / 24 * 24;
    for (std::uint64_t done = 0; done < kFieldBytes; done += piece) {
        const std::uint64_t bytes = std::min(piece, kFieldBytes - done);
        for (std::uint64_t at = 0; at < bytes; at += sizeof(double)) {
            const double number = uniform(random);
            std::memcpy(room.pinned + at, &number, sizeof number);
        }
        stream.copy(CopyDirection::to_device, positions + done, room.pinned, bytes);
        stream.synchronize();
    }
}

void measure_sort(Stream& stream, const Fields& fields, const char* what) {
    constexpr std::uint64_t kAlong = 64;
    CellSort sort{fields.from, kParticles, true, {kAlong, kAlong, kAlong}, {}, fields.order};
    sort.widths.fill(1.0 / kAlong);
    const double sorted = median_seconds([&] { static_cast<void>(stream.sort_cells(sort)); });
    std::printf("cells   sort of 10 M particles, float64, 64^3 cells, %-12s %8.2f ms, %6.2f G particles/s\n", what,
                sorted * 1e3, static_cast<double>(kParticles) / sorted / 1e9);
}

void measure_gathers(Stream& stream, const Fields& fields) {
    for (const std::uint64_t row : {4u, 8u, 12u, 16u, 24u}) {
        const std::uint64_t bytes = row * kParticles;
        const double plain = median_seconds([&] { copy_within(stream, fields.to, fields.from, bytes); });
        const double seconds = median_seconds([&] {
            stream.gather({fields.to, fields.from, fields.order, kParticles, kParticles, row});
            stream.synchronize();
        });
        std::printf("cells   gather of 10 M rows of %2u bytes: %8.2f ms, %7.1f GB/s; a plain copy %7.1f GB/s\n",
                    static_cast<unsigned>(row), seconds * 1e3, 2e-9 * static_cast<double>(bytes) / seconds,
                    2e-9 * static_cast<double>(bytes) / plain);
    }
}

}  // namespace

void measure_cells(Stream& stream, const CellRoom& room) {
    const std::uint64_t field = align_up(kFieldBytes, 4096);
    const Fields fields{reinterpret_cast<std::uint32_t*>(room.memory + 2 * field), room.memory, room.memory + field};
    make_places(stream, room, fields.from, 1e-3);
    measure_sort(stream, fields, "8 crowded");
    make_places(stream, room, fields.from, 1);
    measure_sort(stream, fields, "uniform");
    measure_gathers(stream, fields);
}

}  // namespace penstock
