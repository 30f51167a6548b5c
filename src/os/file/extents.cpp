// See extents.hpp. An overlay passes these calls to the file below it.
#include "os/file/extents.hpp"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace penstock::os {
namespace {

constexpr unsigned kExtents = 64;  // fetched by one call
constexpr int kRounds = 16;
constexpr std::uint32_t kEncodedExtents = FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL;

// The kernel's struct, followed by room for the extents.
class Map {
  public:
    bool ask(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
        head() = {};
        head().fm_start = offset;
        head().fm_length = bytes;
        head().fm_extent_count = kExtents;
        return ::ioctl(fd, FS_IOC_FIEMAP, room_.data()) == 0;
    }
    unsigned count() const noexcept { return head().fm_mapped_extents; }
    const fiemap_extent& operator[](unsigned i) const noexcept { return head().fm_extents[i]; }

  private:
    struct fiemap& head() noexcept { return *reinterpret_cast<struct fiemap*>(room_.data()); }
    const struct fiemap& head() const noexcept { return *reinterpret_cast<const struct fiemap*>(room_.data()); }
    alignas(struct fiemap) std::array<std::byte, sizeof(struct fiemap) + kExtents * sizeof(fiemap_extent)> room_;
};

}  // namespace

std::optional<std::uint64_t> encoded_bytes(int fd, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept {
    const std::uint64_t end = offset_bytes + bytes;
    std::uint64_t at = offset_bytes;
    std::uint64_t encoded = 0;
    Map map;
    for (int round = 0; round < kRounds && at < end; ++round) {
        if (!map.ask(fd, at, end - at)) return std::nullopt;
        for (unsigned i = 0; i < map.count(); ++i) {
            const fiemap_extent& extent = map[i];
            const std::uint64_t from = std::max<std::uint64_t>(extent.fe_logical, at);
            const std::uint64_t to = std::min<std::uint64_t>(extent.fe_logical + extent.fe_length, end);
            if (to <= from) continue;
            if ((extent.fe_flags & kEncodedExtents) != 0) encoded += to - from;
            at = to;
        }
        if (map.count() < kExtents) return encoded;
    }
    return at < end ? std::nullopt : std::optional(encoded);
}

bool tells_extents(int fd) noexcept {
    Map map;
    return map.ask(fd, 0, 1);
}

bool written_in_place(int fd) noexcept {
    int flags = 0;
    return ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_NOCOW_FL) != 0;
}

}  // namespace penstock::os
