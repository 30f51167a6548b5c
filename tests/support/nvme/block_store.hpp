// The blocks of an emulated controller, in memory or in a file.
#pragma once

#include <string>
#include <vector>

#include "os/system.hpp"
#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

// Thread-safe. Requires: ranges are inside [0, bytes()). Functions return false if the storage failed.
class BlockStore {
  public:
    virtual ~BlockStore() = default;
    virtual u64 bytes() const = 0;
    virtual bool read(u64 offset, u8* data, u64 bytes) = 0;
    virtual bool write(u64 offset, const u8* data, u64 bytes) = 0;
    virtual bool flush() = 0;
};

class MemoryBlocks : public BlockStore {
  public:
    explicit MemoryBlocks(u64 bytes) : bytes_(bytes) {}
    u64 bytes() const override { return bytes_.size(); }
    bool read(u64 offset, u8* data, u64 bytes) override;
    bool write(u64 offset, const u8* data, u64 bytes) override;
    bool flush() override { return true; }

  private:
    std::vector<u8> bytes_;
};

// The first `bytes` of a file that the caller keeps open. Reads past the end of a shorter file fail.
class FileBlocks : public BlockStore {
  public:
    FileBlocks(int fd, u64 bytes, os::System& system = os::real_system()) : fd_(fd), bytes_(bytes), system_(system) {}
    u64 bytes() const override { return bytes_; }
    bool read(u64 offset, u8* data, u64 bytes) override;
    bool write(u64 offset, const u8* data, u64 bytes) override;
    bool flush() override { return system_.fdatasync(fd_) == 0; }

  private:
    int fd_;
    u64 bytes_;
    os::System& system_;
};

}  // namespace penstock::ondevice
