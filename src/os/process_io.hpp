// The system's counters of this process and of a disk, from which evidence is made.
//
// Each function takes one snapshot. The difference of two says what happened in between, in the whole process or on the
// whole disk. nullopt means that the counter cannot be read here, which differs from zero.
#pragma once

#include <cstdint>
#include <optional>

#include "penstock/evidence.hpp"

namespace penstock::os {

std::optional<ProcessIo> process_io();  // /proc/self/io
ProcessIo difference(const ProcessIo& after, const ProcessIo& before) noexcept;

struct CpuTime {
    double user_s = 0;
    double system_s = 0;
};
CpuTime cpu_time() noexcept;  // of all threads of the process
CpuTime difference(const CpuTime& after, const CpuTime& before) noexcept;

struct DiskIo {
    std::uint64_t read_bytes = 0;
    std::uint64_t write_bytes = 0;
    std::uint64_t read_operations = 0;
    std::uint64_t write_operations = 0;
};
// Reads /sys/dev/block/major:minor/stat. Returns nullopt for file systems without a block device of their own.
std::optional<DiskIo> disk_io(unsigned device_major, unsigned device_minor);
DiskIo difference(const DiskIo& after, const DiskIo& before) noexcept;

}  // namespace penstock::os
