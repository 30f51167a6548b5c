// SmallTally: sums over the small reads of one open file, of which its evidence is made when a caller asks for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "data/rows/run_reads.hpp"
#include "python/core/core.hpp"

namespace penstock::python {

// Requires: the GIL, for all of it.
struct SmallTally {
    static constexpr std::size_t kMostSamples = data::RunsMoved::kMostSamples;
    bool open = true;  // false: readers of this file answer None
    std::uint64_t requested_bytes = 0;
    std::uint64_t reads = 0, operations = 0, bytes = 0, host_copies_bytes = 0;
    std::uint64_t staged_bytes = 0, scratch_peak_bytes = 0;  // streams of chunks
    std::uint64_t kept_reads = 0, kept_bytes = 0;            // of chunks that an earlier read had decoded
    std::map<std::string, std::uint64_t> decoded;            // bytes that were selected, by who decoded them
    double seconds = 0;
    // One of each size, kind and plan, of the first ones: plans of reads and of writes are two.
    std::map<std::tuple<std::uint64_t, MemoryKind, const SmallPlan*>, SmallRead> samples;

    void add(const SmallRead& done);
    void add(const data::RunsMoved& done);        // a read, or a write
    void add_moved(const data::RunsMoved& done);  // a part of one
    void add_stream(std::uint64_t bytes);
    void add_staged(std::uint64_t bytes);  // decoded to memory of the host, and copied to the device
};

void bind_tally(nb::module_& module);

}  // namespace penstock::python
