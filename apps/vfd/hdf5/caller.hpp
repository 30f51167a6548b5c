// The HDF5 library that calls the driver, as far as it can be found: the plugin is linked with none, because wheels
// bring their own under names of their own. What a return address belongs to is the library; its error stack and the
// text of its access list are asked by name. Where they are not to be had, there is the environment, and stderr.
#pragma once

#include <string>

#include "vfd/fault.hpp"
#include "vfd/hdf5/driver_class.hpp"
#include "vfd/settings.hpp"

namespace penstock::vfd {

class Caller {
  public:
    Caller() = default;
    explicit Caller(const void* return_address) noexcept;

    // What the program or HDF5_DRIVER_CONFIG gave for this driver.
    std::string config(Id access) const;
    // Files that are opened with this access list have no chunk cache. HDF5 reads the list after the driver's open.
    // Throws Fault.
    void drop_chunk_cache(Id access) const;
    // One of HDF5's, or nullptr.
    void* function(const char* name) const noexcept;
    // Puts the fault where programs find errors of HDF5. False: there is no such place.
    bool push(const char* minor, const std::string& text) const noexcept;

  private:
    void* library_ = nullptr;  // never closed: it is running
};

// One line: operation, range, file, cause and advice. h5py makes its exceptions from "errno = N".
std::string line_of(const Fault& fault, const std::string& file);

// Where a fault came up, and where it is to be told.
struct FaultPlace {
    const std::string& file;
    const char* minor;  // HDF5's number for such a fault, by the name of the variable that holds it
    const Settings& settings;
    const Caller& caller;
};
void tell(const Fault& fault, const FaultPlace& place) noexcept;

}  // namespace penstock::vfd
