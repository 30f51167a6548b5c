// LZF, as h5py stores it (filter 32000): literals, and matches of up to 264 bytes in the last 8 KiB.
#include <cstring>

#include "data/decode/codecs/matches.hpp"
#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {

constexpr std::uint32_t kLiterals = 32;   // smaller control bytes say how many follow, less one

class Lzf final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        Matches out(stored, room);
        while (!out.at_end()) {
            const std::uint32_t control = out.next();
            bool done = false;
            if (control < kLiterals) {
                done = out.copy_literals(control + 1);
            } else {
                std::uint32_t length = control >> 5;
                if (length == 7) length += out.next();
                const std::uint32_t distance = ((control & 31) << 8) + out.next() + 1;
                done = out.copy_match(distance, length + 2);
            }
            if (!done) return {{}, "its lzf stream is damaged, or decodes to more than its shape says"};
        }
        return {out.made()};
    }
    // Of lzf: 264 bytes by 3 bytes.
    std::uint64_t most_ratio() const override { return 88; }
};

}  // namespace

StagePtr make_lzf(const Values&) { return std::make_unique<Lzf>(); }

}  // namespace penstock::data
