// See caller.hpp.
#include "vfd/hdf5/caller.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace penstock::vfd {
namespace {

using GetConfig = ssize_t (*)(Id access, char* text, std::size_t capacity);
using SetProperty = Status (*)(Id list, const char* name, const void* value);
using Push = Status (*)(Id stack, const char* file, const char* function, unsigned line, Id error_class, Id major,
                        Id minor, const char* format, ...);

void append(const std::string& name, const std::string& line) noexcept {
    constexpr int kHow = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    const int fd = name == "stderr" ? STDERR_FILENO : ::open(name.c_str(), kHow, 0666);
    if (fd < 0) return;
    if (::write(fd, line.data(), line.size()) < 0) return;  // there is no other place to tell it
    if (fd != STDERR_FILENO) ::close(fd);
}

}  // namespace

Caller::Caller(const void* return_address) noexcept {
    Dl_info found{};
    if (::dladdr(return_address, &found) == 0 || found.dli_fname == nullptr) return;
    library_ = ::dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (library_ == nullptr) library_ = ::dlopen(nullptr, RTLD_NOW);  // the program itself contains HDF5
}

void* Caller::function(const char* name) const noexcept {
    return library_ == nullptr ? nullptr : ::dlsym(library_, name);
}

void Caller::drop_chunk_cache(Id access) const {
    // By the property's name: H5Pset_cache refuses the list of programs that give none.
    const auto set = reinterpret_cast<SetProperty>(function("H5Pset"));
    const std::size_t none = 0;
    if (set == nullptr || set(access, "rdcc_nbytes", &none) < 0) {
        throw Fault{"open", "this HDF5 does not let the driver turn its chunk cache off",
                    "leave chunk_cache=off out, and open the file with rdcc_nbytes=0", 0, 0, 0};
    }
}

std::string Caller::config(Id access) const {
    const auto get = reinterpret_cast<GetConfig>(function("H5Pget_driver_config_str"));
    if (get != nullptr) {
        char text[4096] = {};
        const ssize_t bytes = get(access, text, sizeof text);
        if (bytes > 0 && static_cast<std::size_t>(bytes) < sizeof text) return text;
    }
    const char* set = std::getenv("HDF5_DRIVER_CONFIG");
    return set == nullptr ? "" : set;
}

bool Caller::push(const char* minor, const std::string& text) const noexcept {
    const auto push = reinterpret_cast<Push>(function("H5Epush2"));
    const auto* error_class = static_cast<const Id*>(function("H5E_ERR_CLS_g"));
    const auto* major = static_cast<const Id*>(function("H5E_VFL_g"));
    const auto* number = static_cast<const Id*>(function(minor));
    if (push == nullptr || error_class == nullptr || major == nullptr || number == nullptr) return false;
    return push(0, "penstock", "driver", 0, *error_class, *major, *number, "%s", text.c_str()) >= 0;
}

std::string line_of(const Fault& fault, const std::string& file) {
    std::string text = "penstock cannot " + fault.operation;
    if (fault.length_bytes != 0) {
        text += " " + std::to_string(fault.length_bytes) + " bytes at " + std::to_string(fault.offset_bytes) + " of";
    }
    text += " '" + file + "': ";
    if (fault.system_code > 0) text += "errno = " + std::to_string(fault.system_code) + ", error message = '";
    text += fault.cause;
    if (fault.system_code > 0) text += "'";
    if (!fault.advice.empty()) text += "; " + fault.advice;
    return text;
}

void tell(const Fault& fault, const FaultPlace& place) noexcept {
    try {
        const std::string line = line_of(fault, place.file);
        const bool pushed = place.caller.push(place.minor, line);
        if (place.settings.errors != "hdf5") append(place.settings.errors, line + "\n");
        else if (!pushed) append("stderr", line + "\n");
    } catch (const std::exception&) {
        append("stderr", "penstock: out of memory\n");
    }
}

}  // namespace penstock::vfd
