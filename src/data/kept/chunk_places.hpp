// ChunkPlaces: where the encoded chunks of one dataset lie, as far as that was looked for. To look for one may take
// long, and may need locks that a thread which decodes must not wait for; so each is looked for once.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::data {

struct EncodedPlace {
    std::uint64_t offset = 0, bytes = 0;  // in the file
    std::uint32_t skipped = 0;            // as in StoredStream
    bool is_known = false;                // else it was not looked for
    bool is_stored = false;
};

// Safe to call from several threads. `number` is less than the number of chunks.
class ChunkPlaces {
  public:
    // Of all chunks.
    explicit ChunkPlaces(std::vector<EncodedPlace> places) : places_(std::move(places)) {}
    EncodedPlace at(std::uint64_t number) const {
        const std::scoped_lock lock(mutex_);
        return places_.at(number);
    }
    void put(std::uint64_t number, const EncodedPlace& place) {
        const std::scoped_lock lock(mutex_);
        places_.at(number) = place;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<EncodedPlace> places_;
};

}  // namespace penstock::data
