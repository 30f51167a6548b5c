// What an engine is made from; the parts that come from the context.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "os/system.hpp"
#include "penstock/device.hpp"
#include "path/path.hpp"

namespace penstock::engine {

struct EngineOptions {
    Device* device = nullptr;
    os::System* system = nullptr;
    std::uint64_t budget_bytes = 256 * kMiB;
    int numa_node = -1;  // near which staging memory and workers go
    std::function<std::unique_ptr<Path>(PathKind, PathOptions)> make_path;
};

}  // namespace penstock::engine
