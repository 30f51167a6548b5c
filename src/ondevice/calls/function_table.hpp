// The functions of the host that device code may call, each under a number and a name.
//
// Numbers never change and are not given twice, so a kernel may keep them. Any thread may call at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ondevice/calls/shared_object.hpp"
#include "penstock/ondevice/host_function.hpp"

namespace penstock::ondevice {

class FunctionTable {
  public:
    struct Registered {
        std::string name;
        HostFunction call;
    };

    // Returns the number. Throws Error for no name, one that is taken, or a table that is full.
    std::uint32_t add(std::string name, HostFunction function);
    // From now on, names that were not added are looked for in the shared object too, in the order of installation.
    void install(const std::string& library);
    std::optional<std::uint32_t> find(std::string_view name);
    std::shared_ptr<const Registered> at(std::uint32_t number) const;  // null: there is none

  private:
    std::optional<std::uint32_t> find_added(std::string_view name) const;
    std::uint32_t append(std::string name, HostFunction function);

    mutable std::shared_mutex mutex_;  // guards both
    std::vector<std::shared_ptr<const Registered>> entries_;  // from number first_registered on
    std::vector<std::shared_ptr<const SharedObject>> libraries_;
};

}  // namespace penstock::ondevice
