// Stamps and checks memory for one thread: on the device, or by the CPU for system memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/requests.hpp"
#include "penstock/context.hpp"

namespace penstock::load {

// The byte that fills memory before a run, so that bytes that never arrived cannot pass for the pattern.
inline constexpr int kPoison = 0xEE;

class Pattern {
  public:
    Pattern(const Context& context, MemoryKind kind, std::uint64_t seed);
    void stamp(void* memory, std::uint64_t bytes, std::uint64_t file_offset);
    void fill(void* memory, std::uint64_t bytes, int byte_value);
    // Throws Error{io_error} with operation "verify" and the place of the first wrong byte.
    void verify(const void* memory, const Request& range, const std::string& file);

  private:
    std::unique_ptr<Stream> stream_;  // nullptr for system memory, which the CPU stamps
    std::uint64_t seed_;
};

// Ranges of a file that were moved, with overlapping ranges joined.
class Moved {
  public:
    void add(const Request& range);
    const std::vector<Request>& ranges();  // ascending; no two touch

  private:
    void compact();

    std::vector<Request> ranges_;
    std::size_t compact_at_ = 1 << 16;
};

}  // namespace penstock::load
