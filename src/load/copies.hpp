// Copies between host and device for benchmarks. Either each stream has a thread, or one thread feeds many streams. The
// thread waits for each copy, or once at the end. Uses the Device contract, so that the emulated device works too. The
// caller provides the host memory, page-locked or ordinary.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/histogram.hpp"
#include "penstock/context.hpp"

namespace penstock::load {

enum class CopyWait : std::uint8_t {
    each,    // threads: wait after each copy; one thread: wait for every stream after each wave
    at_end,  // queue everything, then wait for every stream once
};

struct CopyOptions {
    bool to_device = true;
    std::uint64_t bytes = 4096;  // of one copy
    unsigned multiplicity = 1;   // number of streams
    bool threads = true;         // each stream has a thread; otherwise one thread feeds all streams in turn
    CopyWait wait = CopyWait::each;
    std::uint64_t copies = 1000;   // of all streams together, rounded up to whole waves
    double seconds = 1;            // no wave begins after this time
    std::uint64_t stamp_seed = 1;  // outside the time, the source is stamped before and the destination checked after
    const std::atomic<bool>* cancel = nullptr;
};

struct CopyReport {
    std::uint64_t copies = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
    Histogram each;  // of copies that a thread waited for one by one; otherwise empty
    double cpu_user_s = 0;
    double cpu_system_s = 0;
};

// Requires: both memories hold `multiplicity` copies, and stream s moves copy s. Throws Error{invalid_argument} if they
// do not, the device's errors, and Error{io_error} with operation "verify" if wrong bytes arrived.
CopyReport run_copies(const Context& context, const MemoryView& device, const MemoryView& host,
                      const CopyOptions& options);

}  // namespace penstock::load
