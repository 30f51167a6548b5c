// Random packs, and what they mean by plain loops: the reference for everything that packs numbers.
//
// The reference takes numbers one by one, and converts them by the casts of the language. Dropped bits are computed by
// arithmetic on numbers and not on bits. Places are offsets in two byte arrays, so that the same packs work with any
// memory.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>

#include "conformance/box_reference.hpp"
#include "penstock/pack.hpp"

namespace penstock::conformance {

using Bytes = std::vector<unsigned char>;

template <class Number>
Number number_at(const Bytes& bytes, std::int64_t offset) {
    Number number;
    std::memcpy(&number, &bytes.at(static_cast<std::size_t>(offset) + sizeof number - 1) - (sizeof number - 1),
                sizeof number);
    return number;
}
template <class Number>
void put_number(Bytes& bytes, std::int64_t offset, Number number) {
    std::memcpy(&bytes.at(static_cast<std::size_t>(offset) + sizeof number - 1) - (sizeof number - 1), &number,
                sizeof number);
}

template <class Act>
void with_number(PackNumber number, const Act& act) {
    switch (number) {
        case PackNumber::float32: return act(float{});
        case PackNumber::float64: return act(double{});
        case PackNumber::int32: return act(std::int32_t{});
        case PackNumber::int64: return act(std::int64_t{});
    }
}

// Rounds to a multiple of the quantum that `keep_bits` leave. Requires: the rounding mode is to nearest, ties to even.
template <std::floating_point Number>
Number with_bits(Number value, std::uint32_t keep_bits) {
    if (!std::isfinite(value) || value == 0) return value;
    const int most = std::numeric_limits<Number>::digits - 1, least = std::numeric_limits<Number>::min_exponent - 1;
    const int exponent = std::max(std::ilogb(value), least);
    if (static_cast<int>(keep_bits) >= most) return value;
    const int quantum = exponent - static_cast<int>(keep_bits);  // its logarithm
    return static_cast<Number>(std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum));
}

template <class Number>
Number combined_plainly(PackOperation operation, Number old, Number value) {
    if constexpr (std::floating_point<Number>) {
        if (operation == PackOperation::add) {
            return std::isnan(old + value) ? std::numeric_limits<Number>::quiet_NaN() : old + value;
        }
        if (operation != PackOperation::set && std::isnan(value) && !std::isnan(old)) return old;
        if (operation != PackOperation::set && std::isnan(old)) return value;
    } else if (operation == PackOperation::add) {
        return static_cast<Number>(static_cast<std::make_unsigned_t<Number>>(old) +
                                   static_cast<std::make_unsigned_t<Number>>(value));
    }
    if (operation == PackOperation::minimum) return std::min(old, value);
    if (operation == PackOperation::maximum) return std::max(old, value);
    return value;
}

// A pack whose pointers stand for offsets in two byte arrays.
struct ReferencePack {
    Pack pack;
    std::uint64_t to = 0, from = 0;

    Pack at(unsigned char* destination, const unsigned char* source) const {
        Pack placed = pack;
        placed.destination = destination + to;
        placed.source = source + from;
        return placed;
    }

    Box box() const {
        return {.item_bytes = bytes_of(pack.to), .dimensions = pack.dimensions, .extents = pack.extents};
    }

    template <class From, class To>
    To value(From number) const {
        if constexpr (std::floating_point<To>) {
            // Volatile: else clang multiplies by 1, too, which makes a signalling NaN quiet.
            const volatile To same = static_cast<To>(number);
            const To divided = pack.divisor == 1 ? same : static_cast<To>(static_cast<double>(number) / pack.divisor);
            return pack.keep_bits == 0 ? divided : with_bits(divided, pack.keep_bits);
        } else {
            return static_cast<To>(number);
        }
    }

    void run(Bytes& destination, const Bytes& source) const {
        const auto into = item_offsets(box(), pack.destination_strides), out = item_offsets(box(), pack.source_strides);
        with_number(pack.from, [&]<class From>(From) {
            with_number(pack.to, [&]<class To>(To) {
                for (std::size_t i = 0; i < into.size(); ++i) {
                    const std::int64_t at = static_cast<std::int64_t>(to) + into[i];
                    const auto number = number_at<From>(source, static_cast<std::int64_t>(from) + out[i]);
                    put_number(destination, at, combined_plainly(pack.operation, number_at<To>(destination, at),
                                                                 value<From, To>(number)));
                    const auto start = destination.begin() + at;
                    if (pack.swap) std::reverse(start, start + sizeof(To));
                }
            });
        });
    }
};

// A number of any size, exact multiples of halves, NaN, inf, zeros and bits of no meaning.
template <class Number>
Number random_number(std::mt19937_64& random) {
    const auto bits = static_cast<std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>>(random());
    if constexpr (std::floating_point<Number>) {
        constexpr Number kSpecial[] = {Number(0), -Number(0), std::numeric_limits<Number>::infinity(),
                                       -std::numeric_limits<Number>::infinity(),
                                       std::numeric_limits<Number>::quiet_NaN(), std::numeric_limits<Number>::max(),
                                       std::numeric_limits<Number>::denorm_min()};
        switch (random() % 16) {
            case 0: return std::bit_cast<Number>(bits);
            case 1: return kSpecial[random() % std::size(kSpecial)];
            case 2: return static_cast<Number>(std::ldexp(1.0 + static_cast<double>(random() % 64) / 64, 3));
            case 3: return static_cast<Number>(std::ldexp(1.0, static_cast<int>(random() % 300) - 160));
            default: return static_cast<Number>(static_cast<double>(static_cast<std::int64_t>(random())) / 1e15);
        }
    }
    return random() % 4 == 0 ? static_cast<Number>(random() % 5) : std::bit_cast<Number>(bits);
}

struct PackTrial {
    PackNumber from = PackNumber::float64, to = PackNumber::float32;
    PackOperation operation = PackOperation::set;
    std::uint64_t largest_extent = 5;
    std::uint32_t most_dimensions = 6;
    std::uint64_t alignment = 8;  // of gaps and offsets, in bytes
    int packs = 10;
    friend std::ostream& operator<<(std::ostream& out, const PackTrial& trial) {
        return out << "numbers " << static_cast<int>(trial.from) << " to " << static_cast<int>(trial.to)
                   << ", operation " << static_cast<int>(trial.operation) << ", extents to " << trial.largest_extent
                   << " in " << trial.most_dimensions << ", aligned to " << trial.alignment;
    }
};

inline Pack random_pack(std::mt19937_64& random, const PackTrial& trial) {
    Pack pack{.to = trial.to, .from = trial.from, .operation = trial.operation};
    const bool sets = trial.operation == PackOperation::set;
    pack.swap = sets && random() % 2 == 0;
    if (sets && random() % 2 == 0 && is_float(trial.to)) {
        pack.keep_bits = static_cast<std::uint32_t>(random() % (mantissa_bits(trial.to) + 1));
    }
    constexpr double kDivisors[] = {1, 0.1, -3, 1e-30, 1e300};
    if (is_float(trial.to)) pack.divisor = kDivisors[random() % std::size(kDivisors)];
    pack.dimensions = static_cast<std::uint32_t>(random() % (trial.most_dimensions + 1));
    for (std::uint32_t d = 0; d < pack.dimensions; ++d) {
        pack.extents[d] = random() % 40 == 0 ? 0 : 1 + random() % trial.largest_extent;
    }
    return pack;
}

// Packs that follow each other on both sides, and the bytes of both.
struct PackSet {
    std::vector<ReferencePack> packs;
    Bytes destination, source;
};

// Places a pack behind the others on both sides. Every fifth dimension repeats its source.
inline void place(std::mt19937_64& random, const PackTrial& trial, PackSet& set, const Pack& pack) {
    ReferencePack one{.pack = pack};
    Box box = one.box();
    const StridesExtent to = random_strides(random, box, trial.alignment, one.pack.destination_strides);
    box.item_bytes = bytes_of(pack.from);
    const StridesExtent from = random_strides(random, box, trial.alignment, one.pack.source_strides);
    for (std::uint32_t d = 0; d < pack.dimensions; ++d) {
        if (random() % 5 == 0 && one.pack.source_strides[d] > 0) one.pack.source_strides[d] = 0;
    }
    const std::uint64_t gap = random() % 3 * trial.alignment;
    one.to = set.destination.size() + gap + to.first;
    one.from = set.source.size() + gap + from.first;
    set.destination.resize(set.destination.size() + gap + to.bytes);
    set.source.resize(set.source.size() + gap + from.bytes);
    set.packs.push_back(one);
}

// Puts random numbers where the packs read and write.
inline void fill_numbers(std::mt19937_64& random, PackSet& set) {
    const auto fill = [&](PackNumber number, Bytes& bytes, std::uint64_t first,
                          const std::vector<std::int64_t>& offsets) {
        with_number(number, [&]<class Number>(Number) {
            for (const std::int64_t offset : offsets) {
                put_number(bytes, static_cast<std::int64_t>(first) + offset, random_number<Number>(random));
            }
        });
    };
    for (const ReferencePack& one : set.packs) {
        fill(one.pack.to, set.destination, one.to, item_offsets(one.box(), one.pack.destination_strides));
        fill(one.pack.from, set.source, one.from, item_offsets(one.box(), one.pack.source_strides));
    }
}

inline PackSet random_packs(std::mt19937_64& random, const PackTrial& trial) {
    PackSet set;
    const std::uint64_t skew = random() % 32 / trial.alignment * trial.alignment;
    set.destination.resize(skew);
    set.source.resize(skew);
    for (int i = 0; i < trial.packs; ++i) place(random, trial, set, random_pack(random, trial));
    for (unsigned char& byte : set.destination) byte = static_cast<unsigned char>(random());
    for (unsigned char& byte : set.source) byte = static_cast<unsigned char>(random());
    fill_numbers(random, set);
    std::shuffle(set.packs.begin(), set.packs.end(), random);
    return set;
}

// Calls `act` with a trial of each pair of numbers and each operation.
template <class Act>
void each_conversion(PackTrial trial, const Act& act) {
    constexpr PackNumber kNumbers[] = {PackNumber::float32, PackNumber::float64, PackNumber::int32, PackNumber::int64};
    for (const PackNumber from : kNumbers) {
        for (const PackNumber to : kNumbers) {
            if (!converts(from, to)) continue;
            for (const PackOperation operation :
                 {PackOperation::set, PackOperation::add, PackOperation::minimum, PackOperation::maximum}) {
                trial.from = from;
                trial.to = to;
                trial.operation = operation;
                act(trial);
            }
        }
    }
}

}  // namespace penstock::conformance
