// See pack_plan.hpp.
#include "device/packs/pack_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

#include "device/boxes/box_plan.hpp"
#include "penstock/box.hpp"
#include "penstock/error.hpp"

namespace penstock::device {
namespace {

constexpr unsigned kRunAlignment = 16;
constexpr std::uint64_t kLongRuns = 64;   // numbers of a row that are worth a second work for its end
constexpr std::uint32_t kTileEdge = 32;   // numbers: whole cache lines on both sides

[[noreturn]] void refuse(std::size_t index, const std::string& cause, const std::string& advice = {}) {
    throw Error(ErrorCode::invalid_argument, "pack", "pack " + std::to_string(index) + ": " + cause, advice);
}

void check_numbers(const Pack& pack, std::size_t index) {
    if (pack.to > PackNumber::int64 || pack.from > PackNumber::int64) refuse(index, "an unknown kind of numbers");
    if (!converts(pack.from, pack.to)) {
        refuse(index, "floats do not become integers, nor integers narrower ones",
               "convert them in a kernel that knows what to do with values that do not fit");
    }
    if (!std::isfinite(pack.divisor) || pack.divisor == 0) {
        refuse(index, "a divisor of " + std::to_string(pack.divisor), "give a finite number other than 0");
    }
    if (pack.divisor != 1 && !is_float(pack.to)) {
        refuse(index, "integers are not divided", "make them floats, or leave the divisor at 1");
    }
}

void check_operation(const Pack& pack, std::size_t index) {
    if (pack.operation > PackOperation::maximum) refuse(index, "an unknown operation");
    const bool sets = pack.operation == PackOperation::set;
    if (pack.swap && !sets) {
        refuse(index, "a destination in the other byte order is set only", "combine in this byte order, then swap");
    }
    if (pack.keep_bits == 0) return;
    if (!sets) refuse(index, "bits are dropped from what is set only", "combine whole numbers, then drop bits");
    if (pack.keep_bits > mantissa_bits(pack.to)) {
        refuse(index, std::to_string(pack.keep_bits) + " bits of a mantissa of " +
                          std::to_string(mantissa_bits(pack.to)),
               "keep fewer, or 0 for all");
    }
}

void check_dimensions(const Pack& pack, std::size_t index) {
    if (pack.dimensions <= kPackDimensions) return;
    refuse(index, std::to_string(pack.dimensions) + " dimensions; the limit is " + std::to_string(kPackDimensions));
}

// Takes the dimensions of a box of the same grid. Its item may be a row of numbers that are contiguous on both sides.
Pack with_dimensions(Pack pack, const Box& box) {
    const auto bytes = static_cast<std::int64_t>(bytes_of(pack.to));
    pack.destination = box.destination;
    pack.source = box.source;
    pack.dimensions = box.dimensions;
    pack.extents = box.extents;
    pack.destination_strides = box.destination_strides;
    pack.source_strides = box.source_strides;
    if (box.item_bytes == bytes_of(pack.to)) return pack;
    pack.extents[pack.dimensions] = box.item_bytes / bytes_of(pack.to);
    pack.destination_strides[pack.dimensions] = pack.source_strides[pack.dimensions] = bytes;
    ++pack.dimensions;
    return pack;
}

void simplify(const Pack& pack, std::size_t index, std::vector<Pack>& all) {
    check_dimensions(pack, index);
    check_numbers(pack, index);
    check_operation(pack, index);
    static_assert(kPackDimensions == kBoxDimensions, "a pack has the dimensions of a box");
    const Box box{.destination = pack.destination,
                  .source = pack.source,
                  .item_bytes = bytes_of(pack.to),
                  .dimensions = pack.dimensions,
                  .extents = pack.extents,
                  .destination_strides = pack.destination_strides,
                  .source_strides = pack.source_strides};
    static_cast<void>(byte_span(bytes_of(pack.from), {pack.extents.data(), pack.dimensions},
                                {pack.source_strides.data(), pack.dimensions}));
    simplify_box(box, [&](const Box& simple) {
        if (simple.source == nullptr) refuse(index, "the source is null");
        all.push_back(with_dimensions(pack, simple));
    });
}

std::uint64_t length(std::int64_t stride) noexcept {
    const auto bits = static_cast<std::uint64_t>(stride);
    return stride < 0 ? ~bits + 1 : bits;
}

PackWork begin_work(const Pack& pack, PackPiece piece) {
    PackWork work{};
    work.grid.to = static_cast<unsigned char*>(pack.destination);
    work.grid.from = static_cast<const unsigned char*>(pack.source);
    work.divisor = pack.divisor;
    work.kind = {pack.to, pack.from, piece};
    work.operation = pack.operation;
    work.swap = pack.swap;
    if (pack.keep_bits != 0) work.dropped_bits = static_cast<std::uint8_t>(mantissa_bits(pack.to) - pack.keep_bits);
    const auto access = [&](const void* first, const auto& strides, PackNumber number) {
        const std::uint64_t aligned = common_alignment(first, {strides.data(), pack.dimensions});
        return static_cast<std::uint8_t>(std::min(aligned, bytes_of(number)));
    };
    work.to_access = access(pack.destination, pack.destination_strides, pack.to);
    work.from_access = access(pack.source, pack.source_strides, pack.from);
    return work;
}

// Whether rows begin where runs are aligned on both sides, and are contiguous there.
bool has_runs(const Pack& pack) {
    if (pack.dimensions == 0) return false;
    const std::uint32_t last = pack.dimensions - 1;
    const auto contiguous = [&](const auto& strides, PackNumber number) {
        return strides[last] == static_cast<std::int64_t>(bytes_of(number));
    };
    return contiguous(pack.destination_strides, pack.to) && contiguous(pack.source_strides, pack.from) &&
           common_alignment(pack.destination, {pack.destination_strides.data(), last}) == kRunAlignment &&
           common_alignment(pack.source, {pack.source_strides.data(), last}) == kRunAlignment;
}

void plan_in_order(const Pack& pack, PackPiece piece, std::vector<PackWork>& works) {
    PackWork work = begin_work(pack, piece);
    const std::uint64_t numbers = piece == PackPiece::run ? kRun : 1;
    if (pack.dimensions == 0) add_dimension(work.grid, 1, 0, 0);
    for (std::uint32_t d = pack.dimensions; d-- > 0;) {
        const auto step = static_cast<std::int64_t>(d + 1 == pack.dimensions ? numbers : 1);
        add_dimension(work.grid, pack.extents[d] / static_cast<std::uint64_t>(step),
                      pack.destination_strides[d] * step, pack.source_strides[d] * step);
    }
    finish_grid(work.grid);
    works.push_back(work);
}

void plan_runs(const Pack& pack, std::vector<PackWork>& works) {
    const std::uint32_t last = pack.dimensions - 1;
    Pack runs = pack, rest = pack;
    rest.extents[last] = pack.extents[last] % kRun;
    const std::uint64_t in_runs = runs.extents[last] -= rest.extents[last];
    plan_in_order(runs, PackPiece::run, works);
    if (rest.extents[last] == 0) return;
    rest.destination = static_cast<std::byte*>(rest.destination) + in_runs * bytes_of(pack.to);
    rest.source = static_cast<const std::byte*>(rest.source) + in_runs * bytes_of(pack.from);
    plan_in_order(rest, PackPiece::number, works);
}

// Sets the edges of a tile: 32 numbers each, or fewer one way and more the other.
void set_edges(PackTile& tile) noexcept {
    const auto bits = [](std::uint64_t extent) {
        return static_cast<std::uint8_t>(std::countr_zero(std::bit_ceil(std::min<std::uint64_t>(extent, kTileEdge))));
    };
    constexpr unsigned kTileBits = std::countr_zero(kTileNumbers);
    tile.along_bits = bits(tile.along);
    tile.across_bits = bits(tile.across);
    if (tile.along_bits < tile.across_bits) {
        tile.across_bits = static_cast<std::uint8_t>(kTileBits - tile.along_bits);
    } else {
        tile.along_bits = static_cast<std::uint8_t>(kTileBits - tile.across_bits);
    }
    const unsigned across = 1u << tile.across_bits;
    tile.pitch = static_cast<std::uint16_t>((1u << tile.along_bits) + std::max(1u, kTileEdge / across));
}

void plan_tiles(const Pack& pack, std::uint32_t across, std::vector<PackWork>& works) {
    PackWork work = begin_work(pack, PackPiece::tile);
    const std::uint32_t along = pack.dimensions - 1;
    PackTile& tile = work.tile;
    tile = {.along = pack.extents[along],
            .across = pack.extents[across],
            .to_along = pack.destination_strides[along],
            .to_across = pack.destination_strides[across],
            .from_along = pack.source_strides[along],
            .from_across = pack.source_strides[across],
            .along_bits = 0,
            .across_bits = 0,
            .pitch = 0};
    set_edges(tile);
    const auto add_tiles = [&](std::uint64_t extent, unsigned bits, std::int64_t to, std::int64_t from) {
        const std::uint64_t edge = std::uint64_t{1} << bits;
        const std::uint64_t tiles = (extent - 1) / edge + 1;
        const auto step = tiles == 1 ? 0 : static_cast<std::int64_t>(edge);  // a stride that is not taken may be large
        add_dimension(work.grid, tiles, to * step, from * step);
    };
    add_tiles(tile.along, tile.along_bits, tile.to_along, tile.from_along);
    add_tiles(tile.across, tile.across_bits, tile.to_across, tile.from_across);
    for (std::uint32_t d = pack.dimensions - 1; d-- > 0;) {
        if (d == across) continue;
        add_dimension(work.grid, pack.extents[d], pack.destination_strides[d], pack.source_strides[d]);
    }
    finish_grid(work.grid);
    works.push_back(work);
}

}  // namespace

std::vector<Pack> simplified(std::span<const Pack> packs) {
    std::vector<Pack> all;
    all.reserve(packs.size());
    for (std::size_t i = 0; i < packs.size(); ++i) simplify(packs[i], i, all);
    return all;
}

std::optional<std::uint32_t> transposed_dimension(const Pack& pack) noexcept {
    if (pack.dimensions < 2) return std::nullopt;
    const std::uint32_t last = pack.dimensions - 1;
    std::uint32_t nearest = last;
    for (std::uint32_t d = 0; d < last; ++d) {
        const std::int64_t stride = pack.source_strides[d];
        if (stride != 0 && length(stride) < length(pack.source_strides[nearest])) nearest = d;
    }
    if (nearest == last) return std::nullopt;
    return nearest;
}

void plan_pack(const Pack& pack, std::vector<PackWork>& works) {
    if (const auto across = transposed_dimension(pack)) return plan_tiles(pack, *across, works);
    const bool runs = has_runs(pack);
    const std::uint64_t row = runs ? pack.extents[pack.dimensions - 1] : 0;
    if (runs && (row % kRun == 0 || row >= kLongRuns)) return plan_runs(pack, works);
    plan_in_order(pack, PackPiece::number, works);
}

std::uint64_t units_of(const PackWork& work) noexcept {
    if (work.kind.piece == PackPiece::tile) return work.grid.pieces;
    constexpr std::uint64_t kPieces = std::uint64_t{kPiecesPerUnit} * kPackWarps;
    return (work.grid.pieces + kPieces - 1) / kPieces;
}

}  // namespace penstock::device
