// See pack_host.hpp. A row is packed in blocks that stay in the core's own cache, in steps that are plain loops, so
// that compilers make vector instructions of them: convert (and divide), round, deliver. A row that needs only one of
// the first and the last step goes straight to its destination. Where the source is contiguous along another dimension,
// a tile is converted in the order of the source and delivered in that of the destination.
#include "device/host/pack_host.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <type_traits>

#include "device/packs/pack_plan.hpp"

namespace penstock::device {
namespace {

constexpr std::uint64_t kBlock = 512;  // numbers
constexpr std::uint64_t kTileAlong = 128, kTileAcross = 64;
constexpr std::uint64_t kTilePitch = kTileAcross + 8;  // numbers; not a power of two, which would use few cache sets
constexpr std::uint64_t kFew = 8;                      // shorter rows are packed the other way

// A side of a row: the first number, and the bytes from one number to the next.
struct Side {
    std::byte* first;
    std::int64_t stride;
};
struct ConstSide {
    const std::byte* first;
    std::int64_t stride;
};

using Convert = void (*)(const ConstSide& from, std::byte* values, std::uint64_t count, double divisor);
using Round = void (*)(std::byte* values, std::uint64_t count, unsigned dropped);
using Deliver = void (*)(const Side& to, const std::byte* values, std::uint64_t count);

template <class Number>
Number read(const std::byte* from) {
    Number number;
    std::memcpy(&number, from, sizeof number);
    return number;
}
template <class Number>
void write(std::byte* to, Number number) {
    std::memcpy(to, &number, sizeof number);
}

// Calls `loop` with the stride, which is a constant where numbers are contiguous.
template <std::size_t kBytes, class Loop>
void with_stride(std::int64_t stride, const Loop& loop) {
    if (stride == static_cast<std::int64_t>(kBytes)) {
        loop(std::integral_constant<std::int64_t, kBytes>());
    } else {
        loop(stride);
    }
}

template <class From, class To, bool kDivided>
void convert(const ConstSide& side, std::byte* values, std::uint64_t count, double divisor) {
    const std::byte* __restrict from = side.first;
    std::byte* __restrict to = values;
    with_stride<sizeof(From)>(side.stride, [&](auto stride) {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
            const From number = read<From>(from + i * stride);
            if constexpr (kDivided) {
                write(to + i * static_cast<std::int64_t>(sizeof(To)),
                      static_cast<To>(static_cast<double>(number) / divisor));
            } else {
                write(to + i * static_cast<std::int64_t>(sizeof(To)), static_cast<To>(number));
            }
        }
    });
}

template <class Bits>
void round_values(std::byte* values, std::uint64_t count, unsigned dropped) {
    constexpr Bits kExponent = sizeof(Bits) == 4 ? static_cast<Bits>(0x7F800000u) : static_cast<Bits>(0x7FF0ull << 48);
    for (std::uint64_t i = 0; i < count; ++i) {
        std::byte* at = values + i * sizeof(Bits);
        write(at, rounded_bits<Bits>(read<Bits>(at), kExponent, dropped));
    }
}

struct Set {
    template <class Number>
    Number operator()(const std::byte*, Number value) const {
        return value;
    }
};
struct Swap {
    template <class Number>
    Number operator()(const std::byte*, Number value) const {
        if constexpr (sizeof(Number) == 4) return bits_as<Number>(__builtin_bswap32(bits_as<std::uint32_t>(value)));
        else return bits_as<Number>(__builtin_bswap64(bits_as<std::uint64_t>(value)));
    }
};
template <PackOperation kOperation>
struct Combine {
    template <class Number>
    Number operator()(const std::byte* old, Number value) const {
        return combined(kOperation, read<Number>(old), value);
    }
};

template <class Number, class Value>
void deliver(const Side& side, const std::byte* values, std::uint64_t count) {
    std::byte* __restrict to = side.first;
    const std::byte* __restrict from = values;
    with_stride<sizeof(Number)>(side.stride, [&](auto stride) {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
            std::byte* at = to + i * stride;
            write(at, Value()(at, read<Number>(from + i * static_cast<std::int64_t>(sizeof(Number)))));
        }
    });
}

// The steps of a pack.
struct Steps {
    Convert convert;
    Convert gather;  // takes converted values out of a tile
    Round round;     // nullptr: none
    Deliver deliver;
    bool only_converts, only_delivers;  // in rows that are contiguous, not in place
    unsigned dropped;
    double divisor;
    std::int64_t to_bytes, from_bytes;
};

template <class To>
Deliver deliver_for(const Pack& pack) noexcept {
    switch (pack.operation) {
        case PackOperation::add: return &deliver<To, Combine<PackOperation::add>>;
        case PackOperation::minimum: return &deliver<To, Combine<PackOperation::minimum>>;
        case PackOperation::maximum: return &deliver<To, Combine<PackOperation::maximum>>;
        case PackOperation::set: break;
    }
    if (pack.swap) return &deliver<To, Swap>;
    return &deliver<To, Set>;
}

struct ChooseSteps {
    const Pack& pack;
    Steps& steps;
    template <class From, class To>
    void run() const {
        steps.convert = &convert<From, To, false>;
        steps.gather = &convert<To, To, false>;
        steps.only_delivers = std::is_same_v<From, To> && pack.divisor == 1;
        if constexpr (std::is_floating_point_v<To>) {
            using Bits = std::conditional_t<sizeof(To) == 4, std::uint32_t, std::uint64_t>;
            if (pack.divisor != 1) steps.convert = &convert<From, To, true>;
            if (steps.dropped != 0) steps.round = &round_values<Bits>;
        }
        steps.deliver = deliver_for<To>(pack);
        steps.to_bytes = sizeof(To);
        steps.from_bytes = sizeof(From);
    }
};

Steps steps_of(const Pack& pack) noexcept {
    Steps steps{};
    steps.divisor = pack.divisor;
    if (pack.keep_bits != 0) steps.dropped = mantissa_bits(pack.to) - pack.keep_bits;
    with_numbers(pack.from, pack.to, ChooseSteps{pack, steps});
    const bool apart = pack.source != pack.destination && steps.round == nullptr;
    steps.only_converts = apart && pack.operation == PackOperation::set && !pack.swap;
    steps.only_delivers = apart && steps.only_delivers;
    return steps;
}

void pack_row(const Steps& steps, const Side& to, const ConstSide& from, std::uint64_t count) noexcept {
    if (steps.only_converts && to.stride == steps.to_bytes) {
        return steps.convert(from, to.first, count, steps.divisor);
    }
    if (steps.only_delivers && from.stride == steps.from_bytes) return steps.deliver(to, from.first, count);
    alignas(64) std::array<std::byte, kBlock * 8> values;
    for (std::uint64_t done = 0; done < count; done += kBlock) {
        const std::uint64_t numbers = std::min(kBlock, count - done);
        const auto places = static_cast<std::int64_t>(done);
        steps.convert({from.first + places * from.stride, from.stride}, values.data(), numbers, steps.divisor);
        if (steps.round != nullptr) steps.round(values.data(), numbers, steps.dropped);
        steps.deliver({to.first + places * to.stride, to.stride}, values.data(), numbers);
    }
}

// The two innermost dimensions of a transposed pack: `along` is that of the destination, `across` that of the source.
struct Plane {
    std::uint64_t along, across;
    std::int64_t to_along, to_across, from_along, from_across;

    Side to(std::byte* first, std::uint64_t i, std::uint64_t j, std::int64_t stride) const noexcept {
        return {first + static_cast<std::int64_t>(i) * to_along + static_cast<std::int64_t>(j) * to_across, stride};
    }
    ConstSide from(const std::byte* first, std::uint64_t i, std::uint64_t j) const noexcept {
        return {first + static_cast<std::int64_t>(i) * from_along + static_cast<std::int64_t>(j) * from_across,
                from_across};
    }
};

// Packs rows along, because those across the source are short.
void pack_few_rows(const Steps& steps, const Plane& plane, std::byte* to, const std::byte* from) noexcept {
    for (std::uint64_t i = 0; i < plane.along; i += kBlock) {
        for (std::uint64_t j = 0; j < plane.across; ++j) {
            const ConstSide start = plane.from(from, i, j);
            pack_row(steps, plane.to(to, i, j, plane.to_along), {start.first, plane.from_along},
                     std::min(kBlock, plane.along - i));
        }
    }
}

// Packs rows across, because those along the destination are short. Their numbers meet in the cache.
void pack_short_rows(const Steps& steps, const Plane& plane, std::byte* to, const std::byte* from) noexcept {
    for (std::uint64_t j = 0; j < plane.across; j += kBlock) {
        for (std::uint64_t i = 0; i < plane.along; ++i) {
            pack_row(steps, plane.to(to, i, j, plane.to_across), plane.from(from, i, j),
                     std::min(kBlock, plane.across - j));
        }
    }
}

void pack_tiles(const Steps& steps, const Plane& plane, std::byte* to, const std::byte* from) noexcept {
    alignas(64) std::array<std::byte, kTileAlong * kTilePitch * 8> tile;
    alignas(64) std::array<std::byte, kTileAlong * 8> values;
    const auto pitch = static_cast<std::int64_t>(kTilePitch) * steps.to_bytes;
    for (std::uint64_t j = 0; j < plane.across; j += kTileAcross) {
        const std::uint64_t columns = std::min(kTileAcross, plane.across - j);
        for (std::uint64_t i = 0; i < plane.along; i += kTileAlong) {
            const std::uint64_t rows = std::min(kTileAlong, plane.along - i);
            for (std::uint64_t r = 0; r < rows; ++r) {
                steps.convert(plane.from(from, i + r, j), tile.data() + static_cast<std::int64_t>(r) * pitch, columns,
                              steps.divisor);
            }
            for (std::uint64_t c = 0; c < columns; ++c) {
                steps.gather({tile.data() + static_cast<std::int64_t>(c) * steps.to_bytes, pitch}, values.data(), rows,
                             1);
                if (steps.round != nullptr) steps.round(values.data(), rows, steps.dropped);
                steps.deliver(plane.to(to, i, j + c, plane.to_along), values.data(), rows);
            }
        }
    }
}

// One pack under way.
class HostPack {
  public:
    explicit HostPack(const Pack& pack) noexcept
        : pack_(pack), steps_(steps_of(pack)), across_(transposed_dimension(pack)) {}

    void run() const noexcept {
        walk(0, static_cast<std::byte*>(pack_.destination), static_cast<const std::byte*>(pack_.source));
    }

  private:
    std::uint32_t last() const noexcept { return pack_.dimensions - 1; }

    void plane(std::byte* to, const std::byte* from) const noexcept {
        const Plane plane{pack_.extents[last()],
                          pack_.extents[*across_],
                          pack_.destination_strides[last()],
                          pack_.destination_strides[*across_],
                          pack_.source_strides[last()],
                          pack_.source_strides[*across_]};
        if (plane.across < kFew) return pack_few_rows(steps_, plane, to, from);
        if (plane.along < kFew) return pack_short_rows(steps_, plane, to, from);
        pack_tiles(steps_, plane, to, from);
    }

    void walk(std::uint32_t dimension, std::byte* to, const std::byte* from) const noexcept {
        if (pack_.dimensions == 0) return pack_row(steps_, {to, 0}, {from, 0}, 1);
        if (dimension == last()) {
            if (across_) return plane(to, from);
            return pack_row(steps_, {to, pack_.destination_strides[last()]}, {from, pack_.source_strides[last()]},
                            pack_.extents[last()]);
        }
        if (dimension == across_) return walk(dimension + 1, to, from);
        for (std::uint64_t i = 0; i < pack_.extents[dimension]; ++i) {
            const auto places = static_cast<std::int64_t>(i);
            walk(dimension + 1, to + places * pack_.destination_strides[dimension],
                 from + places * pack_.source_strides[dimension]);
        }
    }

    const Pack& pack_;
    Steps steps_;
    std::optional<std::uint32_t> across_;
};

}  // namespace

void pack_on_host(const Pack& pack) noexcept { HostPack(pack).run(); }

}  // namespace penstock::device
