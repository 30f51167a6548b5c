// bzip2 by libbz2: one stream, whose checksums libbz2 verifies.
#include <bzlib.h>

#include <limits>
#include <new>

#include "data/decode/makers.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kMostOfBz2 = std::numeric_limits<unsigned>::max();

class Bz2 final : public Stage {
  public:
    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        if (stored.size() > kMostOfBz2 || room.size() > kMostOfBz2) return {{}, "bzip2 takes no streams of 4 GiB"};
        auto made = static_cast<unsigned>(room.size());
        // libbz2 reads through a pointer to what it does not change.
        auto* from = const_cast<char*>(reinterpret_cast<const char*>(stored.data()));
        const int result = BZ2_bzBuffToBuffDecompress(reinterpret_cast<char*>(room.data()), &made, from,
                                                      static_cast<unsigned>(stored.size()), 0, 0);
        if (result == BZ_OK) return {room.first(made)};
        if (result == BZ_MEM_ERROR) throw std::bad_alloc();
        if (result == BZ_OUTBUFF_FULL) {
            return {{}, "it decodes to more than the " + std::to_string(room.size()) + " bytes of its shape"};
        }
        return {{}, "its bzip2 stream is damaged, or was cut short"};
    }
    // Of bzip2: 900 kB by some 40 bytes.
    std::uint64_t most_ratio() const override { return 50'000; }
};

}  // namespace

StagePtr make_bz2(const Values&) { return std::make_unique<Bz2>(); }

}  // namespace penstock::data
