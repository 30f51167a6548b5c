// See tally.hpp.
#include "python/core/small/tally.hpp"

#include <algorithm>

namespace penstock::python {

void SmallTally::add(const SmallRead& done) {
    const bool to_host = done.memory.kind == MemoryKind::pinned || done.memory.kind == MemoryKind::system;
    ++operations;
    bytes += done.memory.bytes;
    host_copies_bytes += to_host ? 0 : done.memory.bytes;
    seconds += done.seconds;
    if (samples.size() >= kMostSamples) return;
    samples.try_emplace({done.memory.bytes, done.memory.kind, done.plan.get()}, done);
}

void SmallTally::add(const data::RunsMoved& done) {
    ++reads;
    requested_bytes += done.requested_bytes;
    add_moved(done);
}

void SmallTally::add_moved(const data::RunsMoved& done) {
    operations += done.operations;
    bytes += done.bytes;
    host_copies_bytes += done.host_copies_bytes;
    staged_bytes += done.staged_bytes;
    scratch_peak_bytes = std::max(scratch_peak_bytes, done.scratch_peak_bytes);
    seconds += done.seconds;
    for (const auto& [size, sample] : done.samples) {
        if (samples.size() >= kMostSamples) break;
        samples.try_emplace({size, sample.memory.kind, sample.plan.get()}, sample);
    }
}

void SmallTally::add_stream(std::uint64_t stream_bytes) {
    staged_bytes += stream_bytes;
    scratch_peak_bytes = std::max(scratch_peak_bytes, stream_bytes);
}

void SmallTally::add_staged(std::uint64_t staged) {
    host_copies_bytes += staged;
    staged_bytes += staged;
    scratch_peak_bytes = std::max(scratch_peak_bytes, staged);
}

void bind_tally(nb::module_& module) {
    nb::class_<SmallRead>(module, "SmallRead")
        .def_prop_ro("bytes", [](const SmallRead& self) { return self.memory.bytes; })
        .def_prop_ro("seconds", [](const SmallRead& self) { return self.seconds; })
        .def_prop_ro("reached_end", [](const SmallRead&) { return false; })  // it would have been a transfer
        .def_prop_ro("path", [](const SmallRead&) { return to_string(PathKind::buffered); })
        .def_prop_ro("evidence_json", [](const SmallRead& self) { return text(self.evidence().to_json()); });
    nb::class_<SmallTally>(module, "SmallTally")
        .def(nb::init<>())
        .def("close", [](SmallTally& self) { self.open = false; })
        .def_ro("requested_bytes", &SmallTally::requested_bytes)
        .def_ro("reads", &SmallTally::reads)
        .def_ro("operations", &SmallTally::operations)
        .def_ro("bytes", &SmallTally::bytes)
        .def_ro("host_copies_bytes", &SmallTally::host_copies_bytes)
        .def_ro("staged_bytes", &SmallTally::staged_bytes)
        .def_ro("scratch_peak_bytes", &SmallTally::scratch_peak_bytes)
        .def_ro("kept_reads", &SmallTally::kept_reads)
        .def_ro("kept_bytes", &SmallTally::kept_bytes)
        .def_ro("seconds", &SmallTally::seconds)
        .def_prop_ro("decoded",
                     [](const SmallTally& self) {
                         nb::dict found;
                         for (const auto& [name, bytes] : self.decoded) found[text(name)] = bytes;
                         return found;
                     })
        .def_prop_ro("samples", [](const SmallTally& self) {
            nb::list samples;
            for (const auto& [key, sample] : self.samples) samples.append(nb::cast(sample));
            return samples;
        });
}

}  // namespace penstock::python
