// See dirty.hpp.
#include "os/file/dirty.hpp"

#include <array>
#include <fstream>
#include <string_view>

#include "os/limits.hpp"

namespace penstock::os {

std::optional<std::uint64_t> dirty_room_bytes(const std::string& root) {
    constexpr std::array<std::string_view, 4> kNames{"nr_dirty", "nr_writeback", "nr_dirty_threshold",
                                                     "nr_dirty_background_threshold"};
    std::array<std::uint64_t, kNames.size()> pages{};
    std::size_t found = 0;
    std::ifstream file(root + "/proc/vmstat");
    std::string name;
    for (std::uint64_t value = 0; found < kNames.size() && file >> name >> value;) {
        for (std::size_t i = 0; i < kNames.size(); ++i) {
            if (name == kNames[i]) pages[i] = value, ++found;
        }
    }
    if (found < kNames.size()) return std::nullopt;
    const auto [dirty, writeback, threshold, background] = pages;
    const std::uint64_t free_run = (threshold + background) / 2;
    const std::uint64_t used = dirty + writeback;
    return used >= free_run ? 0 : (free_run - used) * page_bytes();
}

}  // namespace penstock::os
