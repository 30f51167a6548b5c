// See compression.hpp.
#include "history/compression.hpp"

#include <algorithm>
#include <array>

#include "data/encode/encoder.hpp"
#include "formats/faults.hpp"

namespace penstock::history {
namespace {

struct KnownCompression {
    const char* name;
    const char* filter;
    const char* zarr_filter;
    std::uint32_t usual_level;  // 0: it has no levels
    std::uint32_t most_level;
};
constexpr std::array<KnownCompression, 5> kCompressions{{{"gzip", "deflate", "gzip", 4, 9},
                                                         {"deflate", "deflate", "gzip", 4, 9},
                                                         {"zlib", "deflate", "gzip", 4, 9},
                                                         {"zstd", "zstd", "zstd", 3, 22},
                                                         {"lz4", "hdf5-lz4", "lz4", 0, 0}}};

[[noreturn]] void refuse_compression(const std::string& what, std::string cause, std::string advice) {
    throw Error(ErrorCode::invalid_argument, "compress " + what, std::move(cause), std::move(advice));
}

const KnownCompression& compression_named(const std::string& what, const std::string& name) {
    const auto found = std::find_if(kCompressions.begin(), kCompressions.end(),
                                    [&](const KnownCompression& one) { return name == one.name; });
    if (found != kCompressions.end()) return *found;
    refuse_compression(what, "there is no compression " + formats::shown(name), "use one of gzip, zstd, lz4, or none");
}

std::uint32_t level_within(const std::string& what, const KnownCompression& known, std::uint32_t level) {
    if (level == 0) return known.usual_level;
    if (level <= known.most_level) return level;
    const std::string cause = std::string(known.name) + " has no level " + std::to_string(level);
    refuse_compression(
        what, cause,
        known.most_level == 0 ? "leave the level out" : "give one of 1 to " + std::to_string(known.most_level));
}

}  // namespace

std::vector<data::Filter> filters_of(const std::string& what, const HistoryCompression& compression,
                                     const HistoryOptions& options, std::uint32_t item_bytes) {
    if (compression.name.empty() || compression.name == "none") return {};
    const KnownCompression& known = compression_named(what, compression.name);
    const std::uint32_t level = level_within(what, known, compression.level);
    const bool is_zarr = options.format == "zarr";
    if (options.format != "netcdf4" && options.format != "hdf5" && !is_zarr) {
        refuse_compression(what, "the format " + formats::shown(options.format) + " stores no compressed data",
                           "use the format netcdf4, hdf5 or zarr");
    }
    if (options.processes > 1 && !is_zarr) {
        refuse_compression(what, "several processes write the file, and none knows where the data of another end",
                           "use the format zarr; or give each process a file of its own, as history.pe000000.nc, "
                           "which open as one; or compress nothing");
    }
    std::vector<data::Filter> filters;
    if (compression.shuffle && item_bytes > 1) filters.push_back({"shuffle", {item_bytes}});
    filters.push_back({is_zarr ? known.zarr_filter : known.filter, level == 0 ? data::Values{} : data::Values{level}});
    static_cast<void>(data::Encoder(filters, item_bytes));  // throws where this build lacks the library
    return filters;
}

std::vector<std::uint64_t> usual_chunk(std::span<const std::uint64_t> shape, std::uint64_t item_bytes) {
    std::vector<std::uint64_t> chunk(shape.begin(), shape.end());
    std::uint64_t bytes = item_bytes;
    for (const std::uint64_t extent : shape) bytes *= extent;
    for (std::uint64_t& extent : chunk) {
        if (bytes <= kUsualChunkBytes) break;
        const std::uint64_t one = bytes / extent;  // of the dimensions behind it
        const std::uint64_t most = std::max<std::uint64_t>(1, kUsualChunkBytes / one);
        const std::uint64_t parts = (extent + most - 1) / most;
        extent = (extent + parts - 1) / parts;
        bytes = one * extent;
    }
    return chunk;
}

namespace {

// As the caller gave them, in the order of the file.
std::vector<std::uint64_t> given_chunk(const std::string& what, const HistoryVariable& given, const VariableBox& box,
                                       std::span<const std::uint64_t> block) {
    if (given.chunk_shape.size() != box.order.size()) {
        const std::string lengths = std::to_string(given.chunk_shape.size()) + " lengths of chunks";
        refuse_compression(what, "it has " + std::to_string(box.order.size()) + " dimensions and " + lengths,
                           "give one for each dimension");
    }
    std::vector<std::uint64_t> chunk;
    for (std::size_t axis = 0; axis < box.order.size(); ++axis) {
        const std::uint64_t length = given.chunk_shape[box.order[axis]];
        chunk.push_back(length);
        if (length == 0 || block[axis] == box.whole[axis] || block[axis] % length == 0) continue;
        const std::string along = std::to_string(block[axis]) + " along " + formats::shown(box.names[axis]);
        refuse_compression(what,
                           "boxes of all processes begin and end at multiples of " + along + ", and chunks of " +
                               std::to_string(length) + " do not",
                           "give chunks that divide it, or no chunk_shape");
    }
    return chunk;
}

}  // namespace

void add_compression(formats::NewVariable& made, const HistoryVariable& given, const HistoryOptions& options,
                     const VariableBox& box) {
    const std::string what = "variable " + formats::shown(given.name);
    const std::vector<std::uint64_t>& block = made.block.empty() ? box.whole : made.block;
    made.filters = filters_of(what, given.compression.value_or(options.compression), options, made.type.item_bytes);
    if (given.shape.empty()) made.filters.clear();  // one element of a step becomes no smaller
    if (!made.filters.empty() && !given.global_shape.empty() && options.processes == 1) {
        refuse_compression(what, "this process has a part of its elements, and chunks are made of all",
                           "give all of global_shape, or compress nothing");
    }
    if (!given.chunk_shape.empty()) {
        made.chunk = given_chunk(what, given, box, block);
    } else if (!made.filters.empty()) {
        made.chunk = chunk_within(usual_chunk(block, made.type.item_bytes), block, box.whole);
    }
}

}  // namespace penstock::history
