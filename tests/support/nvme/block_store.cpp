// See block_store.hpp.
#include "support/nvme/block_store.hpp"

#include <cerrno>
#include <cstring>

namespace penstock::ondevice {

bool MemoryBlocks::read(u64 offset, u8* data, u64 bytes) {
    std::memcpy(data, bytes_.data() + offset, bytes);
    return true;
}

bool MemoryBlocks::write(u64 offset, const u8* data, u64 bytes) {
    std::memcpy(bytes_.data() + offset, data, bytes);
    return true;
}

bool FileBlocks::read(u64 offset, u8* data, u64 bytes) {
    while (bytes > 0) {
        const ssize_t count = system_.pread(fd_, data, bytes, offset);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        offset += static_cast<u64>(count);
        data += count;
        bytes -= static_cast<u64>(count);
    }
    return true;
}

bool FileBlocks::write(u64 offset, const u8* data, u64 bytes) {
    while (bytes > 0) {
        const ssize_t count = system_.pwrite(fd_, data, bytes, offset);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        offset += static_cast<u64>(count);
        data += count;
        bytes -= static_cast<u64>(count);
    }
    return true;
}

}  // namespace penstock::ondevice
