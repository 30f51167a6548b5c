// The files of an array in memory (tmpfs, hugetlbfs), mapped and registered with a GPU, so that its kernels reach the
// bytes themselves. If the array lies in stripes, each stripe is mapped behind the one before it, whichever file has
// it, so that the GPU sees one array.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "ondevice/files/file_set.hpp"
#include "penstock/device.hpp"

namespace penstock::ondevice {

// All bytes of an array, shared with its files.
class MappedFiles {
  public:
    MappedFiles() = default;
    // Maps the files. If that cannot be, the object is empty and `refusal` has the cause.
    MappedFiles(const FileSet& set, const FileLayout& layout, std::string& refusal);
    ~MappedFiles();
    MappedFiles(MappedFiles&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
    MappedFiles& operator=(MappedFiles&& other) noexcept {
        std::swap(memory_, other.memory_);
        return *this;
    }

    std::byte* data() const noexcept { return memory_.data(); }
    std::uint64_t bytes() const noexcept { return memory_.size(); }

  private:
    std::span<std::byte> memory_;
};

class FileMapping {
  public:
    enum class Devices { gpus, all };  // all: emulated ones too, which copy as fast through a service
    // Maps and registers the files. If a file or the device does not allow it, the object is empty and refusal() has
    // the cause.
    FileMapping(Device& device, const FileSet& set, const FileLayout& layout, Devices devices = Devices::gpus);
    ~FileMapping();
    FileMapping(const FileMapping&) = delete;
    FileMapping& operator=(const FileMapping&) = delete;

    std::byte* data() const noexcept { return memory_.data(); }
    const std::string& refusal() const noexcept { return refusal_; }

  private:
    Device& device_;
    MappedFiles memory_;  // empty, or registered
    std::string refusal_;
};

}  // namespace penstock::ondevice
