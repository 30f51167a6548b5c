// The owner of a page cache in a device's memory over ordinary files: its memory, its mailbox, the service behind it,
// and the work that the host asks of it. Users' own kernels may use the cache at the same time.
//
// Pages that were stored to reach their files by flush, or when another page needs their frame; the destructor does not
// write them. Thread-safe: several threads may move bytes at once, as several kernels may. A call that changes which
// pages stay, or that is about all pages, runs alone. Threads get their turns in the order in which they asked.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ondevice/cache/cache_lanes.hpp"
#include "ondevice/cache/file_cache_launch.hpp"
#include "ondevice/device_memory.hpp"
#include "ondevice/files/file_mapping.hpp"
#include "ondevice/service/service.hpp"

namespace penstock::ondevice {

struct FileCacheOptions {
    u64 page_bytes = 4096;  // a power of two, 512 B to 2 MiB
    u64 cache_bytes = 256 * kMiB;
    Replacement replacement = Replacement::sweep_resistant;
    u32 threads = 0;               // the service's; 0: by the number of cores
    u32 slots = 0;                 // requests under way at once; 0: by the size of a page
    u64 wait_ns = 10'000'000'000;  // the longest that one operation waits
    bool map = true;               // the GPU itself reaches files in memory if it can
    bool map_emulated = false;     // an emulated device too, which copies as fast through its service
    Fetch fetch = Fetch::automatic;  // of gathered rows of such files, where no array is written
    // Gathers of at least so many rows from such files of more bytes take them in the order of RowOrder.
    u64 ordered_rows = 32 * 1024;
    u64 unordered_bytes = 128 * kMiB;
    u64 ordered_at_once = 4 * 1024 * 1024;  // rows; fewer than 2^32, for 4 bytes of device memory each
    os::System* system = nullptr;  // nullptr: the real one
};

class FileCache {
  public:
    // Requires: files and device outlive this. Throws Error; for wrong options before it takes memory.
    FileCache(Device& device, const std::vector<FileSet>& arrays, const FileCacheOptions& options);
    ~FileCache();
    FileCache(const FileCache&) = delete;
    FileCache& operator=(const FileCache&) = delete;

    struct Failure {
        Status status = Status::ok;
        u64 where = 0;  // row or page; see CacheTask
        // Where the storage failed meanwhile with that status: at the page, at a page that had to make room for it, or
        // at a page of another call. Empty: the storage did not fail.
        std::vector<ServedFailure> storage = {};
        bool of_sync = false;  // a sync failed, and no page
    };
    // Does `work`, which comes without ref and outcome. Requires: the device can reach the work's memory.
    Failure run(u32 array, CacheWork work);
    // Pins whole pages: all of them or none.
    Failure pin(u32 array, u64 first_page, u64 pages);
    // Writes back the dirty pages of all arrays and makes them durable.
    Failure flush();

    // The array's description in memory of the device, for users' kernels.
    const StoredRef* ref(u32 array) const;
    // The first failure of operator[] in users' kernels since the last call. If several threads ask, one of them gets
    // it.
    Status take_failure();
    u64 bytes(u32 array) const { return layouts_[array].bytes; }
    const FileLayout& layout(u32 array) const { return layouts_[array]; }
    u64 page_bytes() const noexcept { return shape_.page_bytes; }
    u64 frames() const noexcept { return shape_.frames; }
    u32 quota() const noexcept { return quota_; }
    // The counts of each multiprocessor. Kernels add theirs when they end.
    std::vector<CacheCounts> counts();
    // How fast the device's cycle counter runs, as the cache's own work so far showed; 0: not known yet.
    double cycles_per_ns() const noexcept;
    // Both number the files of all arrays through, those of array 0 first.
    ServiceEvidence evidence() const { return service_->evidence(); }
    std::vector<MovedByGpu> moved();
    // Rows that gathers took in the order of RowOrder, so far.
    u64 ordered_rows() const noexcept { return ordered_; }
    bool mapped(u32 array) const { return mappings_[array] != nullptr && mappings_[array]->data() != nullptr; }
    // Why the GPU does not reach the files of an array itself; empty: it does.
    std::string mapping_refusal(u32 array) const;
    u64 device_bytes() const noexcept;
    u64 pinned_bytes() const noexcept;

  private:
    void map(Device& device, const std::vector<FileSet>& arrays);
    void make_refs(const std::vector<FileSet>& arrays);
    void choose_fetch(u32 array, CacheWork& work) const;
    Failure gather(CacheLane& lane, u32 array, CacheWork work);
    bool pays_to_order(u32 array, const CacheWork& work) const;
    void order_rows(CacheLane& lane, u32 array, CacheWork& work);
    void keep_close(u32 array, CacheWork& work) const;
    void note_fetched(u32 array, const CacheWork& work, u64 fetched);
    Failure run_on(CacheLane& lane, u32 array, CacheWork work);
    enum class Then { keep, clear };
    template <class T>
    std::vector<T> fetched(CacheLane& lane, const DmaBlock& from) const;
    void fetch(CacheLane& lane, u8* from, u64 bytes, Then then) const;
    template <class T>
    std::vector<T> counted(const DmaBlock& from);
    Failure write_back(CacheLane& lane);
    Failure cut_short(u32 array) const;
    u32 workers_for(const CacheWork& work) const;

    const DeviceInfo device_;
    const FileCacheOptions options_;
    CacheShape shape_;
    u32 quota_ = 0;
    u32 most_workers_ = 1;
    DeviceMemory own_, shared_;
    DmaBlock states_, data_, files_, refs_, counts_, moved_, failed_, reuse_;
    DmaBlock done_;  // for the call that pins, which runs alone
    std::vector<FileLayout> layouts_;
    std::vector<bool> read_only_;
    std::vector<std::unique_ptr<FileMapping>> mappings_;
    std::unique_ptr<Mailbox> mailbox_;
    std::unique_ptr<Service> service_;
    std::unique_ptr<CacheLanes> lanes_;
    std::atomic<u64> cycles_{0}, ns_{0};  // by the device's clocks
    std::atomic<u64> order_bytes_{0}, ordered_{0};
    std::vector<std::atomic<u8>> fetched_;  // of each array: whether the last gather lacked many rows; guesses
};

}  // namespace penstock::ondevice
