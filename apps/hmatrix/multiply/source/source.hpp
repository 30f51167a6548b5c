// Where the batches of a matrix come from during a sweep: memory, or storage through a small cache.
//
// This class separates products from I/O. A product announces the order in which it will take batches. The order never
// depends on the vector, so a source can read ahead, even past the end of a sweep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/codec/tiers.hpp"

namespace penstock::hmatrix {

// Pointers to the first byte of each tier of one batch, in the memory where products run. Ensures: kRowsTogether bytes
// after each tier are readable.
struct BatchView {
    const std::byte* tiers[kMaxTiers] = {};
};

struct SourceCounts {
    std::int64_t bytes_read = 0;  // from storage, with the pinned bytes
    std::int64_t batches_taken = 0;
    std::int64_t bytes_taken = 0;  // bytes of the tiers that the sweep uses, over all batches taken
    std::int64_t bytes_hit = 0;  // part of bytes_taken that needed no read: pinned or still in the cache
    double read_s = 0;  // seconds that the caller spent starting reads and waiting for them
    std::map<std::string, std::int64_t> bytes_by_path;  // bytes_read by path, from the evidence of the transfers
    double hit_rate() const noexcept {
        return bytes_taken > 0 ? static_cast<double>(bytes_hit) / static_cast<double>(bytes_taken) : 0;
    }
};

struct Sweep {
    std::span<const std::int64_t> order;  // the batches that take() will be called for
    std::span<const std::int64_t> next;   // order of the sweep that probably follows; empty: do not read ahead for it
    int tiers = 0;                        // number of first tiers that the sweep needs of each batch
};

class BatchSource {
  public:
    virtual ~BatchSource() = default;
    // Requires: the spans stay valid until the next begin().
    virtual void begin(const Sweep& sweep) = 0;
    // Requires: calls follow the order of the sweep. Throws Error if storage fails or the bytes do not match their
    // checksum.
    virtual BatchView take(std::int64_t batch) = 0;
    // How many batches the caller may hold at once between take() and give_back(); at least 1.
    virtual std::int64_t room() const noexcept = 0;
    // The product has finished with the batch. Calls may come in any order.
    virtual void give_back(std::int64_t batch) = 0;
    // Counts since construction. bytes_read may include batches that have not been taken yet.
    virtual SourceCounts counts() const = 0;
};

}  // namespace penstock::hmatrix
