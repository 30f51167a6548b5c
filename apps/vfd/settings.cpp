// See settings.hpp.
#include "vfd/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "vfd/fault.hpp"

namespace penstock::vfd {
namespace {

[[noreturn]] void refuse(std::string cause) {
    throw Fault{"open", std::move(cause),
                "HDF5_DRIVER_CONFIG takes evidence=, errors=, memory=, device=, path=, large= and chunk_cache=, "
                "with commas between"};
}

std::uint64_t bytes_of(std::string_view text) {
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
    const int shift = unit.empty() ? 0 : unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : -1;
    if (error != std::errc{} || shift < 0 || number == 0 || number > (std::uint64_t{1} << 40 >> shift)) {
        refuse("large=" + std::string(text) + " is no size: write 4MiB or a number of bytes");
    }
    return number << shift;
}

MemoryUse memory_of(std::string_view text) {
    if (text == "auto") return MemoryUse::automatic;
    if (text == "host") return MemoryUse::host;
    if (text == "device") return MemoryUse::device;
    refuse("memory=" + std::string(text) + " is none of auto, host and device");
}

bool is_on(std::string_view value) {
    if (value != "on" && value != "off") refuse("chunk_cache=" + std::string(value) + " is none of on and off");
    return value == "on";
}

void take(Settings& settings, std::string_view word) {
    const std::size_t at = word.find('=');
    if (at == std::string_view::npos) refuse("'" + std::string(word) + "' has no =");
    const std::string_view key = word.substr(0, at), value = word.substr(at + 1);
    if (value.empty()) refuse(std::string(key) + "= has no value");
    if (key == "evidence") settings.evidence = value;
    else if (key == "errors") settings.errors = value;
    else if (key == "memory") settings.memory = memory_of(value);
    else if (key == "device") settings.device = value;
    else if (key == "path") settings.path = value;
    else if (key == "large") settings.large_bytes = bytes_of(value);
    else if (key == "chunk_cache") settings.chunk_cache = is_on(value);
    else refuse("there is no key '" + std::string(key) + "'");
}

}  // namespace

Settings parse_settings(std::string_view text) {
    Settings settings;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(','), text.size());
        if (end != 0) take(settings, text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return settings;
}

// Nodes of NVIDIA's driver, and of Linux under Windows.
bool may_be_device(const Settings& settings) noexcept {
    if (settings.memory != MemoryUse::automatic) return settings.memory == MemoryUse::device;
    return settings.device == "host" || ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
}

}  // namespace penstock::vfd
