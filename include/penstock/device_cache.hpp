// DeviceCache: a page cache in a device's memory over ordinary files of any size, from which the device's own threads
// gather rows, read and write.
//
//     penstock::Context context;
//     const penstock::File file = context.open("rows.bin");
//     const penstock::DeviceCache cache(context, {&file, 1}, {.cache_bytes = 4 * penstock::kGiB});
//     cache.gather(0, {.row_bytes = 512}, indices.view(), out.view());  // 64-bit row numbers in device memory
//     my_kernel<<<blocks, threads>>>(cache.ref(0), ...);                // see penstock/ondevice/stored_array.hpp
//
// Array n is file n, from its first byte to the end it had when the cache was made, or several files that it is dealt
// out over (StripedFiles), so that one page comes from one disk while the next comes from another. Calls return when
// their work is done; what others queued on streams of their own for the memory that is named must be done before (see
// Context::synchronize_stream). What is written is in the cache until flush, close, or until its place is needed.
// Calls of several threads that move bytes (gather, scatter, read, write, prefetch) go on at once, as kernels on
// streams of their own would: of two that touch the same bytes, let one return before the other begins. Those that
// pin, unpin, keep, advise, flush and invalidate wait for all that were asked for before, and are alone.
// Copies share one cache, which keeps its context and files alive. All functions may be called from any thread and
// throw Error; in a forked child they all do.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/context.hpp"

namespace penstock {

namespace ondevice {
struct StoredRef;
}
namespace context {
class DeviceCacheState;
}

// Which page goes when another comes.
enum class CachePolicy : std::uint8_t {
    sweep_resistant,  // a part on probation, so that a sweep over more than the cache leaves most of it in place
    clock,            // second chance
    fifo,
    pinned_range,  // the range of DeviceCache::keep stays once it is there
};
const char* to_string(CachePolicy value) noexcept;  // "sweep-resistant", "clock", "fifo", "pinned-range"
std::optional<CachePolicy> cache_policy_from_string(std::string_view name) noexcept;

// How an array will be used. sweep: in about the same order again and again; random: some rows more often than others;
// once: not again soon.
enum class CacheAdvice : std::uint8_t { none, sweep, random, once };
const char* to_string(CacheAdvice value) noexcept;
std::optional<CacheAdvice> cache_advice_from_string(std::string_view name) noexcept;

// What `gather` fetches where a row's page is missing, of files that the GPU reaches itself and that are not written.
// pages: the whole page, in which later rows may be found. rows: the row alone. automatic: what moves fewer bytes, as a
// sample of the pages tells; pages, where the policy is pinned_range. Other arrays, and rows longer than half a page,
// are fetched by pages.
enum class CacheFetch : std::uint8_t { automatic, pages, rows };
const char* to_string(CacheFetch value) noexcept;  // "auto", "pages", "rows"
std::optional<CacheFetch> cache_fetch_from_string(std::string_view name) noexcept;

// The files of one array, in stripes as by RAID 0: byte b is in file (b / stripe_bytes) % n, at
// (b / (stripe_bytes * n)) * stripe_bytes + b % stripe_bytes. Nothing in the files tells their order or the size of a
// stripe. All of them are writable or none, none is there twice, and their sizes are those of such an array. One file
// is the array as it is.
struct StripedFiles {
    std::vector<File> files;
    std::uint64_t stripe_bytes = kMiB;  // a power of two, at least the cache's page
};

struct DeviceCacheOptions {
    std::uint64_t page_bytes = 4096;  // a power of two, 512 B to 2 MiB
    std::uint64_t cache_bytes = 256 * kMiB;
    CachePolicy policy = CachePolicy::sweep_resistant;
    std::uint32_t threads = 0;  // of the host, that serve pages; 0: by the number of cores
    std::uint32_t slots = 0;    // pages under way at once, in page-locked memory; 0: by the size of a page
    // The longest that one page is waited for; a sync 30 times as long.
    std::chrono::nanoseconds timeout = std::chrono::seconds(10);
    bool map = true;  // files in memory (tmpfs, hugetlbfs) are reached by the GPU itself where it can
    CacheFetch fetch = CacheFetch::automatic;
};

// Rows of an array: row r is the bytes from offset_bytes + r * row_bytes on.
struct RowLayout {
    std::uint64_t row_bytes = 0;
    std::uint64_t offset_bytes = 0;
    std::uint64_t count = std::numeric_limits<std::uint64_t>::max();  // at most as many as the file holds
};

// What a cache did since it was made. Kernels are counted when they end.
struct DeviceCacheStatistics {
    struct Counts {
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;  // pages whose loading was begun, prefetches included
        std::uint64_t joined = 0;  // wanted while another thread was loading the page
        std::uint64_t evictions = 0;
        std::uint64_t write_backs = 0;
        std::uint64_t failures = 0;  // of loads and write-backs
        // page_bytes for each miss and each write-back. What moved, which `served` and the mapped bytes tell, is less
        // by what the last page of a file lacks, and by loads that failed.
        std::uint64_t loaded_bytes = 0;
        std::uint64_t written_back_bytes = 0;
    };
    struct WaitBucket {
        std::uint64_t low_cycles = 0;
        std::uint64_t count = 0;
        double low_ns = 0;  // by cycles_per_ns
    };
    struct Processor {
        std::uint32_t index = 0;
        Counts counts;
        std::vector<WaitBucket> waits;  // of its threads, as `waits` of all
    };
    struct Served {
        std::string source;  // by the host: "mapping", "buffered", "direct"
        std::uint64_t requests = 0;  // reads, writes and flushes
        std::uint64_t bytes = 0;
    };
    // One of an array's files: who served how much of it.
    struct StoredFile {
        std::string name;
        std::uint64_t bytes = 0;
        std::vector<Served> served;
        std::uint64_t failed_requests = 0;
        std::uint64_t mapped_pages = 0;  // that the GPU moved through a mapping itself
        std::uint64_t mapped_rows = 0;   // that it copied past the cache; one of two pages counts twice
        std::uint64_t mapped_bytes = 0;  // of both
    };
    struct Array {
        std::string name;  // of its first file
        std::uint64_t bytes = 0;
        bool mapped = false;             // the GPU reaches the files itself
        std::string mapping_refusal;     // why not
        std::uint64_t stripe_bytes = 0;  // 0: one file
        std::vector<StoredFile> files;
    };
    Counts total;
    std::vector<Processor> processors;  // multiprocessors that did something
    std::vector<WaitBucket> waits;      // for pages, in clock cycles of the device; those that are not empty
    double cycles_per_ns = 0;           // of the device's clocks, measured by the cache's own work; 0: not known
    std::vector<Served> served;  // of all files
    std::uint64_t failed_requests = 0;
    std::string direct_by;  // "uring", or "direct" with the cause; empty: not used
    std::uint64_t mapped_pages = 0;  // of all files, that the GPU moved through mappings itself
    std::uint64_t mapped_rows = 0;   // and copied past the cache
    std::uint64_t ordered_rows = 0;  // that gathers took in the order of the file's regions
    std::vector<Array> arrays;
    std::uint64_t page_bytes = 0;
    std::uint64_t pages = 0;         // of the cache
    std::uint64_t pages_to_pin = 0;  // that may be pinned at once
    std::uint64_t device_bytes = 0;  // of memory in use: the device's
    std::uint64_t pinned_bytes = 0;  // and page-locked
};

class DeviceCache {
  public:
    // Files are open ones of the context, writable where they were opened so; not those being created.
    DeviceCache(const Context& context, std::span<const File> files, const DeviceCacheOptions& options = {});
    DeviceCache(const Context& context, std::span<const StripedFiles> arrays, const DeviceCacheOptions& options = {});

    std::uint32_t arrays() const;
    std::uint64_t bytes(std::uint32_t array) const;

    // `indices` are 64-bit row numbers; row indices[i] goes to, or comes from, place i of the memory. All memory must
    // be within the device's reach. After an error the memory is partly filled, or rows partly written.
    void gather(std::uint32_t array, const RowLayout& rows, const MemoryView& indices, const MemoryView& to) const;
    void scatter(std::uint32_t array, const RowLayout& rows, const MemoryView& indices, const MemoryView& from) const;
    void read(std::uint32_t array, std::uint64_t offset_bytes, const MemoryView& to) const;
    void write(std::uint32_t array, std::uint64_t offset_bytes, const MemoryView& from) const;

    // These act on the pages that hold a range of bytes. prefetch begins to load them and does not wait for those that
    // have a slot (DeviceCacheOptions::slots): such loads may be under way when it returns, and a failure is reported
    // to whoever uses the page. pin loads the pages and keeps them until unpin, all or none. A page must be unpinned as
    // often as it was pinned.
    void prefetch(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const;
    void pin(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const;
    void unpin(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const;
    // With CachePolicy::pinned_range: the one range that stays once its pages are there.
    void keep(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const;
    void advise(std::uint32_t array, CacheAdvice advice) const;

    // Writes back what was stored, into all files, and makes it durable. What could not be written stays, and flush can
    // be tried again. After a sync (fdatasync) of a file failed, every flush throws: what was written before may be
    // lost, and no later sync is a proof of the contrary. Open the file anew and write it again.
    void flush() const;
    // Forgets pages, so that they are read anew. Throws when some are in use or have bytes that no flush wrote back.
    void invalidate(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const;

    // Throws the first failure of operator[] in users' kernels since the last call.
    void check() const;
    DeviceCacheStatistics statistics() const;
    // In memory of the device, for users' kernels, which must end before the cache is closed.
    const ondevice::StoredRef* ref(std::uint32_t array) const;

    // Flushes if a file is writable, and gives the memory back. If the flush fails it throws and the cache stays open.
    // Idempotent; all else throws from then on. The going of the last copy does the same and cannot tell of failures.
    void close() const;

  private:
    std::shared_ptr<context::DeviceCacheState> state_;
};

}  // namespace penstock
