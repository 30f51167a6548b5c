// See encoder.hpp.
#include "data/encode/encoder.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "data/encode/codecs/fast_deflate.hpp"
#include "penstock/error.hpp"
#include "penstock/types.hpp"

namespace penstock::data {
namespace {

constexpr const char* kEncode = "encode chunks";
constexpr std::uint32_t kLeastLevel = 1;

struct StepMaker {
    const char* name;
    EncodeStepPtr (*make)(const Values&);
    std::uint64_t bytes_of_thread = 1 * kMiB;  // see Encoder::bytes_of_thread
    std::string_view library = "";             // empty: Penstock's own code
};
constexpr std::string_view kDeflating = "libdeflate";
constexpr StepMaker kStepMakers[] = {
    {"shuffle", &make_shuffling},
    {"fletcher32", &make_fletcher32_behind},
    {"crc32c", &make_crc32c_behind},
    {"deflate", &make_deflating, 64 * kKiB, kDeflating},
    {"zlib", &make_deflating, 64 * kKiB, kDeflating},
    {"gzip", &make_gzipping, 64 * kKiB, kDeflating},
    {"zstd", &make_zstandard, 128 * kKiB, "libzstd"},
    {"hdf5-lz4", &make_hdf5_lz4_blocks, 256 * kKiB, "liblz4"},
    {"lz4", &make_lz4_behind_size, 256 * kKiB, "liblz4"},
};

const StepMaker& maker_of(const Filter& filter) {
    const auto* maker = std::find_if(std::begin(kStepMakers), std::end(kStepMakers),
                                     [&](const StepMaker& one) { return filter.name == one.name; });
    if (maker != std::end(kStepMakers)) return *maker;
    throw Error(ErrorCode::unsupported, kEncode, "there is no encoder for the filter " + filter.name,
                "let the format's own library encode them");
}

bool is_there(const StepMaker& maker) {
    try {
        return maker.make({kLeastLevel}) != nullptr;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

std::vector<std::string> encoder_names() {
    std::vector<std::string> names;
    for (const StepMaker& maker : kStepMakers) {
        if (is_there(maker)) names.emplace_back(maker.name);
    }
    return names;
}

std::string encoder_library(const Filter& filter) {
    const StepMaker& maker = maker_of(filter);
    const bool is_fast = maker.library == kDeflating && !filter.values.empty() && filter.values[0] == kFastLevel;
    return (is_fast && make_fast_deflate() ? "ISA-L and " : "") + std::string(maker.library);
}

int level_of(const char* filter, const Values& values, int most) {
    const std::uint32_t level = values.empty() ? 0 : values[0];
    if (level >= kLeastLevel && level <= static_cast<std::uint32_t>(most)) return static_cast<int>(level);
    throw Error(ErrorCode::invalid_argument, kEncode, std::string(filter) + " has no level " + std::to_string(level),
                "give one of 1 to " + std::to_string(most));
}

Encoder::Encoder(std::span<const Filter> filters, std::uint64_t chunk_bytes)
    : chunk_bytes_(chunk_bytes), most_bytes_(chunk_bytes), bytes_of_thread_(1 * kMiB) {
    if (chunk_bytes > kMostChunkBytes) {
        throw Error(ErrorCode::unsupported, kEncode, "chunks of " + std::to_string(chunk_bytes) + " bytes",
                    "chunks of at most 1 TiB can be encoded");
    }
    for (const Filter& filter : filters) {
        const StepMaker& maker = maker_of(filter);
        EncodeStepPtr step = maker.make(filter.values);
        most_bytes_ = step->most_bytes(most_bytes_);
        bytes_of_thread_ = std::min(bytes_of_thread_, maker.bytes_of_thread);
        steps_.push_back({filter.name, std::move(step), most_bytes_});
    }
}

Encoded Encoder::encode(std::span<const std::byte> plain, std::span<std::byte> room, Scratch& scratch) const {
    scratch.states.resize(steps_.size());
    std::span<const std::byte> bytes = plain;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const NamedStep& one = steps_[i];
        std::unique_ptr<StageState>& state = scratch.states[i];
        if (state == nullptr) state = one.step->make_state();
        const std::span<std::byte> to = i + 1 == steps_.size() ? room : scratch.room(i % 2, one.most_bytes);
        Encoded encoded = one.step->apply(bytes, to, state.get());
        if (!encoded.fault.empty()) return {0, "filter " + one.name + ": " + encoded.fault};
        bytes = to.first(encoded.bytes);
    }
    if (steps_.empty()) std::copy(plain.begin(), plain.end(), room.begin());
    return {bytes.size()};
}

}  // namespace penstock::data
