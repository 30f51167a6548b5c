// A mailbox with a service of calls over memory of the process, and a folder for its files.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ondevice/calls/call_service.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "penstock/ondevice/calls.hpp"

namespace penstock::ondevice {

constexpr u64 kLongCallNs = 30'000'000'000;

class CallsRig {
  public:
    explicit CallsRig(const MailboxSizes& sizes = {64, 512}, const CallServiceOptions& options = {})
        : mailbox_(memory_, memory_, {sizes.slots, sizes.slot_bytes, true}), service_(mailbox_, options) {}

    CallsRef calls(u64 timeout_ns = kLongCallNs) const {
        CallsRef calls{};
        calls.channel = mailbox_.answering_ref();
        calls.timeout_ns = timeout_ns;
        return calls;
    }
    CallService& service() { return service_; }
    u32 add(const std::string& name, HostFunction function) {
        return service_.functions().add(name, std::move(function));
    }

  private:
    RigMemory memory_;
    Mailbox mailbox_;
    CallService service_;
};

class CallFolder {
  public:
    CallFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock_calls_XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~CallFolder() { std::filesystem::remove_all(folder_); }
    CallFolder(const CallFolder&) = delete;
    CallFolder& operator=(const CallFolder&) = delete;

    std::string operator/(const char* name) const { return (folder_ / name).string(); }

  private:
    std::filesystem::path folder_;
};

inline std::string text_of(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace penstock::ondevice
