// See boxes.hpp. Rates count the bytes moved, once; "of a plain copy" is what the shape costs.
#include "boxes.hpp"

#include <cstdio>
#include <vector>

#include "penstock/box.hpp"

namespace penstock {
namespace {

struct Halves {
    Stream& stream;
    unsigned char* to;
    unsigned char* from;
    std::uint64_t bytes;  // of each
    double plain;         // bytes/s of a plain copy
};

void report(const Halves& halves, const char* name, std::uint64_t bytes, const std::function<void()>& queue) {
    const double seconds = median_seconds([&] {
        queue();
        halves.stream.synchronize();
    });
    const double rate = static_cast<double>(bytes) / seconds;
    std::printf("boxes   %-34s %8.1f GB/s, %4.0f %% of a plain copy\n", name, rate / 1e9, 100 * rate / halves.plain);
}

struct RowShape {
    const char* name;
    std::uint64_t row_bytes, from_pitch, from_skew;
    std::uint32_t swap;
};

// Rows with gaps become rows without.
void measure_rows(const Halves& halves, const RowShape& shape) {
    Box box{.destination = halves.to, .source = halves.from + shape.from_skew, .item_bytes = shape.row_bytes,
            .dimensions = 1, .swap_bytes = shape.swap};
    box.extents[0] = (halves.bytes - 64) / shape.from_pitch;
    box.destination_strides[0] = static_cast<std::int64_t>(shape.row_bytes);
    box.source_strides[0] = static_cast<std::int64_t>(shape.from_pitch);
    const std::vector<Box> boxes{box};
    report(halves, shape.name, box.bytes(), [&] { halves.stream.copy_boxes(boxes); });
}

void measure_swap(const Halves& halves, std::uint32_t word, std::uint64_t skew) {
    const std::uint64_t bytes = align_down(halves.bytes - 64, 16);
    const std::vector<Box> boxes{{.destination = halves.from + skew, .source = halves.from + skew, .item_bytes = bytes,
                                  .swap_bytes = word}};
    char name[64];
    std::snprintf(name, sizeof name, "swap of %u bytes in place, skew %llu", word,
                  static_cast<unsigned long long>(skew));
    report(halves, name, bytes, [&] { halves.stream.copy_boxes(boxes); });
}

void measure_transposition(const Halves& halves) {
    const std::uint64_t side = 8192, bytes = side * side * 4;
    if (bytes > halves.bytes) return;
    Box box{.destination = halves.to, .source = halves.from, .item_bytes = 4, .dimensions = 2};
    box.extents = {side, side};
    box.destination_strides = {static_cast<std::int64_t>(side) * 4, 4};
    box.source_strides = {4, static_cast<std::int64_t>(side) * 4};
    const std::vector<Box> boxes{box};
    report(halves, "transposition of 4-byte items", bytes, [&] { halves.stream.copy_boxes(boxes); });
}

void measure_many(const Halves& halves, std::uint64_t count, std::uint64_t row_bytes) {
    std::vector<Box> boxes(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        Box& box = boxes[i];
        box = {.destination = halves.to + i * 16 * row_bytes, .source = halves.from + (count - 1 - i) * 32 * row_bytes,
               .item_bytes = row_bytes, .dimensions = 2};
        box.extents = {4, 4};
        box.destination_strides = {static_cast<std::int64_t>(4 * row_bytes), static_cast<std::int64_t>(row_bytes)};
        box.source_strides = {static_cast<std::int64_t>(8 * row_bytes), static_cast<std::int64_t>(2 * row_bytes)};
    }
    char name[64];
    std::snprintf(name, sizeof name, "%llu boxes of 4 x 4 x %llu bytes", static_cast<unsigned long long>(count),
                  static_cast<unsigned long long>(row_bytes));
    report(halves, name, 16 * row_bytes * count, [&] { halves.stream.copy_boxes(boxes); });
}

void measure_fill(const Halves& halves, std::uint64_t item_bytes) {
    Box box{.destination = halves.to, .item_bytes = item_bytes, .dimensions = 1};
    box.extents[0] = halves.bytes / item_bytes;
    box.destination_strides[0] = static_cast<std::int64_t>(item_bytes);
    const std::vector<Box> boxes{box};
    const std::vector<std::byte> item(item_bytes, std::byte{7});
    char name[64];
    std::snprintf(name, sizeof name, "fill with items of %llu bytes", static_cast<unsigned long long>(item_bytes));
    report(halves, name, box.bytes(), [&] { halves.stream.fill_boxes(boxes, item); });
}

}  // namespace

void measure_boxes(Stream& stream, unsigned char* memory, std::uint64_t bytes) {
    Halves halves{stream, memory, memory + bytes / 2, bytes / 2, 1};
    const double seconds = median_seconds([&] { copy_within(stream, halves.to, halves.from, halves.bytes); });
    halves.plain = static_cast<double>(halves.bytes) / seconds;
    std::printf("boxes   a plain copy on the device:        %8.1f GB/s\n", halves.plain / 1e9);
    for (const RowShape& shape : {RowShape{"one contiguous box", 4096, 4096, 0, 0},
                                  {"rows of 4 KiB, every second", 4096, 8192, 0, 0},
                                  {"rows of 256 bytes, every second", 256, 512, 0, 0},
                                  {"rows of 256 bytes, odd source", 256, 512, 1, 0},
                                  {"rows of 1001 bytes, packed", 1001, 1024, 0, 0},
                                  {"rows of 64 bytes, every second", 64, 128, 0, 0},
                                  {"items of 4 bytes, every second", 4, 8, 0, 0},
                                  {"swap of 4 bytes, rows of 256", 256, 512, 0, 4}}) {
        measure_rows(halves, shape);
    }
    for (const std::uint32_t word : {2u, 4u, 8u, 16u}) measure_swap(halves, word, 0);
    measure_swap(halves, 8, 4);
    measure_swap(halves, 4, 1);
    measure_transposition(halves);
    measure_many(halves, 10'000, 16);
    measure_many(halves, 10'000, 256);
    measure_fill(halves, 4);
    measure_fill(halves, 3);
}

}  // namespace penstock
