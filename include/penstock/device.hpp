// The Device contract: memory, streams, events, copies and pattern checks, on a GPU or on its emulation.
//
// Two implementations: `cuda` (a real GPU) and `host` (an emulated GPU on ordinary memory, with in-order streams run by
// threads, so that overlap and ordering mistakes show without a GPU). Everything above this line of the code is written
// once against this contract and never names CUDA. All functions are safe to call from any thread; a Stream is used by
// one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/box.hpp"
#include "penstock/sort/cell_sort.hpp"
#include "penstock/checksum.hpp"
#include "penstock/error.hpp"
#include "penstock/pack.hpp"
#include "penstock/types.hpp"

namespace penstock {

enum class CopyDirection : std::uint8_t { to_device, to_host };

// One piece of a batched copy. Host pointers are pinned (or host-device) memory.
struct CopyPiece {
    void* destination = nullptr;
    const void* source = nullptr;
    std::uint64_t bytes = 0;
};

struct DeviceInfo {
    std::string name;         // "cuda:0", "host"
    std::string model;        // "NVIDIA H200", "emulated GPU on host memory"
    int index = 0;            // CUDA ordinal; 0 for host
    bool emulated = false;
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
    int numa_node = -1;       // the node nearest to the device; -1: unknown or no NUMA
    std::string bus;          // PCI address; empty when there is none
    bool coherent_with_host = false;  // device may touch ordinary host memory at speed (C2C links)
    bool registers_mappings = false;  // host-registering memory is possible at all
    int driver_version = 0;   // CUDA driver version, 0 on host
    int runtime_version = 0;
};

// Which memory a pointer belongs to. `kind` is meaningful only if `known`.
struct PointerInfo {
    bool known = false;
    MemoryKind kind = MemoryKind::system;
    int device_index = -1;
    const void* base = nullptr;  // start of the allocation where the device can tell
    std::uint64_t bytes = 0;     // size of the allocation from base; 0 when unknown
};

// First mismatch of a stamped range, found on the device.
struct StampCheck {
    std::uint64_t bad_bytes = 0;          // bytes that differ (counted by 8-byte words, tail by bytes)
    std::uint64_t first_bad_offset = 0;   // file offset of the first bad word; meaningful if bad_bytes > 0
};

// A point in a stream. Re-recordable; destroyed with its owner.
class Event {
  public:
    virtual ~Event() = default;
    // True when everything before the recorded point is done. An event never recorded is done. Throws
    // Error{device_error} when the device failed.
    virtual bool done() = 0;
    // Waits without burning a core where the device can (blocking synchronisation), until done or the deadline. True:
    // done.
    virtual bool wait(Deadline deadline) = 0;
};

// An in-order queue of device work.
class Stream {
  public:
    virtual ~Stream() = default;  // waits for queued work
    virtual void copy(CopyDirection direction, void* destination, const void* source, std::uint64_t bytes) = 0;
    // Many small copies as one piece of work (one kernel on a GPU). `pieces` may be reused once this returns. Host side
    // memory must be pinned memory of this device.
    virtual void copy_batch(CopyDirection direction, std::span<const CopyPiece> pieces) = 0;
    // Boxes between memories the device can address, its own or pinned; see box.hpp. `boxes` may be reused once this
    // returns. Throws Error{invalid_argument} before anything is queued when a box makes no sense.
    virtual void copy_boxes(std::span<const Box> boxes) = 0;
    // Each item of the boxes becomes `item`, of 1 to kFillItemBytes bytes. `item` may be reused once this returns.
    virtual void fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item) = 0;
    // Numbers that are converted between memories the device can address, its own or pinned; see pack.hpp. `packs` may
    // be reused once this returns. Throws Error{invalid_argument} before anything is queued when a pack makes no sense.
    virtual void pack(std::span<const Pack> packs) = 0;
    // Of positions in memory the device can address, its order too; see cell_sort.hpp. Synchronous. Throws
    // Error{invalid_argument} of a grid that makes no sense, Error{unsupported} of too many particles, and
    // Error{out_of_memory} that says how many bytes a sort takes besides the order.
    virtual CellsFound sort_cells(const CellSort& sort) = 0;
    // Rows between memories the device can address, by an order that it can address too.
    virtual void gather(const RowGather& gather) = 0;
    virtual void record(Event& event) = 0;
    virtual void wait(Event& event) = 0;  // later work of this stream waits for the event
    // Order beside a stream that others made, a cudaStream_t as a number (see Device::synchronize_native); no thread
    // waits for a GPU. follow: later work of this stream waits for what is queued there now. lead: later work there
    // waits for what is queued here now. The work of a default stream of the host is its threads' own, so that there
    // lead() waits. Throws Error{invalid_argument} of a stream that does not exist, where the device can tell.
    virtual void follow(std::uintptr_t native) = 0;
    virtual void lead(std::uintptr_t native) = 0;
    virtual void synchronize() = 0;       // spins: for short waits
    // The same, for a caller who expects the end within some microseconds: a GPU may tell of it sooner.
    virtual void synchronize_soon() { synchronize(); }
    // One copy to the device after the work that is queued now on a native stream. Returns when both are done. Throws
    // as follow().
    virtual void copy_after(std::uintptr_t native, const CopyPiece& piece) {
        follow(native);
        copy(CopyDirection::to_device, piece.destination, piece.source, piece.bytes);
        synchronize_soon();
    }
    // Stamped pattern: 8-byte little-endian words, word w of the file is stamp_word(seed, w); see penstock/stamp.hpp.
    virtual void stamp(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) = 0;
    virtual StampCheck verify_stamp(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                                    std::uint64_t seed) = 0;  // synchronous
    // Of each range, in memory the device can address; synchronous.
    virtual std::vector<std::uint32_t> checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) = 0;
    virtual void fill(void* memory, std::uint64_t bytes, int byte_value) = 0;
    virtual void* native_handle() noexcept = 0;  // cudaStream_t; what names the stream to the emulated device
};

class Device {
  public:
    virtual ~Device() = default;
    virtual const std::string& name() const noexcept = 0;
    virtual DeviceInfo info() = 0;  // asks for free memory each time

    // Throws Error{out_of_memory} naming kind and size. Aligned to at least 4096. bytes > 0.
    virtual void* allocate(MemoryKind kind, std::uint64_t bytes) = 0;
    virtual void release(MemoryKind kind, void* memory) noexcept = 0;

    // Makes existing host memory (a mapping, a caller's array) fit for asynchronous copies. False, with the cause in
    // `why`, when the device refuses this memory. `read_only` for mappings that may not be written.
    virtual bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) = 0;
    virtual void unregister_host(void* memory) noexcept = 0;

    // With no GPU behind a pointer, known=false: it is ordinary host memory, or garbage, which no device can tell.
    virtual PointerInfo pointer_info(const void* memory) = 0;

    virtual std::unique_ptr<Stream> make_stream() = 0;
    virtual std::unique_ptr<Event> make_event() = 0;
    // Makes the device current for the calling thread. Each thread of Penstock's own calls it once.
    virtual void enter_thread() = 0;
    // The same for one call on a thread of the caller: leave_call makes current what was. See DeviceScope.
    virtual void enter_call() = 0;
    virtual void leave_call() noexcept = 0;
    // Waits for the work queued so far on a stream that others made: a cudaStream_t as a number, 0 (or 1, as DLPack and
    // the CUDA array interface write it) for the default stream. It must exist. The emulated device knows its own
    // streams, and 0, where nothing is ever queued. A device without streams for others knows 0 alone.
    virtual void synchronize_native(std::uintptr_t stream);
};

// Makes a device current for one call on a thread of the caller, and then what was current before.
class DeviceScope {
  public:
    explicit DeviceScope(Device& device) : device_(device) { device.enter_call(); }
    ~DeviceScope() { device_.leave_call(); }
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

  private:
    Device& device_;
};

// Options of the emulated GPU. Throttled, each copy takes latency + bytes/bandwidth of stream time.
struct HostDeviceOptions {
    double bandwidth_bytes_per_s = 0;  // 0: as fast as memory
    std::uint64_t latency_ns = 0;      // per copy
    std::uint64_t memory_bytes = 0;    // device memory it admits to; 0: half of the machine's memory
    bool registers_mappings = true;    // false: refuses register_host, as ext4 mappings do on a GPU
};

std::shared_ptr<Device> make_host_device(const HostDeviceOptions& options = {});

// Number of usable CUDA devices; 0 with the reason in `why` (no driver, no device, build without CUDA).
int cuda_device_count(std::string& why);
// Throws Error{unsupported} with the reason when there is no such device or this build has no CUDA.
std::shared_ptr<Device> make_cuda_device(int index);
bool built_with_cuda() noexcept;

// What the GPU driver knows of a pointer, if this process uses a GPU: of any GPU, for callers without a Device. This
// takes less than a microsecond, loads no library and makes no context. Emulated devices are not asked.
PointerInfo known_memory(const void* memory) noexcept;

// "auto" (cuda:0 when usable, else host), "host", "cuda:N". Throws Error{invalid_argument} listing valid names.
std::shared_ptr<Device> make_device(const std::string& name);

}  // namespace penstock
