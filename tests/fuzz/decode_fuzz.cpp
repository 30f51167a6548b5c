// Pipelines of any filters on any bytes: a chunk is decoded or a fault is told, nothing behind it is written, and the
// same bytes give the same chunk. The first byte chooses the filters, the second the element, the next two the bytes of
// the chunk, and one those filters that were skipped; the rest is stored.
#include <algorithm>
#include <vector>

#include "data/decode/pipeline.hpp"
#include "input.hpp"
#include "penstock/error.hpp"

namespace {

using penstock::data::Filter;
using penstock::data::Values;

constexpr std::size_t kGuard = 64;
constexpr std::uint32_t kCodecs = 32;  // that a byte tells apart
constexpr std::byte kUntouched{0xa5};

struct Choice {
    std::uint32_t codec, item, chunk_bytes;
};

// Of filters that know the numbers they pack: a type and how it is packed.
Values packed_values(const std::string& codec, const Choice& choice) {
    const std::uint32_t bytes = 1u << choice.item % 4, count = choice.chunk_bytes / bytes, big = choice.item >> 3 & 1;
    const std::uint32_t is_float = bytes >= 4 ? choice.item >> 2 & 1 : 0, more = choice.item >> 4 & 1;
    const std::uint32_t bits = 1 + (choice.codec / kCodecs * 8 + choice.item / 32) % (8 * bytes);
    if (codec == "szip") {
        constexpr std::uint32_t kPixelBits[] = {8, 16, 12, 32};
        const std::uint32_t line = 1 + (choice.chunk_bytes + 1999) % 2000;
        return {16 * big + 32 * more, 8 * bytes, kPixelBits[choice.item / 32 % 4], line};
    }
    if (codec == "odd-integers") return {bytes, big, bits, 0, more};
    if (codec == "nbit" && more != 0) return {12, 0, count, 2, bytes, 3, bytes, 1, 0, 1, bytes, big};
    if (codec == "nbit") return {8, 0, count, 1, bytes, big, bits, 8 * bytes - bits};
    Values values{is_float != 0 ? 0u : 2u, 3, count, is_float, bytes, 1, big, more, 0xc0490fdb, 0x400921fb};
    values.resize(20);
    return values;
}

std::vector<Filter> filters_of(const Choice& choice) {
    const std::vector<std::string> names = penstock::data::filter_names();
    const std::string& codec = names[choice.codec % kCodecs % names.size()];
    std::vector<Filter> filters;
    if (choice.codec >= 128) filters.push_back({"shuffle", {choice.item}});
    Values values{choice.item};
    if (codec == "blosc2") values = {1, 0, choice.item, choice.chunk_bytes, 5, 1, 5};
    if (codec == "delta") values = {1u << choice.item % 4, choice.item >> 2 & 1, choice.item >> 3 & 1};
    if (codec == "bitshuffle") values = {0, 3, choice.item, choice.codec % 3 * 8, choice.codec / kCodecs};
    const bool is_packed = codec == "nbit" || codec == "scaleoffset" || codec == "odd-integers" || codec == "szip";
    if (is_packed) values = packed_values(codec, choice);
    filters.push_back({codec, values});
    if (choice.item >= 128) filters.push_back({"fletcher32", {}});
    return filters;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    using penstock::fuzz::promise;
    penstock::fuzz::Input input(data, bytes);
    const auto choice = input.number<std::uint8_t>(), item = input.number<std::uint8_t>();
    const auto chunk_bytes = input.number<std::uint16_t>();
    const std::uint32_t skipped = input.number<std::uint8_t>();
    const std::string rest = input.rest();
    std::vector<std::byte> stored(rest.size());
    stored.reserve(1);  // libraries tell no stream from one of no bytes
    std::transform(rest.begin(), rest.end(), stored.begin(), [](char one) { return static_cast<std::byte>(one); });
    std::vector<std::byte> padded = stored;
    padded.resize(stored.size() + penstock::data::kStreamPadding, kUntouched);
    try {
        const std::vector<Filter> filters = filters_of({choice, item, chunk_bytes});
        const penstock::data::Pipeline pipeline(filters, chunk_bytes);
        std::vector<std::byte> one(chunk_bytes + kGuard, kUntouched), other = one;
        penstock::data::Scratch scratch;
        const std::string fault = pipeline.decode({stored, skipped}, one, scratch);
        const std::span<const std::byte> stream(padded.data(), stored.size());
        const std::string again = pipeline.decode({stream, skipped, true}, other, scratch);
        promise(fault == again, "scratch that was used, and bytes behind the stream, change nothing");
        promise(!fault.empty() || one == other, "a chunk is decoded to the same bytes each time");
        for (std::size_t i = 0; i < kGuard; ++i) {
            promise(one[chunk_bytes + i] == kUntouched, "nothing behind a chunk is written");
        }
    } catch (const penstock::Error& error) {
        promise(error.code() == penstock::ErrorCode::unsupported, "what is not undone is unsupported");
    }
    return 0;
}
