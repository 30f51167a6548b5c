// A machine profile: what one transfer takes on one machine and one file system, measured, as rows one can read.
//
// `penstock calibrate` writes profiles; the policy chooses by them. The file is text: "# key: value" lines that say
// which machine and file system it is of, then CSV with one row a measurement (docs/profile.md has the columns). A
// profile of another machine, kernel, driver or file system is refused with what differs: its numbers say nothing here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/types.hpp"

namespace penstock {

// What costs depend on besides the file system. Two machines that agree in all of it may share a profile.
struct MachineIdentity {
    std::string cpu;             // model name
    std::uint64_t cores = 0;     // that the process may use
    std::uint64_t memory_bytes = 0;
    std::uint64_t page_bytes = 0;
    std::string architecture;    // "x86_64", "aarch64"
    std::string kernel;          // release
    std::string device;          // model
    std::uint64_t driver = 0;    // CUDA driver version; 0 on the emulated device
    friend bool operator==(const MachineIdentity&, const MachineIdentity&) = default;
};

struct PlaceIdentity {
    std::string file_system;     // "ext4", "tmpfs", "nfs4", ...
    std::string mount_options;   // as public_mount_options leaves them
    std::string disk;            // name, model and sectors of the block device; empty where there is none
    friend bool operator==(const PlaceIdentity&, const PlaceIdentity&) = default;
};

// One measurement. What is 0 or automatic was left to the policy.
struct ProfileRow {
    Direction direction = Direction::read;
    bool cached = false;         // the range was in the page cache before
    PathKind path = PathKind::buffered;
    MemoryKind memory = MemoryKind::device;
    FirstTouch first_touch = FirstTouch::gpu;
    bool aligned = true;         // offset and length are multiples of a page
    std::uint32_t workers = 0;
    std::uint32_t depth = 0;
    std::uint64_t chunk_bytes = 0;
    std::uint64_t bytes = 0;     // of the request; > 0
    double seconds = 0;          // median; > 0
    double synced_seconds = 0;   // of writes, to stable storage; 0: not measured
    std::uint32_t samples = 0;
    friend bool operator==(const ProfileRow&, const ProfileRow&) = default;
};

struct Profile {
    std::string name;            // of the file, for messages; not part of the text
    std::string measured;        // day, "2026-11-21"
    MachineIdentity machine;
    PlaceIdentity place;
    std::vector<ProfileRow> rows;
    friend bool operator==(const Profile&, const Profile&) = default;
};

// The options of a mount without repetition and without those that name machines, users or folders (an NFS server's
// address, an overlay's directories): they say nothing of speed, and profiles and results are passed around.
std::string public_mount_options(std::string_view options);

// Throws Error{invalid_argument} naming file, line and what is wrong with it.
Profile parse_profile(std::string_view text, const std::string& name);
// What parse_profile reads, rows in the order they have.
std::string profile_text(const Profile& profile);

// What differs, in words: "kernel 6.1.0 there, 6.8.0 here"; empty when nothing does. Memory may differ by 2 %, which is
// what kernels keep for themselves.
std::string difference(const MachineIdentity& there, const MachineIdentity& here);
std::string difference(const PlaceIdentity& there, const PlaceIdentity& here);

}  // namespace penstock
