// What the functions of _core.Snapshot take from Python, as values of the C++ API.
#pragma once

#include <array>
#include <cstddef>

#include "penstock/snapshot.hpp"
#include "python/core/core.hpp"

namespace penstock::python {

SnapshotOptions snapshot_options(const nb::kwargs& keywords);
SnapshotPreset snapshot_preset(const nb::kwargs& keywords);
// The members of SnapshotDataset.
SnapshotDataset snapshot_dataset(const nb::kwargs& keywords);
// `attribute`: (name, type, shape, value), whose type is empty for text, and whose value is a list of texts, or bytes.
SnapshotAttribute snapshot_attribute(const nb::tuple& attribute);

}  // namespace penstock::python
