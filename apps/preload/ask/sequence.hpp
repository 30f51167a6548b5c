// What a descriptor's reads or writes look like, and what the kernel is to be asked for early because of it.
//
// A Sequence is the state machine of one direction of one descriptor: plain until `least_bytes` have moved in order,
// then sequential. It holds no byte of the program and moves none. It answers each move with a span: of writes, what
// the program is done with, so that its writeback may begin; of reads, what the program will want next. A wrong answer
// costs time and never data, so that what a Sequence does not know (seeks, other descriptors, other processes) needs no
// rule here. Pure: it asks no clock, no file and no thread. A caller serialises calls.
#pragma once

#include <algorithm>
#include <cstdint>

namespace preload {

inline constexpr std::int64_t kMiB = 1024 * 1024;
// A call of so many bytes is looked at. Smaller ones are looked at together, once in kGatheredBytes.
inline constexpr std::int64_t kPlacedBytes = 64 * 1024;
inline constexpr std::int64_t kGatheredBytes = kMiB;

struct Span {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    constexpr std::int64_t end() const { return offset + bytes; }
    constexpr bool empty() const { return bytes <= 0; }
};

// Whether a call is looked at, before which `before` bytes had moved.
constexpr bool is_placed(std::uint64_t before, std::int64_t bytes) {
    constexpr auto kGathered = static_cast<std::uint64_t>(kGatheredBytes);
    return bytes >= kPlacedBytes || before / kGathered != (before + static_cast<std::uint64_t>(bytes)) / kGathered;
}

// What a call that is looked at stands for: itself, or the small ones before it too. It ended at `end`.
constexpr Span span_to(std::int64_t end, std::int64_t bytes) {
    const std::int64_t moved = std::min(bytes >= kPlacedBytes ? bytes : kGatheredBytes, end);
    return {end - moved, moved};
}

enum class Direction : std::uint8_t { read, write };

struct Limits {
    std::int64_t least_bytes = 8 * kMiB;  // in order, before anything is asked for
    std::int64_t step_bytes = 4 * kMiB;   // asked for at a time, from a multiple of it
    std::int64_t window_bytes = 32 * kMiB;  // of reads: how far ahead of the program
};

class Sequence {
public:
    constexpr explicit Sequence(Direction direction) : direction_(direction) {}

    // Calls moved `span`. Returns what to ask for, mostly nothing.
    Span moved(Span span, const Limits& limits) {
        if (!goes_on(span, limits)) {
            if (span.bytes >= kPlacedBytes) begin(span);  // a small one is metadata beside the data, and ends nothing
            return {};
        }
        end_ = std::max(end_, span.end());
        if (!sequential(limits)) return {};
        const bool reads = direction_ == Direction::read;
        const std::int64_t reach = end_ + (reads ? limits.window_bytes : 0);
        const std::int64_t until = reach - reach % limits.step_bytes;
        const std::int64_t from = reads ? std::max(asked_, end_ - end_ % limits.step_bytes) : asked_;
        if (until <= from) return {};
        asked_ = until;
        return {from, until - from};
    }

    bool sequential(const Limits& limits) const { return end_ - begin_ >= limits.least_bytes; }
    std::uint64_t breaks() const { return breaks_; }

private:
    // Fortran seeks back over a record to write its length, and skips; both are within a step of the end.
    bool goes_on(Span span, const Limits& limits) const {
        return span.offset <= end_ + limits.step_bytes && span.end() + limits.step_bytes >= end_;
    }

    void begin(Span span) {
        ++breaks_;
        begin_ = span.offset;
        end_ = span.end();
        asked_ = begin_;
    }

    Direction direction_;
    std::int64_t begin_ = 0, end_ = 0;  // the run
    std::int64_t asked_ = 0;            // all of the run before this was asked for
    std::uint64_t breaks_ = 0;
};

}  // namespace preload
