// How the threads of a block pack numbers: the body of the kernel, as functions of one thread that use no CUDA.
//
// The GPU compiles this source, and so does pack_plan_test, which runs the threads one after the other on the CPU. A
// pack is cut into pieces, and a block takes units of pieces. If both sides are walked in the same order, a piece is
// one number, or a run of four where both sides are aligned and contiguous, and a lane takes every 32nd piece of its
// warp. No lane depends on another, and a lane writes only what it has read itself. If the source is contiguous along
// another dimension than the destination, a piece is a tile of both: the block reads it in the order of the source,
// keeps it in shared memory, and writes it in the order of the destination. All threads have loaded before one stores.
//
// Products and sums must be rounded apart: compile this source without fused multiplication and addition.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/boxes/box_lanes.hpp"
#include "penstock/pack.hpp"

namespace penstock::device {

constexpr unsigned kPackThreads = 256;
constexpr unsigned kPackWarps = kPackThreads / kBoxLanes;
constexpr unsigned kRun = 4;  // numbers
constexpr unsigned kTileNumbers = 1024;
constexpr unsigned kTileRoom = kTileNumbers + kTileNumbers / 2;  // numbers, with what keeps memory banks apart
constexpr unsigned kTileRounds = kTileNumbers / kPackThreads;

enum class PackPiece : std::uint8_t { number, run, tile };

// What a kernel is made for.
struct PackKind {
    PackNumber to, from;
    PackPiece piece;
    bool operator==(const PackKind& other) const {
        return to == other.to && from == other.from && piece == other.piece;
    }
};

// A tile has 2^along_bits numbers along the innermost dimension of the destination, and 2^across_bits along that of the
// source.
struct PackTile {
    std::uint64_t along, across;  // extents in numbers
    std::int64_t to_along, to_across, from_along, from_across;
    std::uint8_t along_bits, across_bits;
    std::uint16_t pitch;  // numbers from one row of the tile to the next in shared memory
};

// A pack in the form that a kernel reads.
struct PackWork {
    BoxWork grid;  // of pieces: places, extents and steps. The tiles of `along` come first, then those of `across`.
    double divisor;
    PackTile tile;
    PackKind kind;
    PackOperation operation;
    std::uint8_t dropped_bits;  // of the mantissa
    bool swap;
    std::uint8_t to_access, from_access;  // bytes of one load or store of a number
};

// ---- The value of a number. ----

template <class Bits, class Value>
PENSTOCK_HOST_DEVICE inline Bits bits_as(const Value& value) {
    static_assert(sizeof(Bits) == sizeof(Value), "the same bits");
    Bits bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// A GPU would make each NaN the same one.
PENSTOCK_HOST_DEVICE inline float narrowed(double value) {
    if (value == value) return static_cast<float>(value);
    const auto bits = bits_as<std::uint64_t>(value);
    return bits_as<float>(static_cast<std::uint32_t>(bits >> 63 << 31 | 0x7FC00000u | (bits >> 29 & 0x3FFFFF)));
}
PENSTOCK_HOST_DEVICE inline double widened(float value) {
    if (value == value) return value;
    const std::uint64_t bits = bits_as<std::uint32_t>(value);
    return bits_as<double>(bits >> 31 << 63 | 0x7FF8000000000000u | (bits & 0x3FFFFF) << 29);
}
PENSTOCK_HOST_DEVICE inline double quieted(double value) {
    return bits_as<double>(bits_as<std::uint64_t>(value) | 0x0008000000000000u);
}

template <class To, class From>
PENSTOCK_HOST_DEVICE inline To converted(From value) {
    if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) return narrowed(value);
    else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, double>) return widened(value);
    else return static_cast<To>(value);
}

PENSTOCK_HOST_DEVICE inline double quotient(double value, double divisor) {
    return value == value ? value / divisor : quieted(value);
}

// Rounds to nearest, ties to even, in the bits of the number: a carry into the exponent is the next power of two.
template <class Bits>
PENSTOCK_HOST_DEVICE inline Bits rounded_bits(Bits bits, Bits exponent, unsigned dropped) {
    if ((bits & exponent) == exponent) return bits;
    const Bits one = 1;
    const Bits half = (one << (dropped - 1)) - 1 + (bits >> dropped & 1);
    return (bits + half) >> dropped << dropped;
}
PENSTOCK_HOST_DEVICE inline float rounded(float value, unsigned dropped) {
    return bits_as<float>(rounded_bits<std::uint32_t>(bits_as<std::uint32_t>(value), 0x7F800000u, dropped));
}
PENSTOCK_HOST_DEVICE inline double rounded(double value, unsigned dropped) {
    return bits_as<double>(rounded_bits<std::uint64_t>(bits_as<std::uint64_t>(value), 0x7FF0000000000000u, dropped));
}

template <class From, class To>
PENSTOCK_HOST_DEVICE inline To value_of(const PackWork& work, From number) {
    if constexpr (std::is_floating_point_v<To>) {
        const To value = work.divisor == 1 ? converted<To>(number)
                                           : converted<To>(quotient(converted<double>(number), work.divisor));
        return work.dropped_bits == 0 ? value : rounded(value, work.dropped_bits);
    } else {
        return static_cast<To>(number);
    }
}

PENSTOCK_HOST_DEVICE inline std::int32_t sum(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
PENSTOCK_HOST_DEVICE inline std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
PENSTOCK_HOST_DEVICE inline float sum(float a, float b) {
    const float both = a + b;
    return both == both ? both : bits_as<float>(0x7FC00000u);
}
PENSTOCK_HOST_DEVICE inline double sum(double a, double b) {
    const double both = a + b;
    return both == both ? both : bits_as<double>(std::uint64_t{0x7FF8000000000000u});
}

template <class To>
PENSTOCK_HOST_DEVICE inline To combined(PackOperation operation, To old, To value) {
    switch (operation) {
        case PackOperation::add: return sum(old, value);
        case PackOperation::minimum: return value < old || old != old ? value : old;
        case PackOperation::maximum: return value > old || old != old ? value : old;
        case PackOperation::set: break;
    }
    return value;
}

template <class Number>
PENSTOCK_HOST_DEVICE inline Number load_number(const unsigned char* from, unsigned access) {
    return bits_as<Number>(load<sizeof(Number)>(from, access));
}
template <class Number>
PENSTOCK_HOST_DEVICE inline Element<sizeof(Number)> bytes_to_store(const PackWork& work, Number number) {
    const auto bytes = bits_as<Element<sizeof(Number)>>(number);
    return work.swap ? swapped(bytes, sizeof(Number)) : bytes;
}

// ---- Numbers and runs: both sides in the same order. ----

template <class Number, unsigned kCount>
struct Numbers {
    Number values[kCount];
};

template <class Number, unsigned kCount>
PENSTOCK_HOST_DEVICE inline Numbers<Number, kCount> load_numbers(const unsigned char* from, unsigned access) {
    Numbers<Number, kCount> numbers;
    if constexpr (kCount == 1) {
        numbers.values[0] = load_number<Number>(from, access);
    } else {
        memcpy(&numbers, __builtin_assume_aligned(from, 16), sizeof numbers);
    }
    return numbers;
}

template <class Number, unsigned kCount>
PENSTOCK_HOST_DEVICE inline void store_numbers(const PackWork& work, unsigned char* to,
                                               const Numbers<Number, kCount>& numbers) {
    if constexpr (kCount == 1) {
        store<sizeof(Number)>(to, bytes_to_store(work, numbers.values[0]), work.to_access);
    } else {
        Element<sizeof(Number)> bytes[kCount];
        PENSTOCK_UNROLL
        for (unsigned n = 0; n < kCount; ++n) bytes[n] = bytes_to_store(work, numbers.values[n]);
        memcpy(__builtin_assume_aligned(to, 16), bytes, sizeof bytes);
    }
}

template <class From, class To, unsigned kCount>
PENSTOCK_HOST_DEVICE inline void pack_pieces(const PackWork& work, std::uint64_t unit, unsigned lane) {
    constexpr unsigned kAtOnce = kCount == 1 ? kPiecesInFlight : kPiecesInFlight / 2;
    std::uint64_t piece = unit * kPiecesPerUnit + lane;
    BoxCursor cursor = cursor_at(work.grid, piece);
    for (unsigned batch = 0; batch < kPiecesPerUnit; batch += kAtOnce * kBoxLanes) {
        Numbers<From, kCount> held[kAtOnce];
        Numbers<To, kCount> old[kAtOnce];
        unsigned char* to[kAtOnce];
        PENSTOCK_UNROLL
        for (unsigned i = 0; i < kAtOnce; ++i) {
            to[i] = nullptr;
            if (piece < work.grid.pieces) {
                to[i] = work.grid.to + cursor.to;
                held[i] = load_numbers<From, kCount>(work.grid.from + cursor.from, work.from_access);
                if (work.operation != PackOperation::set) old[i] = load_numbers<To, kCount>(to[i], work.to_access);
            }
            piece += kBoxLanes;
            advance(work.grid, cursor);
        }
        PENSTOCK_UNROLL
        for (unsigned i = 0; i < kAtOnce; ++i) {
            if (to[i] == nullptr) continue;
            Numbers<To, kCount> values;
            PENSTOCK_UNROLL
            for (unsigned n = 0; n < kCount; ++n) {
                values.values[n] = value_of<From, To>(work, held[i].values[n]);
                if (work.operation != PackOperation::set) {
                    values.values[n] = combined(work.operation, old[i].values[n], values.values[n]);
                }
            }
            store_numbers(work, to[i], values);
        }
    }
}

// Packs the pieces of one thread of a block.
template <class From, class To, unsigned kCount>
PENSTOCK_HOST_DEVICE inline void pack_unit(const PackWork& work, std::uint64_t unit, unsigned thread) {
    pack_pieces<From, To, kCount>(work, unit * kPackWarps + thread / kBoxLanes, thread % kBoxLanes);
}

// ---- Tiles: the sides in different orders. ----

// A tile, and the numbers of it that the pack has.
struct TilePlace {
    unsigned char* to;
    const unsigned char* from;
    std::uint64_t along, across;
};

PENSTOCK_HOST_DEVICE inline TilePlace tile_at(const PackWork& work, std::uint64_t tile) {
    const BoxCursor cursor = cursor_at(work.grid, tile);
    return {work.grid.to + cursor.to, work.grid.from + cursor.from,
            work.tile.along - (cursor.index[0] << work.tile.along_bits),
            work.tile.across - (cursor.index[1] << work.tile.across_bits)};
}

// Reads the numbers of one thread, in the order of the source.
template <class From, class To>
PENSTOCK_HOST_DEVICE inline void load_tile(const PackWork& work, std::uint64_t number, unsigned thread, To* shared) {
    const TilePlace place = tile_at(work, number);
    From held[kTileRounds];
    PENSTOCK_UNROLL
    for (unsigned round = 0; round < kTileRounds; ++round) {
        const unsigned at = round * kPackThreads + thread;
        const unsigned j = at & ((1u << work.tile.across_bits) - 1), i = at >> work.tile.across_bits;
        if (i >= place.along || j >= place.across) continue;
        held[round] = load_number<From>(
            place.from + static_cast<std::int64_t>(i) * work.tile.from_along + j * work.tile.from_across,
            work.from_access);
    }
    PENSTOCK_UNROLL
    for (unsigned round = 0; round < kTileRounds; ++round) {
        const unsigned at = round * kPackThreads + thread;
        const unsigned j = at & ((1u << work.tile.across_bits) - 1), i = at >> work.tile.across_bits;
        if (i >= place.along || j >= place.across) continue;
        shared[j * work.tile.pitch + i] = value_of<From, To>(work, held[round]);
    }
}

// Writes the numbers of one thread, in the order of the destination.
template <class To>
PENSTOCK_HOST_DEVICE inline void store_tile(const PackWork& work, std::uint64_t number, unsigned thread,
                                            const To* shared) {
    const TilePlace place = tile_at(work, number);
    unsigned char* to[kTileRounds];
    To old[kTileRounds];
    PENSTOCK_UNROLL
    for (unsigned round = 0; round < kTileRounds; ++round) {
        const unsigned at = round * kPackThreads + thread;
        const unsigned i = at & ((1u << work.tile.along_bits) - 1), j = at >> work.tile.along_bits;
        to[round] = nullptr;
        if (i >= place.along || j >= place.across) continue;
        to[round] = place.to + static_cast<std::int64_t>(i) * work.tile.to_along + j * work.tile.to_across;
        if (work.operation != PackOperation::set) old[round] = load_number<To>(to[round], work.to_access);
    }
    PENSTOCK_UNROLL
    for (unsigned round = 0; round < kTileRounds; ++round) {
        const unsigned at = round * kPackThreads + thread;
        const unsigned i = at & ((1u << work.tile.along_bits) - 1), j = at >> work.tile.along_bits;
        if (to[round] == nullptr) continue;
        To value = shared[j * work.tile.pitch + i];
        if (work.operation != PackOperation::set) value = combined(work.operation, old[round], value);
        store<sizeof(To)>(to[round], bytes_to_store(work, value), work.to_access);
    }
}

// ---- Which numbers. ----

constexpr unsigned both(PackNumber from, PackNumber to) {
    return static_cast<unsigned>(from) << 4 | static_cast<unsigned>(to);
}

// Calls act.run<From, To>() with the numbers of a pack, on the host. Requires: a pack converts them.
template <class Act>
void with_numbers(PackNumber from, PackNumber to, const Act& act) {
    constexpr PackNumber f4 = PackNumber::float32, f8 = PackNumber::float64, i4 = PackNumber::int32,
                         i8 = PackNumber::int64;
    switch (both(from, to)) {
        case both(f4, f4): return act.template run<float, float>();
        case both(f4, f8): return act.template run<float, double>();
        case both(f8, f4): return act.template run<double, float>();
        case both(f8, f8): return act.template run<double, double>();
        case both(i4, f4): return act.template run<std::int32_t, float>();
        case both(i4, f8): return act.template run<std::int32_t, double>();
        case both(i8, f4): return act.template run<std::int64_t, float>();
        case both(i8, f8): return act.template run<std::int64_t, double>();
        case both(i4, i4): return act.template run<std::int32_t, std::int32_t>();
        case both(i4, i8): return act.template run<std::int32_t, std::int64_t>();
        case both(i8, i8): return act.template run<std::int64_t, std::int64_t>();
        default: return;  // the plan refused it
    }
}

}  // namespace penstock::device
