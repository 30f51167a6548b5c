// See shared_object.hpp.
#include "ondevice/calls/shared_object.hpp"

#include <dlfcn.h>
#include <link.h>

#include "penstock/error.hpp"

namespace penstock::ondevice {

SharedObject::SharedObject(const std::string& name) : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* const cause = ::dlerror();
    ErrorInfo info;
    info.code = ErrorCode::not_found;
    info.operation = "install functions";
    info.file = name;
    info.cause = cause != nullptr ? cause : "it cannot be loaded";
    info.advice = "give the path of a shared object (gcc -shared -fPIC), with a slash in it";
    throw Error(std::move(info));
}

SharedObject::~SharedObject() { ::dlclose(handle_); }

penstock_host_function SharedObject::find(const std::string& name) const {
    void* const found = ::dlsym(handle_, name.c_str());
    link_map *own = nullptr, *owner = nullptr;
    Dl_info info{};
    if (found == nullptr || ::dlinfo(handle_, RTLD_DI_LINKMAP, &own) != 0) return nullptr;
    if (::dladdr1(found, &info, reinterpret_cast<void**>(&owner), RTLD_DL_LINKMAP) == 0) return nullptr;
    return owner == own ? reinterpret_cast<penstock_host_function>(found) : nullptr;
}

}  // namespace penstock::ondevice
