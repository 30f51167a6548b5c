// The host threads that do what device code calls for (penstock/ondevice/calls.hpp).
//
// All threads share all slots, unlike those of Service: a function may take long, and no call waits for a thread that
// is in one while another thread has nothing to do. One thread at a time looks for calls. Each call is answered exactly
// once, even if its function throws or the service ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ondevice/calls/function_table.hpp"
#include "ondevice/calls/call_files.hpp"
#include "ondevice/mailbox_memory.hpp"
#include "os/system.hpp"

namespace penstock::ondevice {

struct CallServiceOptions {
    std::uint32_t threads = 2;
    std::uint32_t spin_us = 200;   // as of ServiceOptions
    std::uint32_t sleep_us = 100;
    std::uint32_t files = 1024;    // open at once, 1 to 65536
    os::System* system = nullptr;  // nullptr: the real one
};

class CallService {
  public:
    // Requires: the mailbox outlives the service. Throws Error for a number of threads or files that cannot be.
    CallService(Mailbox& mailbox, const CallServiceOptions& options);
    ~CallService() { end(); }
    CallService(const CallService&) = delete;
    CallService& operator=(const CallService&) = delete;

    FunctionTable& functions() { return functions_; }
    // Lets functions that run return, answers the calls left as cancelled, and closes the files. Later calls are not
    // answered at all: they time out. Idempotent; one thread calls it.
    void end();
    bool ending() const { return stop_.load(std::memory_order_acquire); }  // no thread takes another call

    std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
    std::uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }  // of functions that threw
    std::vector<FailedCall> failed() const;  // the first of them

  private:
    using Bytes = std::vector<std::byte>;
    void run();
    enum class Look : std::uint8_t { taken, nothing, beside_another };
    Look take(std::uint32_t& slot, Request& request);
    void answer(std::uint32_t slot, const CallOutcome& outcome);
    CallOutcome perform(std::uint32_t slot, const Request& request, Bytes& argument);
    bool found_head(std::uint32_t slot, CallHead& head) const;
    CallOutcome on_files(const Request& request, std::uint32_t file, std::span<std::byte> argument,
                         std::span<std::byte> answer);
    CallOutcome run_function(const FunctionTable::Registered& entry, const HostCall& call);
    CallOutcome failed_call(const std::string& function, const std::string& what);

    Mailbox& mailbox_;
    const CallServiceOptions options_;
    const std::uint32_t room_;  // for an argument or an answer
    FunctionTable functions_;
    CallFiles files_;
    std::mutex taking_;  // guards server_'s next(); complete() needs no lock, since a slot's next call comes after it
    MailboxServer<Native, true> server_;
    std::atomic<std::uint64_t> calls_{0}, failures_{0};
    mutable std::mutex told_;  // guards failed_
    std::vector<FailedCall> failed_;
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

}  // namespace penstock::ondevice
