// Pipeline: undoes the filters that the chunks of a dataset went through when they were written.
//
// Immutable: any number of threads may use one, each with a Scratch of its own. Ensures: decode() writes nothing
// outside `out` and the scratch; scratch grows to what the shape of a chunk allows, and not to what its bytes say;
// checksums that a filter added are verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/decode/stage.hpp"

namespace penstock::data {

// A filter by name, with the values that its writer left. filter_names() lists those that this build undoes.
struct Filter {
    std::string name;
    Values values{};
};

// A chunk as it is stored.
struct StoredStream {
    std::span<const std::byte> bytes{};
    std::uint32_t skipped = 0;  // a bit for each filter, in their order, that this chunk did not go through
    bool padded = false;        // kStreamPadding bytes behind may be read, too
};

// Memory of one thread that decodes.
struct Scratch {
    struct Room {
        std::unique_ptr<std::byte[]> bytes{};
        std::uint64_t size = 0;
    };
    Room rooms[2]{};
    std::vector<std::unique_ptr<StageState>> states{};
    std::span<std::byte> room(std::size_t which, std::uint64_t bytes);
};

class Pipeline {
  public:
    // `filters`: in the order in which they were applied. Throws Error{unsupported}, which names the filter and, where
    // one is missing, the library.
    Pipeline(std::span<const Filter> filters, std::uint64_t chunk_bytes);

    std::uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }
    // Requires: `out` has chunk_bytes(). Returns what is wrong; empty: `out` has the chunk. After a fault, its content
    // is undefined.
    std::string decode(const StoredStream& stored, std::span<std::byte> out, Scratch& scratch) const;

  private:
    struct Named {
        std::string name;
        StagePtr stage;
    };
    struct Applied {  // a filter that a chunk went through
        std::size_t filter;
        std::uint64_t plain;  // bytes before it
        bool exact;           // not fewer
    };
    std::vector<Applied> applied_to(std::uint32_t skipped) const;
    std::string undo_all(std::span<const Applied> applied, const StoredStream& stored, std::span<std::byte> out,
                         Scratch& scratch) const;

    std::vector<Named> filters_;
    std::uint64_t chunk_bytes_;
};

std::vector<std::string> filter_names();

}  // namespace penstock::data
