// Whether the bytes of a batch are those that were written: by the checksums of its tiers, where the bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

enum class Verify : std::uint8_t { first, never, always };  // checksums of what was read: at its first time

class Verifier {
  public:
    // Memory of the device is summed there. `workers` and `file` must outlive it.
    struct Where {
        const Context& context;
        Workers& workers;
        MemoryKind memory = MemoryKind::pinned;
    };
    Verifier(const MatrixFile& file, Verify how, const Where& where);

    struct Part {
        const std::byte* memory = nullptr;
        std::int64_t begin = 0;  // its first byte is so far into the batch
    };
    struct Tiers {
        int first = 0;
        int end = 0;
    };
    // Throws Error{corrupt} that names the batch and the tier.
    void check(std::int64_t batch, Tiers tiers, const Part& part);

  private:
    std::uint32_t sum(const std::byte* bytes, std::uint64_t size);

    const MatrixFile& file_;
    Verify how_;
    Workers& workers_;
    std::unique_ptr<Stream> stream_;      // for memory of the device
    std::vector<std::uint8_t> verified_;  // tiers of each batch that were, from the first on
};

}  // namespace penstock::hmatrix
