// DigestSum: a number by which processes see whether they told the same. It guards against mistakes, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock::snapshot {

// FNV-1a, of 64 bits.
class DigestSum {
  public:
    void add(std::span<const std::byte> bytes) {
        constexpr std::uint64_t kPrime = 0x100000001b3;
        for (const std::byte one : bytes) sum_ = (sum_ ^ static_cast<std::uint64_t>(one)) * kPrime;
    }
    void add(const std::string& text) {
        add(std::as_bytes(std::span(text)));
        add(text.size());
    }
    void add(std::uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
    std::uint64_t sum() const { return sum_; }

  private:
    std::uint64_t sum_ = 0xcbf29ce484222325;
};

}  // namespace penstock::snapshot
