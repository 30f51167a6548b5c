// A shared object whose functions device code calls by name: penstock_host_function (host_function.h).
#pragma once

#include <memory>
#include <string>

#include "penstock/host_function.h"

namespace penstock::ondevice {

class SharedObject {
  public:
    // Throws Error if the system cannot load it. A name without a slash is looked for as by the system's linker.
    explicit SharedObject(const std::string& name);
    ~SharedObject();
    SharedObject(const SharedObject&) = delete;
    SharedObject& operator=(const SharedObject&) = delete;

    // A function that the object itself defines, or null. Those of the libraries that it needs, such as `system` of the
    // C library, are not its own: a caller that names one must not run it.
    penstock_host_function find(const std::string& name) const;

  private:
    void* handle_;
};

}  // namespace penstock::ondevice
