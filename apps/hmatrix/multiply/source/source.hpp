// Where the batches of a matrix come from during a sweep: memory, or storage by way of a small cache.
//
// The seam between products and I/O. A product names the order it will take batches in, so an implementation may read
// ahead, across the end of a sweep too: which bytes are needed next never depends on the vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/codec/tiers.hpp"

namespace penstock::hmatrix {

// The first bytes of each tier of one batch, in the memory products run in; kRowsTogether bytes behind each tier are
// readable.
struct BatchView {
    const std::byte* tiers[kMaxTiers] = {};
};

struct SourceCounts {
    std::int64_t bytes_read = 0;     // from storage, pinned ones included
    std::int64_t batches_taken = 0;
    std::int64_t bytes_taken = 0;    // of the tiers asked for, of all batches taken
    std::int64_t bytes_hit = 0;      // of bytes_taken: those that needed no read, pinned or still in the cache
    double read_s = 0;               // of the caller: to start reads, and to wait for them
    std::map<std::string, std::int64_t> bytes_by_path;  // of bytes_read, by the transfers' evidence
    double hit_rate() const noexcept {
        return bytes_taken > 0 ? static_cast<double>(bytes_hit) / static_cast<double>(bytes_taken) : 0;
    }
};

struct Sweep {
    std::span<const std::int64_t> order;  // of all batches that take() will be called for
    std::span<const std::int64_t> next;   // of the sweep likely to follow; empty: do not read ahead of it
    int tiers = 0;                        // that each batch is wanted with
};

class BatchSource {
  public:
    virtual ~BatchSource() = default;
    // The spans must stay until the next begin().
    virtual void begin(const Sweep& sweep) = 0;
    // In the order of the sweep. Throws Error when storage fails or the bytes are not those that were written.
    virtual BatchView take(std::int64_t batch) = 0;
    // Batches that can be held at once between take() and give_back(); at least 1.
    virtual std::int64_t room() const noexcept = 0;
    // The product with it is done. In any order.
    virtual void give_back(std::int64_t batch) = 0;
    // Since it was made; of what was given out and what is on its way.
    virtual SourceCounts counts() const = 0;
};

}  // namespace penstock::hmatrix
