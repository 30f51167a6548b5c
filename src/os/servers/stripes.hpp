// ServerStripes: how a parallel file system deals the bytes of a file out over its servers.
//
// Lustre tells it by the extended attribute lustre.lov of a file, or of a folder whose new files get it. A server makes
// those bytes, so nothing in them is trusted. A layout may have parts, each for a range of the file: the one that
// reaches furthest counts, as large data lie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::os {

inline constexpr const char* kLustreLayout = "lustre.lov";

struct ServerStripes {
    std::uint64_t bytes = 0;    // of one; 0: the file system's own choice
    std::uint32_t servers = 0;  // that have them in turn; 0: the file system's own choice
    bool on_all_servers = false;
    std::uint32_t parts = 1;  // of the layout
};

// None: the value is damaged, or of a kind that this does not know, or no part of it has stripes.
std::optional<ServerStripes> parse_lustre_layout(std::span<const std::byte> layout);

struct ExtendedAttribute {
    std::vector<std::byte> value{};
    int error = 0;  // errno of getxattr; 0: the value is there
};

ExtendedAttribute extended_attribute(const std::string& path, const char* name);

}  // namespace penstock::os
