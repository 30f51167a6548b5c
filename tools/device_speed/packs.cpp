// See packs.hpp. Rates count bytes read and written, so that numbers of different sizes compare; a plain copy reads and
// writes each byte once.
#include "packs.hpp"

#include <cstdio>
#include <vector>

#include "boxes.hpp"
#include "penstock/pack.hpp"

namespace penstock {
namespace {

struct Sides {
    Stream& stream;
    unsigned char* to;
    unsigned char* from;
    std::uint64_t bytes;  // of each
    double plain;         // bytes/s of a plain copy, read and written
};

void report(const Sides& sides, const char* name, Pack pack) {
    pack.destination = sides.to;
    pack.source = sides.from;
    const std::vector<Pack> packs{pack};
    const double seconds = median_seconds([&] {
        sides.stream.pack(packs);
        sides.stream.synchronize();
    });
    const std::uint64_t numbers = pack.bytes() / bytes_of(pack.to);
    const std::uint64_t reads_old = pack.operation == PackOperation::set ? 0 : bytes_of(pack.to);
    const double rate = static_cast<double>(numbers * (bytes_of(pack.to) + bytes_of(pack.from) + reads_old)) / seconds;
    std::printf("packs   %-46s %8.1f GB/s, %4.0f %% of a plain copy, %7.2f Gnumbers/s\n", name, rate / 1e9,
                100 * rate / sides.plain, static_cast<double>(numbers) / seconds / 1e9);
}

// A matrix whose source rows have a pitch.
Pack matrix(Pack pack, std::uint64_t rows, std::uint64_t columns, std::uint64_t pitch) {
    const auto to = static_cast<std::int64_t>(bytes_of(pack.to)), from = static_cast<std::int64_t>(bytes_of(pack.from));
    pack.dimensions = 2;
    pack.extents = {rows, columns};
    pack.destination_strides = {static_cast<std::int64_t>(columns) * to, to};
    pack.source_strides = {static_cast<std::int64_t>(pitch) * from, from};
    return pack;
}

Pack transposed(Pack pack, std::uint64_t rows, std::uint64_t columns) {
    pack = matrix(pack, rows, columns, columns);
    const auto from = static_cast<std::int64_t>(bytes_of(pack.from));
    pack.source_strides = {from, static_cast<std::int64_t>(rows) * from};
    return pack;
}

}  // namespace

void measure_packs(Stream& stream, unsigned char* memory, std::uint64_t bytes) {
    Sides sides{stream, memory, memory + bytes / 2, bytes / 2, 1};
    const double seconds = median_seconds([&] { copy_within(stream, sides.to, sides.from, sides.bytes); });
    sides.plain = 2 * static_cast<double>(sides.bytes) / seconds;
    std::printf("packs   a plain copy on the device, read and written:  %8.1f GB/s\n", sides.plain / 1e9);
    constexpr PackNumber kFloat = PackNumber::float32, kDouble = PackNumber::float64;
    const std::uint64_t columns = 4096, rows = sides.bytes / 8 / columns, points = rows * columns / 3;
    const Pack narrow{.to = kFloat, .from = kDouble}, floats{.to = kFloat, .from = kFloat};
    Pack swapped = narrow, rounded = narrow, same_swapped = floats, sum{.operation = PackOperation::add};
    swapped.swap = same_swapped.swap = rounded.swap = true;
    rounded.divisor = 0.1;
    rounded.keep_bits = 10;
    Pack largest = sum;
    largest.operation = PackOperation::maximum;
    report(sides, "float64 to float32", matrix(narrow, rows, columns, columns));
    report(sides, "float64 to float32, swapped", matrix(swapped, rows, columns, columns));
    report(sides, "float64 to float32, scaled, rounded, swapped", matrix(rounded, rows, columns, columns));
    report(sides, "float32, swapped", matrix(same_swapped, rows, columns, columns));
    report(sides, "float64 to float32, cut out of rows", matrix(narrow, rows, columns - 6, columns));
    report(sides, "float64 to float32, cut, in runs of four", matrix(narrow, rows, columns - 8, columns));
    report(sides, "float64, added", matrix(sum, rows, columns, columns));
    report(sides, "float64, maximum", matrix(largest, rows, columns, columns));
    report(sides, "float64 to float32, transposed", transposed(narrow, rows, columns));
    report(sides, "float32, transposed", transposed(floats, rows, columns));
    report(sides, "float64, added, transposed", transposed(sum, rows, columns));
    report(sides, "float64 to float32, points taken apart", transposed(narrow, 3, points));
    report(sides, "float64 to float32, points put together", transposed(narrow, points, 3));
}

}  // namespace penstock
