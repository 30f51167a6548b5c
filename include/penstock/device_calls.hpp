// DeviceCalls: what answers calls of kernels to the host, by number or by name, and the files that kernels open.
//
//     penstock::DeviceCalls calls(context);
//     const auto trigger = calls.add("step ended", [&](const penstock::HostCall& call) { ...; return HostAnswer{}; });
//     my_kernel<<<blocks, threads>>>(calls.ref(), trigger);  // see penstock/ondevice/calls.hpp
//     stream.synchronize();
//     calls.close();
//
// Threads of the host run the functions, several at once. One that throws ends nothing: its caller gets a status, and
// errors() the text. A function must not wait for the kernel that calls it, nor ask the driver for what waits for that:
// memory of the device, or work on its stream. Copies share one owner. All functions may be called from any thread and
// throw Error; in a forked child they all do.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/context.hpp"
#include "penstock/ondevice/host_function.hpp"

namespace penstock {

namespace ondevice {
struct CallsRef;
}
namespace context {
class DeviceCallsState;
}

struct DeviceCallsOptions {
    std::uint32_t threads = 2;        // of the host, that run functions; 1 to 64
    std::uint32_t slots = 256;        // calls under way at once, in page-locked memory; 1 to 16384
    std::uint32_t slot_bytes = 8192;  // an argument or an answer is 16 bytes shorter; a multiple of 16
    std::uint32_t files = 1024;       // open at once
    std::chrono::nanoseconds timeout = std::chrono::seconds(10);  // the longest that a call waits
};

struct DeviceCallsStatistics {
    std::uint64_t calls = 0;     // that were taken, of files too
    std::uint64_t failures = 0;  // of functions that threw
};

class DeviceCalls {
  public:
    explicit DeviceCalls(const Context& context, const DeviceCallsOptions& options = {});

    // Registers a function and returns its number, which kernels call it by. The name is another way to it.
    std::uint32_t add(const std::string& name, HostFunction function) const;
    // Lets kernels call the functions of a shared object (host_function.h) by name.
    void install(const std::string& library) const;
    // The number of a function that was added, or that an installed object has. Throws Error (not_found).
    std::uint32_t number(const std::string& name) const;

    // In memory of the device, for users' kernels, which must end before this is closed.
    const ondevice::CallsRef* ref() const;
    std::vector<FailedCall> errors() const;  // the first 64
    DeviceCallsStatistics statistics() const;

    // Lets functions that run return, answers the calls left as cancelled, closes the files that are open and gives the
    // memory back. Idempotent; all else but errors() and statistics() throws from then on.
    void close() const;

  private:
    std::shared_ptr<context::DeviceCallsState> state_;
};

}  // namespace penstock
