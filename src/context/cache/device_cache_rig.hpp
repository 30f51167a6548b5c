// What tests of a DeviceCache share: the device they run on, and the error that an action throws.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "penstock/error.hpp"

namespace penstock::test {

using Bytes = std::vector<unsigned char>;

// The device that PENSTOCK_TEST_DEVICE names, else the emulated one.
inline std::string device_of_test() {
    const char* device = std::getenv("PENSTOCK_TEST_DEVICE");
    return device != nullptr ? device : "host";
}

// The error that the action throws; ok if it throws none.
inline ErrorInfo error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.info();
    }
    return {};
}

}  // namespace penstock::test
