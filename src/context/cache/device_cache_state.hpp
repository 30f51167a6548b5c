// What the copies of a DeviceCache share: the cache of the ondevice layer, with the files and the context it needs.
//
// A call that uses the cache holds `closing_` shared, so that `close` waits for it and nothing is written after the
// flush of `close`. A call that comes while another closes waits at the entry: otherwise a cache that is always in use
// could never be closed.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "context/files/open_file.hpp"
#include "context/state.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "penstock/device_cache.hpp"

namespace penstock::context {

inline constexpr const char* kMakeCache = "make a device cache";  // the operation, for errors

// The files of one array.
struct OpenArray {
    std::vector<std::shared_ptr<OpenFile>> files;
    std::uint64_t stripe_bytes = 0;  // not used with one file
};

// What a call asked of an array, for errors.
struct CacheRequest {
    const char* operation;
    std::uint32_t array = 0;
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
};

class DeviceCacheState {
  public:
    // Requires: `context` is the state of `owner`.
    DeviceCacheState(const Context& owner, ContextState& context, std::vector<OpenArray> arrays,
                     const DeviceCacheOptions& options);
    ~DeviceCacheState();
    DeviceCacheState(const DeviceCacheState&) = delete;
    DeviceCacheState& operator=(const DeviceCacheState&) = delete;

    // Calls `use(cache)`; no thread can close the cache meanwhile. Throws in a forked child, and if it is closed.
    template <class Use>
    auto with_cache(const CacheRequest& request, const Use& use) const {
        context_.check_process();
        const std::shared_lock lock = entered();
        need_open(request);
        const DeviceScope current(*context_.device);
        return use(*cache_);
    }

    // Throws Error if there is no such array, or the range leaves it.
    void check_range(const ondevice::FileCache& cache, const CacheRequest& request) const;
    // Throws Error if the device cannot address the memory.
    void check_memory(const CacheRequest& request, const MemoryView& memory) const;
    // Throws Error if work on a range failed.
    void check(const CacheRequest& request, const ondevice::FileCache::Failure& failure) const;
    // Throws Error if work on rows failed. Such a failure names a place in the list of indices.
    struct RowsRequest {
        const CacheRequest& request;
        const RowLayout& rows;
        const MemoryView& indices;
    };
    void check(const RowsRequest& asked, const ondevice::FileCache::Failure& failure) const;
    [[noreturn]] void refuse(const CacheRequest& request, const std::string& cause, const std::string& advice) const;
    [[noreturn]] void refuse_pins(const CacheRequest& request, std::uint64_t pages, std::uint64_t most) const;
    [[noreturn]] void fail(const CacheRequest& request, ondevice::Status status) const;

    void close();
    DeviceCacheStatistics statistics(ondevice::FileCache& cache) const;
    std::uint32_t arrays() const noexcept { return static_cast<std::uint32_t>(arrays_.size()); }
    const DeviceCacheOptions& options() const noexcept { return options_; }

  private:
    std::shared_lock<std::shared_mutex> entered() const {
        const std::scoped_lock entry(entry_);
        return std::shared_lock(closing_);
    }
    void need_open(const CacheRequest& request) const;
    std::string name_of(const CacheRequest& request) const;
    const OpenFile& file_of(std::uint32_t number) const;
    void add_arrays(DeviceCacheStatistics& found, ondevice::FileCache& cache) const;
    [[noreturn]] void fail_late_sync(const CacheRequest& request) const;
    [[noreturn]] void fail_at(const CacheRequest& page, ondevice::Status status) const;
    using Told = std::vector<ondevice::ServedFailure>;
    const ondevice::ServedFailure* told_of(const CacheRequest& range, const Told& failures) const;
    [[noreturn]] void fail_storage(const CacheRequest& request, const ondevice::ServedFailure& failure) const;
    std::uint64_t index_at(const MemoryView& indices, std::uint64_t place) const;

    const Context owner_;
    ContextState& context_;
    const DeviceCacheOptions options_;
    const std::vector<OpenArray> arrays_;
    bool writable_ = false;
    mutable std::mutex entry_;
    mutable std::shared_mutex closing_;
    std::unique_ptr<ondevice::FileCache> cache_;  // null: closed
};

}  // namespace penstock::context
