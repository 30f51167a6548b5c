// Why an operation of the driver failed. It is thrown inside the driver and caught at its edge (plugin.cpp), which
// tells HDF5, whose functions return codes.
#pragma once

#include <cstdint>
#include <string>

#include "penstock.h"

namespace penstock::vfd {

struct Fault {
    std::string operation;
    std::string cause;
    std::string advice;
    int system_code = 0;  // errno
    std::uint64_t offset_bytes = 0;
    std::uint64_t length_bytes = 0;  // 0: of no range
};

// What the system said.
Fault system_fault(const char* operation, int error_number, std::uint64_t offset_bytes = 0,
                   std::uint64_t length_bytes = 0);
// What a function of the C ABI said.
Fault library_fault(const penstock_error& error);

}  // namespace penstock::vfd
