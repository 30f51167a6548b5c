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

constexpr std::size_t kGuard = 64;
constexpr std::byte kUntouched{0xa5};

std::vector<Filter> filters_of(std::uint8_t choice, std::uint32_t item) {
    const std::vector<std::string> names = penstock::data::filter_names();
    const std::string& codec = names[choice % names.size()];
    std::vector<Filter> filters;
    if (choice >= 128) filters.push_back({"shuffle", {item}});
    const std::uint32_t blocks = choice % 3u * 8, compression = choice / 32u;
    const penstock::data::Values of_bits{0, 3, item, blocks, compression};
    filters.push_back({codec, codec == "bitshuffle" ? of_bits : penstock::data::Values{item}});
    if (choice % 64 >= 48) filters.push_back({"fletcher32", {}});
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
    std::transform(rest.begin(), rest.end(), stored.begin(), [](char one) { return static_cast<std::byte>(one); });
    try {
        const std::vector<Filter> filters = filters_of(choice, item);
        const penstock::data::Pipeline pipeline(filters, chunk_bytes);
        std::vector<std::byte> one(chunk_bytes + kGuard, kUntouched), other = one;
        penstock::data::Scratch scratch;
        const std::string fault = pipeline.decode(stored, skipped, one, scratch);
        const std::string again = pipeline.decode(stored, skipped, other, scratch);
        promise(fault == again, "scratch that was used changes nothing");
        promise(!fault.empty() || one == other, "a chunk is decoded to the same bytes each time");
        for (std::size_t i = 0; i < kGuard; ++i) {
            promise(one[chunk_bytes + i] == kUntouched, "nothing behind a chunk is written");
        }
    } catch (const penstock::Error& error) {
        promise(error.code() == penstock::ErrorCode::unsupported, "what is not undone is unsupported");
    }
    return 0;
}
