// What a context keeps for the calls of layers above: threads that work on all cores, and streams of its device.
#pragma once

#include "device/kept_streams.hpp"
#include "os/threads/crew.hpp"
#include "penstock/context.hpp"

namespace penstock::context {

os::Crew& crew_of(const Context& context) noexcept;
device::KeptStreams& streams_of(const Context& context) noexcept;

}  // namespace penstock::context
