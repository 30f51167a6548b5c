// See copy_overlapped.hpp. Uses registers of 64 bytes (AVX-512), a cache line each. With registers of 16 bytes, which
// every x86-64 processor has, it was no faster than memcpy. No other processor was measured, so elsewhere pieces are
// copied one by one. Stores that bypass the caches were slower when several threads copied.
#include "os/memory/copy_overlapped.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock::os {
namespace {

constexpr std::size_t kLine = 64;
// lines of one piece that are copied before those of the next piece
constexpr std::size_t kStepLines = 4, kStep = kStepLines * kLine;
constexpr std::size_t kMostBytes = 16 * 1024;  // longer pieces gain nothing: the processor itself prefetches them
constexpr std::size_t kAloneLines = 8;

// Finding a random page takes most of the time. A prefetch of a bad address raises no fault.
void fetch_ahead(const HostCopy& piece, std::size_t lines) noexcept {
    const auto* const from = static_cast<const char*>(piece.from);
    for (std::size_t at = 0; at < piece.bytes && at < lines * kLine; at += kLine) __builtin_prefetch(from + at);
}

#if defined(__x86_64__)
bool wide_registers() noexcept {
    static const bool there = __builtin_cpu_supports("avx512f") != 0;
    return there;
}

// One function for these registers: the compiler cannot inline functions with other targets into it, or it into them.
__attribute__((target("avx512f"))) void copy_four(std::span<const HostCopy> pieces,
                                                  std::span<const HostCopy> next) noexcept {
    const std::size_t bytes = pieces[0].bytes, early = bytes > kStep ? bytes - 2 * kStep : 0;
    for (std::size_t at = 0; at < bytes; at += kStep) {
        for (const HostCopy& one : pieces) {
            auto* const to = static_cast<char*>(one.to) + at;
            const auto* const from = static_cast<const char*>(one.from) + at;
            for (std::size_t line = 0; line < kStep; line += kLine)
                _mm512_storeu_si512(to + line, _mm512_loadu_si512(from + line));
        }
        if (at != early) continue;
        for (const HostCopy& one : next.first(std::min(next.size(), kOverlap))) fetch_ahead(one, kStepLines);
    }
}
#else
bool wide_registers() noexcept { return false; }

void copy_four(std::span<const HostCopy> pieces, std::span<const HostCopy>) noexcept {
    for (const HostCopy& one : pieces) std::memcpy(one.to, one.from, one.bytes);
}
#endif

}  // namespace

std::size_t overlap_count(std::span<const HostCopy> pieces) noexcept {
    if (pieces.size() < kOverlap || !wide_registers()) return 1;
    const std::size_t bytes = pieces[0].bytes;
    if (bytes == 0 || bytes > kMostBytes || bytes % kStep != 0) return 1;
    const auto alike = [bytes](const HostCopy& one) { return one.bytes == bytes; };
    return std::all_of(pieces.begin(), pieces.begin() + kOverlap, alike) ? kOverlap : 1;
}

void copy_overlapped(std::span<const HostCopy> pieces, std::span<const HostCopy> next) noexcept {
    if (pieces.size() == kOverlap) return copy_four(pieces, next);
    if (!next.empty()) fetch_ahead(next[0], kAloneLines);
    std::memcpy(pieces[0].to, pieces[0].from, pieces[0].bytes);
}

}  // namespace penstock::os
