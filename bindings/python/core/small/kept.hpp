// Decoded chunks that are kept for later reads, as Python shares them with native readers.
#pragma once

#include <memory>

#include "data/kept/kept_chunks.hpp"
#include "python/core/core.hpp"

namespace penstock::python {

// What readers of one open file keep. Python holds it, and so does each reader.
struct PythonKeptChunks {
    std::shared_ptr<data::KeptChunks> chunks;
};

void bind_kept(nb::module_& module);

}  // namespace penstock::python
