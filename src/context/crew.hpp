// crew_of: the threads that a context has for calls that work on all cores.
#pragma once

#include "os/threads/crew.hpp"
#include "penstock/context.hpp"

namespace penstock::context {

os::Crew& crew_of(const Context& context) noexcept;

}  // namespace penstock::context
