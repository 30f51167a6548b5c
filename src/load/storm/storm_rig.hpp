// What tests of storms share: the device under test, the stamps of a file, and the counts of a service.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "load/storm/storm.hpp"

namespace penstock::load {

inline std::shared_ptr<Device> test_device() {
    const char* device = std::getenv("PENSTOCK_TEST_DEVICE");
    return make_device(device != nullptr ? device : "host");
}

inline std::vector<unsigned char> stamped(std::uint64_t bytes, std::uint64_t seed) {
    std::vector<unsigned char> content(bytes);
    for (std::uint64_t at = 0; at < bytes; at += 8) {
        const std::uint64_t word = stamp_word(seed, at / 8);
        std::memcpy(&content[at], &word, 8);
    }
    return content;
}

inline std::uint64_t served(const StormReport& report) {
    std::uint64_t sum = 0;
    for (const auto& one : report.served.by_source) sum += one.requests;
    return sum;
}

}  // namespace penstock::load
