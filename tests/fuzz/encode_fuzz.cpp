// Encoders of any filters on any bytes: what one makes, a pipeline of the same filters undoes, nothing behind the room
// is written, and the same bytes give the same chunk. The first byte says how many filters there are, two each choose
// one and its value, the next how often the rest is repeated; the rest is encoded.
#include <algorithm>
#include <vector>

#include "data/encode/encoder.hpp"
#include "input.hpp"
#include "penstock/error.hpp"

namespace {

using penstock::data::Filter;

constexpr std::size_t kMostFuzzedFilters = 4, kRoomGuard = 64;
constexpr std::byte kRoomUntouched{0x5a};

std::vector<Filter> filters_of(penstock::fuzz::Input& input) {
    const std::vector<std::string> names = penstock::data::encoder_names();
    std::vector<Filter> filters(input.number<std::uint8_t>() % kMostFuzzedFilters);
    for (Filter& filter : filters) {
        filter.name = names[input.number<std::uint8_t>() % names.size()];
        filter.values = {input.number<std::uint8_t>()};
    }
    return filters;
}

std::vector<std::byte> plain_of(penstock::fuzz::Input& input) {
    const std::size_t times = 1 + input.number<std::uint8_t>();
    const std::string rest = input.rest();
    std::vector<std::byte> plain;
    for (std::size_t i = 0; i < times; ++i) {
        for (const char one : rest) plain.push_back(static_cast<std::byte>(one));
    }
    return plain;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    using penstock::fuzz::promise;
    penstock::fuzz::Input input(data, bytes);
    const std::vector<Filter> filters = filters_of(input);
    const std::vector<std::byte> plain = plain_of(input);
    try {
        const penstock::data::Encoder encoder(filters, plain.size());
        const std::size_t most = encoder.most_bytes();
        std::vector<std::byte> room(most + kRoomGuard, kRoomUntouched), again = room;
        penstock::data::Scratch scratch;
        const penstock::data::Encoded made = encoder.encode(plain, std::span(room).first(most), scratch);
        promise(made.fault.empty() && made.bytes <= most, "a chunk is encoded into the room that was promised");
        promise(encoder.encode(plain, std::span(again).first(most), scratch).bytes == made.bytes,
                "scratch that was used changes nothing");
        const auto end = static_cast<std::ptrdiff_t>(made.bytes);
        promise(std::equal(room.begin(), room.begin() + end, again.begin()), "the same bytes give the same chunk");
        promise(std::all_of(room.end() - kRoomGuard, room.end(), [](std::byte one) { return one == kRoomUntouched; }),
                "nothing behind the room is written");
        const penstock::data::Pipeline pipeline(filters, plain.size());
        std::vector<std::byte> out(plain.size());
        penstock::data::Scratch other;
        const std::string fault = pipeline.decode({std::span(room).first(made.bytes)}, out, other);
        promise(fault.empty() && out == plain, "a pipeline of the same filters gives the plain bytes again");
    } catch (const penstock::Error& error) {
        promise(error.code() == penstock::ErrorCode::unsupported ||
                    error.code() == penstock::ErrorCode::invalid_argument,
                "what cannot be encoded is refused before it is begun");
    }
    return 0;
}
