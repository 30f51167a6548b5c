// See pipeline.hpp.
#include "data/decode/pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>

#include "data/decode/makers.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kMostFilters = 32;  // bits of a mask; HDF5 allows as many

struct Maker {
    const char* name;
    StagePtr (*make)(const Values&);
};
constexpr Maker kMakers[] = {
    {"shuffle", &make_shuffle},       {"fletcher32", &make_fletcher32}, {"deflate", &make_deflate},
    {"zlib", &make_zlib},             {"gzip", &make_gzip},             {"zstd", &make_zstd},
    {"hdf5-lz4", &make_hdf5_lz4},     {"lz4", &make_sized_lz4},         {"bz2", &make_bz2},
    {"lzf", &make_lzf},               {"bitshuffle", &make_bitshuffle}, {"blosc", &make_blosc},
    {"crc32c", &make_crc32c},         {"scaleoffset", &make_scale_offset}, {"nbit", &make_nbit},
    {"odd-integers", &make_odd_integers}, {"szip", &make_szip},
    {"blosc2", &make_blosc2},         {"adler32", &make_adler32},       {"crc32", &make_crc32},
    {"delta", &make_delta},
};

StagePtr make_stage(const Filter& filter) {
    const auto* maker = std::find_if(std::begin(kMakers), std::end(kMakers),
                                     [&](const Maker& one) { return filter.name == one.name; });
    if (maker != std::end(kMakers)) return maker->make(filter.values);
    throw Error(ErrorCode::unsupported, "decode chunks", "there is no decoder for the filter " + filter.name,
                "let the format's own library decode them");
}

std::uint64_t product(std::uint64_t one, std::uint64_t other) {
    std::uint64_t both = 0;
    return __builtin_mul_overflow(one, other, &both) ? kAnyRatio : both;
}

// Whether a stage gave a part of what it was given, as a checksum does, and wrote no bytes of its own.
bool gives_part_of(std::span<const std::byte> given, std::span<const std::byte> bytes) {
    const std::less_equal<const std::byte*> before;
    return before(given.data(), bytes.data()) && before(bytes.data() + bytes.size(), given.data() + given.size());
}

}  // namespace

std::vector<std::string> filter_names() {
    std::vector<std::string> names;
    for (const Maker& maker : kMakers) names.emplace_back(maker.name);
    return names;
}

std::span<std::byte> Scratch::room(std::size_t which, std::uint64_t bytes) {
    Room& room = rooms[which];
    if (room.size < bytes) {
        room.size = 0;
        room.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
        room.size = bytes;
    }
    return {room.bytes.get(), bytes};
}

Pipeline::Pipeline(std::span<const Filter> filters, std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {
    if (filters.size() > kMostFilters || chunk_bytes > kMostChunkBytes) {
        throw Error(ErrorCode::unsupported, "decode chunks",
                    std::to_string(filters.size()) + " filters, chunks of " + std::to_string(chunk_bytes) + " bytes",
                    "at most 32 filters and chunks of 1 TiB can be decoded");
    }
    for (const Filter& filter : filters) filters_.push_back({filter.name, make_stage(filter)});
}

std::vector<Pipeline::Applied> Pipeline::applied_to(std::uint32_t skipped) const {
    std::vector<Applied> applied;
    std::uint64_t bytes = chunk_bytes_;
    bool exact = true;
    for (std::size_t i = 0; i < filters_.size(); ++i) {
        if ((skipped >> i & 1) != 0) continue;
        applied.push_back({i, bytes, exact});
        bytes = filters_[i].stage->stored_bytes(bytes);
        exact = exact && filters_[i].stage->keeps_size();
    }
    return applied;
}

std::string Pipeline::decode(const StoredStream& stored, std::span<std::byte> out, Scratch& scratch) const {
    const std::vector<Applied> applied = applied_to(stored.skipped);
    std::uint64_t ratio = 1;
    for (const Applied& one : applied) ratio = product(ratio, filters_[one.filter].stage->most_ratio());
    const std::uint64_t most = product(stored.bytes.size(), ratio);
    if (most < chunk_bytes_ && chunk_bytes_ - most > kSlackBytes) {
        return std::to_string(stored.bytes.size()) + " bytes cannot become the " + std::to_string(chunk_bytes_) +
               " bytes of a chunk";
    }
    scratch.states.resize(filters_.size());
    return undo_all(applied, stored, out.first(chunk_bytes_), scratch);
}

std::string Pipeline::undo_all(std::span<const Applied> applied, const StoredStream& stored,
                               std::span<std::byte> out, Scratch& scratch) const {
    std::span<const std::byte> bytes = stored.bytes;
    bool padded = stored.padded;
    std::size_t turn = 0;  // the room that does not have `bytes`
    for (std::size_t left = applied.size(); left-- > 0;) {
        const Applied& step = applied[left];
        const Named& filter = filters_[step.filter];
        std::unique_ptr<StageState>& state = scratch.states[step.filter];
        if (state == nullptr) state = filter.stage->make_state();
        const std::span<std::byte> room = left == 0 ? out : scratch.room(turn, step.plain);
        const Undone undone = padded ? filter.stage->undo_padded(bytes, room, state.get())
                                     : filter.stage->undo(bytes, room, state.get());
        if (!undone.fault.empty()) return "filter " + filter.name + ": " + undone.fault;
        const bool is_part = gives_part_of(bytes, undone.bytes);
        if (!is_part) turn = 1 - turn;
        padded = padded && is_part;
        bytes = undone.bytes;
        if (bytes.size() > step.plain || (step.exact && bytes.size() != step.plain)) {
            return "filter " + filter.name + " gave " + std::to_string(bytes.size()) + " bytes, its shape says " +
                   std::to_string(step.plain);
        }
    }
    if (bytes.size() != out.size()) {
        return "it has " + std::to_string(bytes.size()) + " bytes, its shape says " + std::to_string(out.size());
    }
    if (!out.empty() && bytes.data() != out.data()) std::memcpy(out.data(), bytes.data(), out.size());
    return {};
}

}  // namespace penstock::data
