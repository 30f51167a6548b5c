// Seams: what a Context stands on, where tests and measurements put something of their own. Users have no part in them:
// a Context that they make stands on the system, on the device that its options name, and on the paths as they are.
#pragma once

#include <functional>
#include <memory>

#include "os/system.hpp"
#include "path/path.hpp"
#include "penstock/context.hpp"

namespace penstock::context {

struct Seams {
    os::System* system = nullptr;      // for the real system calls; outlives the context and threads that hang in it
    std::shared_ptr<Device> device{};  // for the one that the options name
    // Wraps every path that the engine makes: decorators that trace, fail, delay or count.
    std::function<std::unique_ptr<Path>(std::unique_ptr<Path>)> wrap_path{};
};

Context make_context(const ContextOptions& options, Seams seams);

}  // namespace penstock::context
