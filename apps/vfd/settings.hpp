// What the user asks of the driver by HDF5_DRIVER_CONFIG: `key=value`, separated by commas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::vfd {

enum class MemoryUse : std::uint8_t { automatic, host, device };

struct Settings {
    std::string evidence;           // "": none, "stderr", or a file that lines of JSON are added to
    std::string errors = "hdf5";    // "hdf5": its error stack, "stderr", or a file
    MemoryUse memory = MemoryUse::automatic;  // whether programs may pass device memory
    std::string device = "auto";    // which device moves it: "auto", the one that it belongs to
    std::string path = "auto";      // of large requests
    bool chunk_cache = true;        // of HDF5, where programs may pass device memory
    std::uint64_t large_bytes = std::uint64_t{4} << 20;  // from here on a request is a transfer
};

// Throws Fault with the keys that there are.
Settings parse_settings(std::string_view text);
// Whether programs may pass device memory: automatic means that this machine has a GPU.
bool may_be_device(const Settings& settings) noexcept;

}  // namespace penstock::vfd
