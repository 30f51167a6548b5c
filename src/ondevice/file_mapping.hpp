// A file in memory (tmpfs, hugetlbfs) mapped and registered with a GPU, so that its kernels reach the bytes themselves.
#pragma once

#include <span>
#include <string>

#include "penstock/device.hpp"
#include "penstock/path.hpp"

namespace penstock::ondevice {

class FileMapping {
  public:
    // Empty, with the cause in refusal(), where the file or the device does not allow it.
    FileMapping(Device& device, const FileHandle& file, std::uint64_t bytes);
    ~FileMapping();
    FileMapping(const FileMapping&) = delete;
    FileMapping& operator=(const FileMapping&) = delete;

    std::byte* data() const noexcept { return memory_.data(); }
    const std::string& refusal() const noexcept { return refusal_; }

  private:
    Device& device_;
    std::span<std::byte> memory_;
    std::string refusal_;
};

}  // namespace penstock::ondevice
