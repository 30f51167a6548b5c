// See stripes.hpp. The offsets are those of lov_user_md_v1, lov_user_md_v3, lov_comp_md_v1 and lov_comp_md_entry_v1 of
// Lustre's interface for users; numbers have the lowest byte first.
#include "os/servers/stripes.hpp"

#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>

namespace penstock::os {
namespace {

constexpr std::uint64_t kPlainMagic = 0x0BD10BD0, kPoolMagic = 0x0BD30BD0;
constexpr std::uint64_t kPartsMagic = 0x0BD60BD0, kExtendedMagic = 0x0BD80BD0;
constexpr std::size_t kPlainBytes = 32, kInPoolBytes = 48;
constexpr std::size_t kPatternOffset = 4, kStripeBytesOffset = 24, kServersOffset = 28;
constexpr std::size_t kPartsOffset = 14, kPartsHeadBytes = 32, kPartBytes = 48;
constexpr std::size_t kFlagsOffset = 4, kEndOffset = 16, kLayoutOffset = 24, kLayoutBytesOffset = 28;
constexpr std::uint64_t kHasNoData = 0x40 | 0x80;    // flags of a part: room to extend another one, or parity of one
constexpr std::uint64_t kOnMetadataServer = 0x100;    // pattern of a part without stripes
constexpr std::uint64_t kFirstOfAllServers = 0xFFE0;  // -1: each server once, -2: twice, ... -32
constexpr std::uint64_t kStripeMultiple = 64 * 1024;
constexpr std::size_t kMostAttributeBytes = 64 * 1024;  // of a value, by Linux

using Bytes = std::span<const std::byte>;

// Requires: the bytes are there.
std::uint64_t number(Bytes bytes, std::size_t offset, std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
    return value;
}

std::optional<ServerStripes> parse_one(Bytes layout) {
    if (layout.size() < kPlainBytes) return {};
    const std::uint64_t magic = number(layout, 0, 4);
    if (magic != kPlainMagic && (magic != kPoolMagic || layout.size() < kInPoolBytes)) return {};
    if ((number(layout, kPatternOffset, 4) & kOnMetadataServer) != 0) return {};
    ServerStripes found{.bytes = number(layout, kStripeBytesOffset, 4)};
    if (found.bytes % kStripeMultiple != 0) return {};
    const std::uint64_t servers = number(layout, kServersOffset, 2);
    found.on_all_servers = servers >= kFirstOfAllServers;
    if (!found.on_all_servers) found.servers = static_cast<std::uint32_t>(servers);
    return found;
}

std::optional<ServerStripes> parse_parts(Bytes layout) {
    if (layout.size() < kPartsHeadBytes) return {};
    const std::uint64_t parts = number(layout, kPartsOffset, 2);
    if (parts > (layout.size() - kPartsHeadBytes) / kPartBytes) return {};
    std::optional<ServerStripes> found;
    std::uint64_t found_end = 0;
    for (std::uint64_t i = 0; i < parts; ++i) {
        const Bytes part = layout.subspan(kPartsHeadBytes + i * kPartBytes, kPartBytes);
        const std::uint64_t offset = number(part, kLayoutOffset, 4), bytes = number(part, kLayoutBytesOffset, 4);
        if (offset > layout.size() || bytes > layout.size() - offset) return {};
        const std::uint64_t end = number(part, kEndOffset, 8);
        if ((number(part, kFlagsOffset, 4) & kHasNoData) != 0 || end <= found_end) continue;
        const std::optional<ServerStripes> one = parse_one(layout.subspan(offset, bytes));
        if (!one) continue;
        found = one;
        found_end = end;
        found->parts = static_cast<std::uint32_t>(parts);
    }
    return found;
}

}  // namespace

std::optional<ServerStripes> parse_lustre_layout(std::span<const std::byte> layout) {
    if (layout.size() < 4) return {};
    const std::uint64_t magic = number(layout, 0, 4);
    return magic == kPartsMagic || magic == kExtendedMagic ? parse_parts(layout) : parse_one(layout);
}

ExtendedAttribute extended_attribute(const std::string& path, const char* name) {
    ExtendedAttribute found{.value = std::vector<std::byte>(kMostAttributeBytes)};
    const ssize_t bytes = ::getxattr(path.c_str(), name, found.value.data(), found.value.size());
    if (bytes < 0) found.error = errno;
    found.value.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    return found;
}

}  // namespace penstock::os
