// Mappings: the memory mappings of open files, shared by all workers of a context, registered with the device on
// demand.
//
// A file is mapped when first asked for and stays mapped until forget(), because lent addresses must stay valid. Growth
// adds a part; parts never move. Registration goes segment by segment, so that it can run beside transfers; a device
// copy must stay inside one segment, since two registrations are two allocations to the device. A file that shrinks
// makes its mapping fault: CPU copies go under a FaultGuard or through the kernel (process_vm_readv), which report the
// fault instead of letting SIGBUS end the process.
//
// Thread-safe. forget() waits for nobody: it is called when no operation on the file is left, as FileHandle demands.
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
#include "penstock/path.hpp"

namespace penstock::path {

class MappedFile;

struct MappingsOptions {
    Device* device = nullptr;                 // registers segments; outlives the Mappings; nullptr: nothing registers
    std::uint64_t segment_bytes = 64 * kMiB;  // a multiple of the page size
};

class Mappings {
  public:
    explicit Mappings(const MappingsOptions& options = {});
    ~Mappings();
    Mappings(const Mappings&) = delete;
    Mappings& operator=(const Mappings&) = delete;

    // Where the bytes from `offset` on are, as many as lie in one piece: up to the end of the file as it is now, the
    // end of a mapped part or, when registered, the end of the segment.
    struct View {
        std::byte* memory = nullptr;
        std::uint64_t bytes = 0;  // 0: offset at or past the end of the file
        bool registered = false;  // all of `bytes`
        int error = 0;            // errno when the file cannot be mapped
    };
    View view(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes);

    // Pages that need not stay mapped, and the mapping they are of, which lives as long.
    struct Unneeded {
        std::shared_ptr<const MappedFile> mapping;
        std::span<std::byte> memory;
    };
    // The range of a view that is not registered was copied: its pages need not stay mapped. Adds those to unmap now to
    // `unneeded`: large blocks, once all of a block was copied, or when too many are half done, so that a large file
    // never counts as resident memory of the process, and the price of an unmapping (an interrupt of every CPU) is paid
    // seldom.
    void copied(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes,
                std::vector<Unneeded>& unneeded);
    // The pages come back when somebody reads them; takes a millisecond for 16 MiB.
    static void unmap(const Unneeded& unneeded) noexcept;

    // Registers segments not registered yet, from the start of the file, until at least `max_bytes` more are. Returns
    // the bytes added: 0 with an empty `why` when nothing is left, 0 with the cause when the device or the system
    // refuses; a refusal is remembered and not tried again until forget().
    std::uint64_t register_some(const FileHandle& file, std::uint64_t max_bytes, std::string& why);
    // True when all of the file is registered.
    bool register_all(const FileHandle& file, std::string& why);
    bool registered(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes) const;
    std::string refusal(const FileHandle& file) const;  // the remembered cause; empty: none

    // Whether the range is still within the file. Asked after a device has copied a lent range: a file cut short while
    // the copy ran may have given bytes that no longer exist.
    static bool still_inside(const FileHandle& file, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept;

    // Unregisters and unmaps.
    void forget(std::uint64_t id);

  private:
    std::shared_ptr<MappedFile> find(std::uint64_t id) const;
    std::shared_ptr<MappedFile> find_or_make(const FileHandle& file);

    MappingsOptions options_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<MappedFile>> files_;  // guarded by mutex_; each has its own lock
};

}  // namespace penstock::path
