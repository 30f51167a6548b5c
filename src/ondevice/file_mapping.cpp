// See file_mapping.hpp.
#include "ondevice/file_mapping.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "os/file_facts.hpp"

namespace penstock::ondevice {

FileMapping::FileMapping(Device& device, const FileHandle& file, std::uint64_t bytes) : device_(device) {
    const os::FileFacts facts = os::file_facts(file.buffered_fd, file.name);
    if (device.info().emulated) {
        refusal_ = "the emulated device copies as fast through its service";
    } else if (bytes == 0) {
        refusal_ = "the file is empty";
    } else if (facts.file_system != "tmpfs" && facts.file_system != "hugetlbfs" && facts.file_system != "ramfs") {
        refusal_ = facts.file_system + " keeps its data on a disk";
    }
    if (!refusal_.empty()) return;
    const int protection = PROT_READ | (file.writable ? PROT_WRITE : 0);
    void* const memory = ::mmap(nullptr, bytes, protection, MAP_SHARED, file.buffered_fd, 0);
    if (memory == MAP_FAILED) {
        refusal_ = std::string("mmap: ") + std::strerror(errno);
    } else if (!device.register_host(memory, bytes, !file.writable, refusal_)) {
        ::munmap(memory, bytes);
    } else {
        memory_ = {static_cast<std::byte*>(memory), bytes};
    }
}

FileMapping::~FileMapping() {
    if (memory_.empty()) return;
    device_.unregister_host(memory_.data());
    ::munmap(memory_.data(), memory_.size());
}

}  // namespace penstock::ondevice
