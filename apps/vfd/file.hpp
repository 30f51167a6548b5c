// A file that HDF5 has open through this driver: its descriptor, its ends, its lock, and what moved.
//
// Two ends, as HDF5 knows them: that of allocation is what HDF5 decided, that of the file is where bytes are. They
// become one by `truncate`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "vfd/hdf5/caller.hpp"
#include "vfd/hdf5/driver_class.hpp"
#include "vfd/mover.hpp"
#include "vfd/settings.hpp"
#include "vfd/tally.hpp"

namespace penstock::vfd {

// Closes with its owner.
class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const noexcept { return fd_; }
    void close();  // throws what the system says

  private:
    int fd_;
};

class File final : public FileHead {
  public:
    // Throws Fault, with the system's errno where it refuses the file.
    File(const char* name, unsigned flags, const Settings& settings, const Caller& caller);

    const std::string& name() const noexcept { return name_; }
    const Settings& settings() const noexcept { return settings_; }
    const Caller& caller() const noexcept { return caller_; }
    Mover& mover() noexcept { return mover_; }
    int* handle() noexcept { return &handle_; }
    int compare(const File& other) const noexcept;

    Address end_of_allocation = 0;
    Address end_of_file() const noexcept { return end_of_file_; }
    void wrote(Address end) noexcept { end_of_file_ = end > end_of_file_ ? end : end_of_file_; }
    void truncate();
    void lock(bool exclusive);
    void unlock();
    unsigned long features() const noexcept;
    // Throws what was told late; the evidence is told in any case.
    void close();

  private:
    void tell_evidence() const;

    std::string name_;
    Settings settings_;
    Caller caller_;
    Descriptor descriptor_;
    int handle_;
    Tally tally_;
    Mover mover_;
    Address end_of_file_ = 0;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace penstock::vfd
