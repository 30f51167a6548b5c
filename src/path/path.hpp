// The Path contract: one way of moving bytes between a file and memory, behind three functions.
//
// A path is dumb on purpose. It moves what it is told and reports what happened, short counts and EINTR included;
// splitting, alignment, staging, overlap, retries and evidence live in the engine, once. One thread owns a path.
// The destructor waits for operations in flight: after it, neither path nor kernel touches their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "penstock/device.hpp"
#include "penstock/error.hpp"
#include "penstock/types.hpp"

namespace penstock {

// What a path needs to know of an open file. Owned by the File that outlives every operation on it.
struct FileHandle {
    std::uint64_t id = 0;             // unique in the process; keys per-file caches inside paths
    std::string name;                 // as the user gave it, for messages
    int buffered_fd = -1;             // opened without O_DIRECT
    int direct_fd = -1;               // opened with O_DIRECT; -1 when the file system refuses
    std::uint32_t offset_alignment = 4096;  // of O_DIRECT offsets and lengths
    std::uint32_t memory_alignment = 4096;  // of O_DIRECT memory
    bool writable = false;
};

// Where Operation::memory must live.
enum class OperationMemory : std::uint8_t {
    host,    // any host memory (aligned if the path bypasses the cache)
    device,  // device memory; the path reaches it by itself, no staging
    lent,    // reads only: the path answers with Completion::lent, memory it owns, valid while the file is open
};

struct Capabilities {
    PathKind kind = PathKind::null;
    OperationMemory memory = OperationMemory::host;
    bool reads = true;
    bool writes = true;
    bool bypasses_cache = false;   // needs FileHandle::direct_fd and aligned operations
    bool asynchronous = false;     // submit returns before the work is done
    std::uint32_t max_in_flight = 1;   // submitted and not yet reaped
    std::uint64_t max_bytes = 1u << 30;  // of one operation
    std::string notes;             // what it could not set up, e.g. "registered buffers: memlock limit 64 KiB"
};

struct Operation {
    Direction direction = Direction::read;
    const FileHandle* file = nullptr;
    std::uint64_t offset_bytes = 0;
    void* memory = nullptr;        // nullptr only where memory == lent
    std::uint64_t bytes = 0;       // > 0
    std::uint64_t tag = 0;         // comes back in the completion
    bool staging = false;          // memory is the engine's own: known to be good, not a pointer that a caller gave
};

struct Completion {
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;       // moved; fewer than asked is not an error at this level; 0 with ok at end of file
    ErrorCode status = ErrorCode::ok;
    int system_code = 0;           // errno (EINTR and EAGAIN included) or library code
    const void* lent = nullptr;    // OperationMemory::lent: where the bytes are
    bool lent_pinned = false;      // the device may copy from `lent` asynchronously
};

class Path {
  public:
    virtual ~Path() = default;
    virtual const Capabilities& capabilities() const noexcept = 0;
    // Takes operations in order until its queue is full; returns how many it took. An operation it cannot do (wrong
    // memory, no direct_fd) is taken and completes with an error. Never throws, never blocks on a full queue. A
    // synchronous path does the work here.
    virtual std::size_t submit(std::span<const Operation> operations) = 0;
    // Fills completions, in any order; waits until there is at least one, or the deadline passed, or nothing is in
    // flight. Returns how many.
    virtual std::size_t reap(std::span<Completion> completions, Deadline deadline) = 0;
    // Does the chores that no transfer waits for (unmapping what was copied). The engine calls it now and then, when it
    // has nothing in hand that a caller waits for. A path that is never tidied does its chores in submit and in its
    // destructor.
    virtual void tidy() noexcept {}
};

namespace os {
class System;
}
namespace path {
class CuFile;
class Mappings;
class MemoryStore;
}  // namespace path

// What a path is made from. Only what the kind needs has to be set.
struct PathOptions {
    std::uint32_t depth = 8;                 // operations in flight, for asynchronous paths
    std::span<std::byte> arena{};            // staging memory that operations will use: registered where it helps
    Device* device = nullptr;
    Stream* stream = nullptr;                // gds-stream
    os::System* system = nullptr;            // system calls; nullptr: the real ones
    std::shared_ptr<path::CuFile> cufile{};  // gds*
    std::shared_ptr<path::Mappings> mappings{};     // mmap
    std::shared_ptr<path::MemoryStore> store{};     // memory
};

// Throws Error{unsupported} when this machine or build has no such path, with the reason.
std::unique_ptr<Path> make_path(PathKind kind, const PathOptions& options);

}  // namespace penstock
