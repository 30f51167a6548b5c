// Compares the bytes of a batch with the checksums of its tiers, in the memory where the bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// When a batch is checked: at its first read, never, or at every read.
enum class Verify : std::uint8_t { first, never, always };

class Verifier {
  public:
    // The place of the bytes. With device memory, the device computes the checksums. Requires: `workers` and `file`
    // outlive the verifier.
    struct Where {
        const Context& context;
        Workers& workers;
        MemoryKind memory = MemoryKind::pinned;
    };
    Verifier(const MatrixFile& file, Verify how, const Where& where);

    struct Part {
        const std::byte* memory = nullptr;
        std::int64_t begin = 0;  // offset of `memory` in the batch, in bytes
    };
    struct Tiers {
        int first = 0;
        int end = 0;
    };
    // Throws Error{io_error} that names the batch and the tier.
    void check(std::int64_t batch, Tiers tiers, const Part& part);

  private:
    std::uint32_t sum(const std::byte* bytes, std::uint64_t size);

    const MatrixFile& file_;
    Verify how_;
    Workers& workers_;
    std::unique_ptr<Stream> stream_;      // only for device memory
    std::vector<std::uint8_t> verified_;  // for each batch: how many tiers, from the first on, have passed
};

}  // namespace penstock::hmatrix
