// Copies between host and device as a benchmark asks for them: from threads of which each has a stream, or by one
// thread over many streams; waited for one by one or all at the end. On the Device contract, so that the emulated
// device does the same. Host memory is what the caller made: page-locked or ordinary.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/histogram.hpp"
#include "load/cpu_time.hpp"
#include "penstock/context.hpp"

namespace penstock::load {

enum class CopyWait : std::uint8_t {
    each,    // threads: after each copy. Streams: after each wave, a copy on every stream, each stream is waited for
    at_end,  // everything is queued, then every stream is waited for once
};

struct CopyOptions {
    bool to_device = true;
    std::uint64_t bytes = 4096;  // of a copy
    unsigned multiplicity = 1;   // streams
    bool threads = true;         // each stream has a thread; else one thread feeds all of them in turn
    CopyWait wait = CopyWait::each;
    std::uint64_t copies = 1000;   // of all streams together, rounded up to whole waves
    double seconds = 1;            // no wave begins later
    std::uint64_t stamp_seed = 1;  // the source is stamped before, the destination checked after, outside the time
    const std::atomic<bool>* cancel = nullptr;
};

struct CopyReport {
    std::uint64_t copies = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
    Histogram each;  // of copies that their thread waited for one by one; else empty
    double cpu_user_s = 0;
    double cpu_system_s = 0;
};

// Both memories hold `multiplicity` copies: stream s moves the s-th. Throws Error{invalid_argument} when they do not,
// the device's errors, and Error{io_error} of the operation "verify" when wrong bytes arrived.
CopyReport run_copies(const Context& context, const MemoryView& device, const MemoryView& host,
                      const CopyOptions& options);

}  // namespace penstock::load
