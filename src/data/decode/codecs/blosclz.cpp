// blosclz, the codec that blosc brings along: FastLZ of level 2, matches of any length in the last 72 KiB.
#include "data/decode/codecs/block.hpp"
#include "data/decode/codecs/matches.hpp"

namespace penstock::data {
namespace {

constexpr std::uint32_t kNear = 8191;  // a match from further away has its distance in two more bytes

struct Match {
    std::size_t distance, bytes;
};

Match match_of(std::uint32_t control, Matches& stream) {
    Match match{(control & 31) << 8, (control >> 5) - 1};
    if (match.bytes == 6) {
        std::uint32_t more = 0;
        do {
            more = stream.next();
            match.bytes += more;
        } while (more == 255);
    }
    const std::uint32_t low = stream.next();
    match.distance += low + 1;
    match.bytes += 3;
    if (match.distance == kNear + 1) {
        const std::uint32_t high = stream.next();
        match.distance = (high << 8) + stream.next() + kNear + 1;
    }
    return match;
}

class Blosclz final : public BlockDecoder {
  public:
    bool decode(std::span<const std::byte> stored, std::span<std::byte> plain) override {
        Matches out(stored, plain);
        bool first = true;
        while (!out.at_end()) {
            std::uint32_t control = out.next();
            if (first) control &= 31;  // the level is in the other bits
            first = false;
            if (control < 32) {
                if (!out.copy_literals(control + 1)) return false;
            } else {
                const Match match = match_of(control, out);
                if (!out.copy_match(match.distance, match.bytes)) return false;
            }
        }
        return out.made().size() == plain.size();
    }
};

}  // namespace

std::unique_ptr<BlockDecoder> make_blosclz_block() { return std::make_unique<Blosclz>(); }

}  // namespace penstock::data
