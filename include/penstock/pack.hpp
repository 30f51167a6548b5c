// Pack: numbers of a strided array that are converted, and combined with what their destination holds, as data.
//
// Simulation codes keep fields with halos, in an order of their own and in double precision, and write them without, in
// the order of a file and in single. A pack does that on the way: it cuts, transposes, divides, converts, rounds, swaps
// bytes, and sums or compares with what other steps left in the destination. The same pack has the same bits on every
// device: the rules below leave nothing open. Like those of a box, its items have no order. So the items of a
// destination may not overlap. A pack may read what it writes only if numbers, memory and strides of both sides are the
// same. Packs of one call may not write what another one of the call reads or writes.
//
//   value = source, as a number of the destination      if the divisor is 1: rounded once, to nearest, ties to even
//         = double(source) / divisor, as that number    otherwise; a quotient beyond the largest number is inf
//   value is rounded to keep_bits                        if that is not 0
//   destination = value, or destination + value, or the smaller or larger of both
//
// NaN: a conversion keeps sign and leading bits of a NaN, and makes it quiet. `add` makes every NaN the positive quiet
// one without further bits. `minimum` and `maximum` leave out NaN as a missing value: the other number stays. If both
// are equal, +0 and -0 too, the destination stays as it is. No other value counts as missing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr std::size_t kPackDimensions = 6;

enum class PackNumber : std::uint8_t { float32, float64, int32, int64 };
enum class PackOperation : std::uint8_t { set, add, minimum, maximum };

constexpr std::uint64_t bytes_of(PackNumber number) noexcept {
    return number == PackNumber::float64 || number == PackNumber::int64 ? 8 : 4;
}
constexpr bool is_float(PackNumber number) noexcept { return number <= PackNumber::float64; }
constexpr std::uint32_t mantissa_bits(PackNumber number) noexcept {  // 0: it has none
    return number == PackNumber::float32 ? 23 : number == PackNumber::float64 ? 52 : 0;
}
// Whether a pack makes numbers `to` of numbers `from`. Floats do not become integers, nor integers narrower ones,
// because a device could not tell its caller that a value did not fit.
constexpr bool converts(PackNumber from, PackNumber to) noexcept {
    return is_float(to) || (!is_float(from) && bytes_of(from) <= bytes_of(to));
}

struct Pack {
    void* destination = nullptr;   // of the first item; any alignment
    const void* source = nullptr;  // of the first item; any alignment
    PackNumber to = PackNumber::float64;
    PackNumber from = PackNumber::float64;
    PackOperation operation = PackOperation::set;
    bool swap = false;             // the destination has the other byte order; `set` only
    std::uint32_t keep_bits = 0;   // of the mantissa, 0: all. BitRound: ties to even; inf, NaN stay; floats, `set` only
    std::uint32_t dimensions = 0;  // 0: one item
    double divisor = 1;            // finite and not 0; 1 if the destination has integers
    std::array<std::uint64_t, kPackDimensions> extents{};             // in items; a 0 makes the pack empty
    std::array<std::int64_t, kPackDimensions> destination_strides{};  // in bytes
    std::array<std::int64_t, kPackDimensions> source_strides{};       // in bytes; 0 repeats the source

    std::uint64_t bytes() const noexcept {  // that the pack writes
        std::uint64_t total = bytes_of(to);
        for (std::uint32_t i = 0; i < dimensions; ++i) total *= extents[i];
        return total;
    }
};

}  // namespace penstock
