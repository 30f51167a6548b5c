// Mappings: the memory mappings of open files. All workers of a context share them. They are registered with the device
// on demand.
//
// The first view() of a file maps it. It stays mapped until forget(), because lent addresses must stay valid. When the
// file grows, Mappings adds a part and moves none. Registration goes segment by segment, so that transfers can run
// meanwhile. A device copy must stay inside one segment, because the device treats two registrations as two
// allocations. Access to the mapping of a file that shrank raises SIGBUS. So CPU copies run under a FaultGuard or
// through the kernel (process_vm_readv), which report the fault.
//
// Thread-safe. forget() does not wait. Requires for forget(): no operation on the file is left, as FileHandle demands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "penstock/device.hpp"
#include "path/path.hpp"

namespace penstock::path {

class MappedFile;

struct MappingsOptions {
    Device* device = nullptr;                 // registers segments and must outlive this; nullptr: no registration
    std::uint64_t segment_bytes = 64 * kMiB;  // a multiple of the page size
};

class Mappings {
  public:
    explicit Mappings(const MappingsOptions& options = {});
    ~Mappings();
    Mappings(const Mappings&) = delete;
    Mappings& operator=(const Mappings&) = delete;

    // Where the bytes from `offset_bytes` on lie in memory. A view ends at the end of the file as it is now, at the end
    // of a mapped part or, if registered, at the end of the segment.
    struct View {
        std::byte* memory = nullptr;
        std::uint64_t bytes = 0;  // 0: the offset is at or past the end of the file
        bool registered = false;  // all `bytes` are registered
        int error = 0;            // errno when the file cannot be mapped
    };
    View view(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes);

    // Pages that need not stay mapped. `mapping` keeps their mapping alive.
    struct Unneeded {
        std::shared_ptr<const MappedFile> mapping;
        std::span<std::byte> memory;
    };
    // The caller reports that it has copied this range of an unregistered view. Adds to `unneeded` the blocks to unmap
    // now: those that were copied in full, and the oldest partly copied ones if there are too many. So a large file
    // does not count as resident memory of the process. Blocks are large, because each unmapping interrupts every CPU.
    void copied(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes,
                std::vector<Unneeded>& unneeded);
    // A later access maps the pages again. Takes about a millisecond for 16 MiB.
    static void unmap(const Unneeded& unneeded) noexcept;

    // Registers further segments, from the start of the file on, until at least `max_bytes` more are registered.
    // Returns the bytes added. 0 with an empty `why` means that nothing is left to register. 0 with a cause means that
    // the device or the system refused. A refusal is final until forget().
    std::uint64_t register_some(const FileHandle& file, std::uint64_t max_bytes, std::string& why);
    // Returns true if all of the file is registered.
    bool register_all(const FileHandle& file, std::string& why);
    bool registered(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes) const;
    std::string refusal(const FileHandle& file) const;  // the cause of an earlier refusal; empty: none

    // Returns whether the range is still within the file. The caller asks after the device has copied a lent range: if
    // the file was cut short meanwhile, the copy may hold bytes that are no longer in the file.
    static bool still_inside(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept;

    // Unregisters and unmaps.
    void forget(std::uint64_t id);

  private:
    std::shared_ptr<MappedFile> find(std::uint64_t id) const;
    std::shared_ptr<MappedFile> find_or_make(const FileHandle& file);

    MappingsOptions options_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<MappedFile>> files_;  // guarded by mutex_; each file has its own lock
};

}  // namespace penstock::path
