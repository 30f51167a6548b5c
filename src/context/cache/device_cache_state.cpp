// See device_cache_state.hpp.
#include "context/cache/device_cache_state.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::context {
namespace {

[[noreturn]] void refuse_to_make(const std::string& file, const std::string& cause, const std::string& advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = kMakeCache;
    info.file = file;
    info.cause = cause;
    info.advice = advice;
    throw Error(std::move(info));
}

ondevice::Replacement replacement_of(CachePolicy policy) {
    switch (policy) {
        case CachePolicy::sweep_resistant: return ondevice::Replacement::sweep_resistant;
        case CachePolicy::clock: return ondevice::Replacement::clock;
        case CachePolicy::fifo: return ondevice::Replacement::fifo;
        case CachePolicy::pinned_range: return ondevice::Replacement::pinned_range;
    }
    throw Error(ErrorCode::invalid_argument, kMakeCache, "there is no such policy");
}

ondevice::Fetch fetch_of(CacheFetch fetch) {
    switch (fetch) {
        case CacheFetch::automatic: return ondevice::Fetch::automatic;
        case CacheFetch::pages: return ondevice::Fetch::pages;
        case CacheFetch::rows: return ondevice::Fetch::rows;
    }
    throw Error(ErrorCode::invalid_argument, kMakeCache, "there is no such way to fetch");
}

ondevice::FileCacheOptions cache_options(const DeviceCacheOptions& options, os::System& system) {
    if (options.timeout <= std::chrono::nanoseconds::zero()) {
        throw Error(ErrorCode::invalid_argument, kMakeCache, "a timeout of no time",
                    "give the longest a page may take");
    }
    ondevice::FileCacheOptions made;
    made.page_bytes = options.page_bytes;
    made.cache_bytes = options.cache_bytes;
    made.replacement = replacement_of(options.policy);
    made.threads = options.threads;
    made.slots = options.slots;
    made.wait_ns = static_cast<std::uint64_t>(options.timeout.count());
    made.map = options.map;
    made.fetch = fetch_of(options.fetch);
    made.system = &system;
    return made;
}

void add(DeviceCacheStatistics::Counts& sum, const ondevice::Tally& tally, std::uint64_t page_bytes) {
    sum.hits += tally.hits;
    sum.misses += tally.misses;
    sum.joined += tally.joined;
    sum.evictions += tally.evictions;
    sum.write_backs += tally.write_backs;
    sum.failures += tally.failures;
    sum.loaded_bytes += tally.misses * page_bytes;
    sum.written_back_bytes += tally.write_backs * page_bytes;
}

bool did_something(const ondevice::Tally& tally) {
    const auto& [hits, misses, joined, evictions, write_backs, failures] = tally;
    return (hits | misses | joined | evictions | write_backs | failures) != 0;
}

using Waits = std::array<std::uint64_t, ondevice::kWaitBuckets>;

// The buckets that are not empty.
std::vector<DeviceCacheStatistics::WaitBucket> buckets_of(const Waits& waits, double cycles_per_ns) {
    std::vector<DeviceCacheStatistics::WaitBucket> buckets;
    for (std::uint32_t i = 0; i < waits.size(); ++i) {
        if (waits[i] == 0) continue;
        const std::uint64_t low = i == 0 ? 0 : (256ull + 64 * (i % 4)) << (i / 4);  // the inverse of wait_bucket
        buckets.push_back({low, waits[i], cycles_per_ns == 0 ? 0 : static_cast<double>(low) / cycles_per_ns});
    }
    return buckets;
}

// Requires: `found` has its page_bytes and cycles_per_ns.
void add_counts(DeviceCacheStatistics& found, const std::vector<ondevice::CacheCounts>& stripes) {
    Waits all{};
    std::uint32_t index = 0;
    for (const ondevice::CacheCounts& counts : stripes) {
        Waits waits{};
        for (std::uint32_t i = 0; i < waits.size(); ++i) all[i] += waits[i] = counts.waits[i];
        DeviceCacheStatistics::Processor one{index++, {}, buckets_of(waits, found.cycles_per_ns)};
        add(one.counts, counts.tally, found.page_bytes);
        add(found.total, counts.tally, found.page_bytes);
        if (did_something(counts.tally) || !one.waits.empty()) found.processors.push_back(std::move(one));
    }
    found.waits = buckets_of(all, found.cycles_per_ns);
}

using SourceCounts = std::array<ondevice::ServedCount, ondevice::kSources>;

std::vector<DeviceCacheStatistics::Served> named(const SourceCounts& by_source) {
    std::vector<DeviceCacheStatistics::Served> served;
    for (std::size_t i = 0; i < ondevice::kSources; ++i) {
        served.push_back({to_string(static_cast<ondevice::Source>(i)), by_source[i].requests, by_source[i].bytes});
    }
    return served;
}

void add_service(DeviceCacheStatistics& found, const ondevice::ServiceEvidence& evidence) {
    found.served = named(evidence.by_source);
    found.failed_requests = evidence.failed;
    found.direct_by = evidence.direct_by;
}

}  // namespace

DeviceCacheState::DeviceCacheState(const Context& owner, ContextState& context, std::vector<OpenArray> arrays,
                                   const DeviceCacheOptions& options)
    : owner_(owner), context_(context), options_(options), arrays_(std::move(arrays)) {
    context_.check_process();
    std::vector<ondevice::FileSet> sets;
    for (const OpenArray& array : arrays_) {
        std::vector<const FileHandle*> handles;
        for (const auto& file : array.files) {
            const FileHandle& handle = file->handle();
            if (file->is_new()) {
                refuse_to_make(handle.name, "the file is being created",
                               "close it, then open it with OpenMode::read_write");
            }
            writable_ |= handle.writable;
            handles.push_back(&handle);
        }
        sets.emplace_back(std::move(handles), array.stripe_bytes);
    }
    const DeviceScope current(*context_.device);
    cache_ = std::make_unique<ondevice::FileCache>(*context_.device, sets, cache_options(options, context_.system));
}

DeviceCacheState::~DeviceCacheState() {
    if (context_.in_child()) {  // the cache's threads are in the parent
        static_cast<void>(cache_.release());
        return;
    }
    try {
        close();
    } catch (...) {  // a destructor cannot report it; close() does
    }
}

void DeviceCacheState::need_open(const CacheRequest& request) const {
    if (cache_ == nullptr) refuse(request, "the cache is closed", "make a new one");
    if (request.array >= arrays_.size()) {
        throw Error(ErrorCode::invalid_argument, request.operation,
                    "there is no array " + std::to_string(request.array) + "; there are " +
                        std::to_string(arrays_.size()));
    }
}

void DeviceCacheState::close() {
    context_.check_process();
    const std::scoped_lock entry(entry_);
    const std::unique_lock lock(closing_);
    if (cache_ == nullptr) return;
    const DeviceScope current(*context_.device);
    if (writable_) check(CacheRequest{"flush"}, cache_->flush());
    cache_.reset();
}

void DeviceCacheState::check_range(const ondevice::FileCache& cache, const CacheRequest& request) const {
    const std::uint64_t there = cache.bytes(request.array);
    if (request.offset_bytes <= there && request.bytes <= there - request.offset_bytes) return;
    refuse(request, "the range leaves the " + std::to_string(there) + " bytes of the array", "stay within it");
}

void DeviceCacheState::check_memory(const CacheRequest& request, const MemoryView& memory) const {
    if (memory.bytes == 0) return;
    if (memory.kind == MemoryKind::system) {
        const DeviceInfo info = context_.device->info();
        if (info.emulated || info.coherent_with_host) return;
        refuse(request, "a device cannot address ordinary host memory",
               "use memory of kind device, pinned or managed");
    }
    owner_.wrap(memory.data, memory.bytes, memory.kind);
}

void DeviceCacheState::add_arrays(DeviceCacheStatistics& found, ondevice::FileCache& cache) const {
    const ondevice::ServiceEvidence evidence = cache.evidence();
    const std::vector<ondevice::MovedByGpu> moved = cache.moved();
    add_service(found, evidence);
    std::size_t number = 0;
    for (std::uint32_t i = 0; i < arrays(); ++i) {
        const auto& files = arrays_[i].files;
        DeviceCacheStatistics::Array array;
        array.name = files.front()->handle().name;
        array.bytes = cache.bytes(i);
        array.mapped = cache.mapped(i);
        if (!array.mapped) array.mapping_refusal = cache.mapping_refusal(i);
        if (files.size() > 1) array.stripe_bytes = arrays_[i].stripe_bytes;
        for (std::size_t k = 0; k < files.size(); ++k, ++number) {
            const ondevice::FileEvidence& one = evidence.files[number];
            array.files.push_back({files[k]->handle().name, cache.layout(i).sizes[k], named(one.by_source), one.failed,
                                   moved[number].pages, moved[number].rows, moved[number].bytes});
            found.mapped_pages += moved[number].pages;
            found.mapped_rows += moved[number].rows;
        }
        found.arrays.push_back(std::move(array));
    }
}

DeviceCacheStatistics DeviceCacheState::statistics(ondevice::FileCache& cache) const {
    DeviceCacheStatistics found;
    found.cycles_per_ns = cache.cycles_per_ns();
    found.page_bytes = cache.page_bytes();
    add_counts(found, cache.counts());
    add_arrays(found, cache);
    found.ordered_rows = cache.ordered_rows();
    found.pages = cache.frames();
    found.pages_to_pin = cache.quota();
    found.device_bytes = cache.device_bytes();
    found.pinned_bytes = cache.pinned_bytes();
    return found;
}

}  // namespace penstock::context
