// What a user holds: Context, File, Buffer, Transfer.
//
// A Context owns a device, worker threads, staging memory and settings; nothing is process-wide. Files and Buffers
// belong to a Context and keep it alive. All functions may be called from any thread; a File may be used by several
// threads at once. fork(): a child must not use a Context made by its parent (calls throw Error{unsupported}).
//
//     penstock::Context context({.device = "cuda:0"});
//     auto file = context.open("snapshot.bin");
//     auto buffer = context.allocate(file.size_bytes());
//     auto outcome = file.read(buffer.view());
//     // outcome.evidence says which path the bytes took
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/device.hpp"
#include "penstock/error.hpp"
#include "penstock/evidence.hpp"
#include "penstock/outcome.hpp"
#include "penstock/plan.hpp"
#include "penstock/profile.hpp"
#include "penstock/types.hpp"

namespace penstock {

namespace context {
struct Extent;
class ContextState;
class FileState;
class BufferState;
class StartedTransfer;
}  // namespace context

struct ContextOptions {
    std::string device = "auto";         // "auto", "host", "cuda:N"
    PathKind path = PathKind::automatic; // for every transfer that does not say
    std::uint32_t workers = 0;           // 0: the policy decides
    std::uint64_t budget_bytes = 256 * kMiB;  // staging memory, never exceeded; at least 4 MiB
    bool strict = false;                 // any fallback is an error
    // Machine profiles for `automatic` to choose by: files, which must be of this machine, and directories, of whose
    // *.csv those that are not are passed over with a note. Empty: the built-in rules.
    std::vector<std::string> profiles{};
    bool adaptive = false;  // transfers correct the profile's costs by what they took, in this context only
    HostDeviceOptions host{};            // of the emulated device
    // How long the end of the last handle waits for operations that the system does not end. After that, threads that
    // hang are left alone with what they use until they end; memory that is the caller's must stay.
    Clock::duration end_patience = Clock::duration::max();
};

// Device, pinned, managed or plain memory, as a pointer and a length. Does not own it.
struct MemoryView {
    void* data = nullptr;
    std::uint64_t bytes = 0;
    MemoryKind kind = MemoryKind::device;
    MemoryView slice(std::uint64_t offset, std::uint64_t length) const;  // throws Error when outside
};

class Buffer {
  public:
    MemoryView view() const noexcept;
    void* data() const noexcept { return view().data; }
    std::uint64_t bytes() const noexcept { return view().bytes; }
    MemoryKind kind() const noexcept { return view().kind; }

  private:
    friend class Context;
    std::shared_ptr<context::BufferState> state_;
};

inline constexpr std::uint64_t kSmallReadBytes = 64 * kKiB;  // a larger read is not small

// How small reads of one size move, in the words of evidence. Shared by all of them.
struct SmallPlan {
    std::string plan;  // Plan::describe()
    std::string why;   // Plan::reason()
    double predicted_seconds = 0;
};

// A small read that was made: all of `memory`, by path buffered, in one operation on the calling thread. It holds
// neither file nor context.
struct SmallRead {
    MemoryView memory;
    std::uint64_t offset_bytes = 0;
    double seconds = 0;
    std::uint64_t pinned_peak_bytes = 0;  // as in Evidence
    std::shared_ptr<const SmallPlan> plan;
    std::uint64_t operations = 1;  // calls of the system
    Evidence evidence() const;  // what File::read would have said of it
};
using SmallWrite = SmallRead;   // the same of File::write: its plan says so

struct Range;

// Small reads of one file, made one after the other. `samples` has one of each size.
struct SmallReads {
    std::uint64_t operations = 0;  // calls of the system: of memory that the host reaches, one for those that continue
                                   // each other
    std::uint64_t bytes = 0;
    long waits = 0;  // how often the calling thread waited in them; 0 where the bytes go to a device's memory
    double seconds = 0;
    std::vector<SmallRead> samples;
};
using SmallWrites = SmallReads;  // the same of writes

struct TransferOptions {
    PathKind path = PathKind::automatic;  // automatic: the context's, else the policy's
    std::uint64_t chunk_bytes = 0;        // a multiple of 4096; 0: the policy decides, as for the next two
    std::uint32_t workers = 0;
    std::uint32_t depth = 0;
    bool strict = false;                  // in addition to the context's
    bool durable = false;                 // writes: on stable storage when the transfer is done
    bool full_evidence = false;           // small transfers sample counters too (costs about 20 us)
    // The caller waits for the result at once: a small request then moves on the calling thread, before start returns.
    bool caller_waits = false;
    Deadline deadline = Deadline::never();
    // Called from a worker thread, at most about 20 times a second and once at the end. What it throws ends the
    // transfer with an error. It must not wait for its own transfer.
    std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress{};
};

// A transfer under way. Copies share it. The last copy may go while it runs: the work goes on, its memory is kept if it
// came from Context::allocate.
class Transfer {
  public:
    bool done() const;
    bool wait(Deadline deadline = Deadline::never()) const;  // true: done. False at the deadline; the transfer runs on.
    // Waits, at most so long: then operations are under way that the system does not end, the outcome is an error that
    // says so, and the memory must stay until wait() says done.
    Outcome result(Deadline patience = Deadline::never()) const;
    // Started operations finish, the rest does not start; then done with `cancelled`. Reads into staging memory do not
    // wait for operations that hang.
    void cancel() const;
    std::uint64_t bytes_done() const noexcept;
    std::uint64_t bytes_total() const noexcept;
    const Plan& plan() const noexcept;

  private:
    friend class Context;
    friend class File;
    std::shared_ptr<context::ContextState> context_;  // goes last: the engine must outlive its transfers
    std::shared_ptr<context::StartedTransfer> state_;
};

enum class OpenMode : std::uint8_t {
    read,
    read_write,  // must exist
    create,  // new content: appears under its name, whole, at close(); abandoned if not closed. Replaces atomically.
};

struct OpenOptions {
    OpenMode mode = OpenMode::read;
    std::uint64_t size_bytes = 0;  // create: space is reserved, so that a full disk shows here
    bool durable = false;          // create: close() makes file and directory entry durable
    bool replace = true;           // create: an existing file of that name may be replaced
};

struct FileFacts {
    std::string name;
    std::string file_system;       // "ext4", "tmpfs", "nfs", ...
    std::uint64_t size_bytes = 0;
    bool direct = false;           // O_DIRECT opens and transfers
    std::uint32_t offset_alignment = 0;
    std::uint32_t memory_alignment = 0;
    std::string alignment_source;  // "statx", "probe"
    std::string direct_cause;      // why not, when not
};

class File {
  public:
    const std::string& name() const noexcept;
    std::uint64_t size_bytes() const;  // asks the system
    FileFacts facts() const;
    // Blocking. A read stops at the end of the file: outcome.bytes says how much came. An offset beyond the end is an
    // error. Writes past the end extend the file.
    Outcome read(MemoryView memory, std::uint64_t offset_bytes = 0, const TransferOptions& options = {}) const;
    Outcome write(MemoryView memory, std::uint64_t offset_bytes = 0, const TransferOptions& options = {}) const;
    // read() for callers who read a few KiB very often, or some MiB that the page cache has. Nothing where read() would
    // do more than one operation on the calling thread, meet the end of the file, or fail: then call it, the memory may
    // hold some of the bytes.
    // `after`: a stream with work on the memory, a cudaStream_t as a number, which the read waits for.
    std::optional<SmallRead> try_small_read(MemoryView memory, std::uint64_t offset_bytes = 0,
                                            std::optional<std::uintptr_t> after = {}) const;
    // write() of less than a MiB that the host reaches, to the page cache. Nothing where write() would do more,
    // or fail: then call it.
    std::optional<SmallWrite> try_small_write(MemoryView memory, std::uint64_t offset_bytes = 0) const;
    // try_small_write() for many pieces of `memory`, each up to kSmallReadBytes. Nothing where one of them is no small
    // write, or leaves the memory: some may be written then.
    std::optional<SmallWrites> try_small_writes(MemoryView memory, std::span<const Range> ranges) const;
    // try_small_read() for many pieces of `memory`, which cost little more than a system call each. Those that lie side
    // by side in memory of a device are copied there together. `file` of a range is not looked at. Nothing where one of
    // them is no small read, as above, or leaves the memory.
    std::optional<SmallReads> try_small_reads(MemoryView memory, std::span<const Range> ranges) const;
    // The same for memory that the host reaches. Nothing, too, where a byte is not in the page cache: the thread waits
    // for no storage, which may never answer.
    std::optional<SmallReads> try_cached_reads(MemoryView memory, std::span<const Range> ranges) const;
    Transfer start_read(MemoryView memory, std::uint64_t offset_bytes = 0, const TransferOptions& options = {}) const;
    Transfer start_write(MemoryView memory, std::uint64_t offset_bytes = 0, const TransferOptions& options = {}) const;
    void sync() const;                 // fdatasync; throws
    // Sets the size: bytes behind it are gone, new ones are zero. Throws. No transfer of the file may be under way.
    void resize(std::uint64_t bytes) const;
    // Waits for transfers on it; for create: gives the file its name. Throws late write errors. Idempotent.
    void close();
    // Registers the whole mapping with the device now (tmpfs, hugetlbfs). False, with the cause, where refused.
    bool register_mapping(std::string& why) const;
    Residency residency(std::uint64_t offset_bytes, std::uint64_t bytes) const;
    void drop_cache(std::uint64_t offset_bytes = 0,
                    std::uint64_t bytes = 0) const;  // fadvise DONTNEED, after fdatasync

  private:
    friend class Context;
    friend class DeviceCache;
    Transfer start(Direction direction, const MemoryView& memory, std::uint64_t offset_bytes,
                   const TransferOptions& options) const;
    std::shared_ptr<context::FileState> state_;
};

// Why a request would move as it would: the plan, and what each of its steps was chosen among.
struct Explanation {
    struct Option {
        PathKind path = PathKind::automatic;
        double seconds = 0;   // by the profile; 0: it does not say
        std::string refusal;  // why the path cannot be taken; empty: it can
    };
    struct Part {
        std::uint64_t bytes = 0;
        bool in_page_cache = false;
        bool residency_known = false;
        std::vector<Option> options;  // fastest first, then those not measured, then those refused
    };
    Plan plan;
    std::vector<Part> parts;   // of the request, by residency
    std::string profile;       // file that predicted; empty: the built-in rules chose
    std::string refusal;       // why a profile that was given is not used
};

// One contiguous piece of a larger request.
struct Range {
    const File* file = nullptr;
    std::uint64_t offset_bytes = 0;
    void* memory = nullptr;
    std::uint64_t bytes = 0;
};

class Context {
  public:
    explicit Context(const ContextOptions& options = {});

    Device& device() const noexcept;
    const ContextOptions& options() const noexcept;

    // Throws Error: not_found, permission_denied, not_a_regular_file, read_only, ...
    File open(const std::string& name, const OpenOptions& options = {}) const;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind = MemoryKind::device,
                    FirstTouch touch = FirstTouch::none) const;
    // A view of memory that the caller owns; says what kind it is. Throws when `kind_expected` is device and the
    // pointer is not memory of this context's device, or when the range leaves its allocation.
    MemoryView wrap(void* memory, std::uint64_t bytes, MemoryKind kind_expected = MemoryKind::device) const;

    // Many ranges, of one direction, over any number of files, in one submission.
    Transfer start(Direction direction, std::span<const Range> ranges, MemoryKind kind = MemoryKind::device,
                   const TransferOptions& options = {}) const;
    // What start() would do, without doing it.
    Plan plan(Direction direction, std::span<const Range> ranges, MemoryKind kind = MemoryKind::device,
              const TransferOptions& options = {}) const;
    // The same with its reasons. Costs no transfer; asks which pages are in the page cache.
    Explanation explain(Direction direction, std::span<const Range> ranges, MemoryKind kind = MemoryKind::device,
                        const TransferOptions& options = {}) const;
    // What a machine profile made now would be compared by, for this device and the file system `path` lies on. Throws.
    Profile identity(const std::string& path) const;

    void copy_to_host(void* host, const void* device, std::uint64_t bytes) const;
    void copy_to_device(void* device, const void* host, std::uint64_t bytes) const;
    // Many copies between pinned memory and memory of the device as one piece of its work; waits for them.
    void copy_pieces(CopyDirection direction, std::span<const CopyPiece> pieces) const;
    // Boxes between memories this device can address (see box.hpp); waits until they are moved. `kind` is the kind of
    // memory that is hardest to reach on either side: for `system`, ordinary host memory, a GPU that cannot address it
    // throws Error{unsupported}, and the emulated device lets the calling thread move the bytes.
    void copy_boxes(std::span<const Box> boxes, MemoryKind kind = MemoryKind::device) const;
    void fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item,
                    MemoryKind kind = MemoryKind::device) const;
    // Checksums of ranges of memory this device allocated (device, pinned or managed); waits for them.
    std::vector<std::uint32_t> checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) const;
    // Of positions and an order in memory of one kind (see sort/cell_sort.hpp): the calling thread reads `system`,
    // which is memory of the host, and the device reads all else. gather() waits until the rows are in place.
    CellsFound sort_cells(const CellSort& sort, MemoryKind kind = MemoryKind::device) const;
    void gather(std::span<const RowGather> gathers, MemoryKind kind = MemoryKind::device) const;
    // Waits for a stream of the caller's: see Device::synchronize_native.
    void synchronize_stream(std::uintptr_t native_handle) const;
    std::uint64_t pinned_bytes() const noexcept;       // staging memory held now
    std::uint64_t pinned_peak_bytes() const noexcept;
    // Fills all staging memory, for tests and measurements: a read that brings nothing cannot pass with what an earlier
    // one left there. Waits until no transfer uses it. False: at the deadline one did, and not all is filled.
    bool fill_staging(int byte_value, Deadline deadline) const;

  private:
    friend class DeviceCache;
    friend class context::ContextState;
    explicit Context(std::shared_ptr<context::ContextState> state) : state_(std::move(state)) {}
    std::vector<context::Extent> resolve(std::span<const Range> ranges) const;
    std::shared_ptr<context::ContextState> state_;
};

}  // namespace penstock
