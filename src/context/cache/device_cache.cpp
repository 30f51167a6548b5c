// The public DeviceCache. It checks each call here, once, and then does the work on the device.
#include "penstock/device_cache.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "context/cache/device_cache_state.hpp"

namespace penstock {
namespace {

using context::CacheRequest;
using context::DeviceCacheState;
using ondevice::CacheTask;
using ondevice::CacheWork;
using ondevice::FileCache;
using ondevice::u64;
using ondevice::u8;

constexpr std::array<const char*, 4> kPolicies{"sweep-resistant", "clock", "fifo", "pinned-range"};
constexpr std::array<const char*, 4> kAdvice{"none", "sweep", "random", "once"};

constexpr std::array<const char*, 3> kFetches{"auto", "pages", "rows"};

template <class Value, std::size_t count>
std::optional<Value> named(const std::array<const char*, count>& names, std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Value>(found - names.begin());
}

// The state, or an Error if the DeviceCache was moved from.
DeviceCacheState& made(const std::shared_ptr<DeviceCacheState>& state, const char* operation) {
    if (!state) throw Error(ErrorCode::invalid_argument, operation, "there is no cache", "make one");
    return *state;
}

struct Pages {
    u64 first;
    u64 count;
};

Pages pages_of(const CacheRequest& request, u64 page_bytes) {
    const u64 first = request.offset_bytes / page_bytes;
    if (request.bytes == 0) return {first, 0};
    return {first, (request.offset_bytes + request.bytes - 1) / page_bytes - first + 1};
}

// Does work on the pages of a range.
void on_pages(DeviceCacheState& state, const CacheRequest& request, CacheTask task) {
    state.with_cache(request, [&](FileCache& cache) {
        state.check_range(cache, request);
        const Pages pages = pages_of(request, cache.page_bytes());
        CacheWork work{};
        work.task = task;
        work.first = pages.first;
        work.count = pages.count;
        FileCache::Failure failure = cache.run(request.array, work);
        if (task == CacheTask::unpin && failure.status == ondevice::Status::invalid) {
            state.refuse(request, "page " + std::to_string(failure.where) + " was not pinned",
                         "unpin what was pinned, once");
        }
        state.check(request, failure);
    });
}

// Moves the bytes of a range to or from memory.
void move_range(DeviceCacheState& state, const CacheRequest& request, const MemoryView& memory, CacheTask task) {
    state.with_cache(request, [&](FileCache& cache) {
        state.check_range(cache, request);
        state.check_memory(request, memory);
        CacheWork work{};
        work.task = task;
        work.first = request.offset_bytes;
        work.count = request.bytes;
        work.memory = static_cast<u8*>(memory.data);
        state.check(request, cache.run(request.array, work));
    });
}

struct RowsMove {
    const RowLayout& rows;
    const MemoryView& indices;
    const MemoryView& memory;
    CacheTask task;
};

void check_sizes(const DeviceCacheState& state, const CacheRequest& request, const RowsMove& move) {
    const std::uint64_t count = move.indices.bytes / sizeof(u64);
    if (move.rows.row_bytes == 0) state.refuse(request, "rows of 0 bytes", "give the bytes of a row");
    if (move.indices.bytes % sizeof(u64) != 0 ||
        reinterpret_cast<std::uintptr_t>(move.indices.data) % sizeof(u64) != 0) {
        state.refuse(request, "indices that are no aligned 64-bit numbers", "give std::int64_t or std::uint64_t");
    }
    if (move.memory.bytes % move.rows.row_bytes != 0 || move.memory.bytes / move.rows.row_bytes != count) {
        state.refuse(request,
                     std::to_string(move.memory.bytes) + " bytes of memory for " + std::to_string(count) +
                         " rows of " + std::to_string(move.rows.row_bytes),
                     "give memory of exactly that size");
    }
}

void move_rows(DeviceCacheState& state, const CacheRequest& request, const RowsMove& move) {
    state.with_cache(request, [&](FileCache& cache) {
        check_sizes(state, request, move);
        state.check_memory(request, move.indices);
        state.check_memory(request, move.memory);
        const std::uint64_t there = cache.bytes(request.array), start = move.rows.offset_bytes;
        RowLayout rows = move.rows;
        rows.count = std::min(rows.count, start < there ? (there - start) / rows.row_bytes : 0);
        CacheWork work{};
        work.task = move.task;
        work.rows = static_cast<const u64*>(move.indices.data);
        work.first = start;
        work.count = move.indices.bytes / sizeof(u64);
        work.row_bytes = rows.row_bytes;
        work.row_limit = rows.count;
        work.memory = static_cast<u8*>(move.memory.data);
        if (work.count == 0) return;
        if (rows.count == 0) state.refuse(request, "the array has no rows", "check the size of a row");
        state.check(DeviceCacheState::RowsRequest{request, rows, move.indices}, cache.run(request.array, work));
    });
}

// Makes each file an array of its own.
std::vector<StripedFiles> each_alone(std::span<const File> files) {
    std::vector<StripedFiles> arrays;
    for (const File& file : files) arrays.push_back({{file}});
    return arrays;
}

}  // namespace

const char* to_string(CachePolicy value) noexcept { return kPolicies[static_cast<std::size_t>(value)]; }
const char* to_string(CacheFetch value) noexcept { return kFetches[static_cast<std::size_t>(value)]; }
std::optional<CacheFetch> cache_fetch_from_string(std::string_view name) noexcept {
    return named<CacheFetch>(kFetches, name);
}
const char* to_string(CacheAdvice value) noexcept { return kAdvice[static_cast<std::size_t>(value)]; }
std::optional<CachePolicy> cache_policy_from_string(std::string_view name) noexcept {
    return named<CachePolicy>(kPolicies, name);
}
std::optional<CacheAdvice> cache_advice_from_string(std::string_view name) noexcept {
    return named<CacheAdvice>(kAdvice, name);
}

DeviceCache::DeviceCache(const Context& context, std::span<const File> files, const DeviceCacheOptions& options)
    : DeviceCache(context, each_alone(files), options) {}

DeviceCache::DeviceCache(const Context& context, std::span<const StripedFiles> arrays,
                         const DeviceCacheOptions& options) {
    std::vector<context::OpenArray> opened;
    for (const StripedFiles& array : arrays) {
        context::OpenArray& one = opened.emplace_back();
        one.stripe_bytes = array.stripe_bytes;
        for (const File& file : array.files) {
            if (!file.state_ || file.state_->file->closed()) {
                throw Error(ErrorCode::invalid_argument, context::kMakeCache, "a file is not open", "open it");
            }
            if (file.state_->context != context.state_) {
                throw Error(ErrorCode::invalid_argument, std::string(context::kMakeCache) + " of " + file.name(),
                            "the file belongs to another context", "open it with the context of the cache");
            }
            one.files.push_back(file.state_->file);
        }
    }
    state_ = std::make_shared<DeviceCacheState>(context, *context.state_, std::move(opened), options);
}

std::uint32_t DeviceCache::arrays() const { return made(state_, "ask a device cache").arrays(); }

std::uint64_t DeviceCache::bytes(std::uint32_t array) const {
    const CacheRequest request{"ask a device cache", array};
    return made(state_, request.operation).with_cache(request, [&](FileCache& cache) { return cache.bytes(array); });
}

void DeviceCache::gather(std::uint32_t array, const RowLayout& rows, const MemoryView& indices,
                         const MemoryView& to) const {
    move_rows(made(state_, "gather"), {"gather", array}, {rows, indices, to, CacheTask::gather});
}

void DeviceCache::scatter(std::uint32_t array, const RowLayout& rows, const MemoryView& indices,
                          const MemoryView& from) const {
    move_rows(made(state_, "scatter"), {"scatter", array}, {rows, indices, from, CacheTask::scatter});
}

void DeviceCache::read(std::uint32_t array, std::uint64_t offset_bytes, const MemoryView& to) const {
    move_range(made(state_, "read"), {"read", array, offset_bytes, to.bytes}, to, CacheTask::read);
}

void DeviceCache::write(std::uint32_t array, std::uint64_t offset_bytes, const MemoryView& from) const {
    move_range(made(state_, "write"), {"write", array, offset_bytes, from.bytes}, from, CacheTask::write);
}

void DeviceCache::prefetch(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const {
    on_pages(made(state_, "prefetch"), {"prefetch", array, offset_bytes, bytes}, CacheTask::prefetch);
}

void DeviceCache::pin(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const {
    DeviceCacheState& state = made(state_, "pin");
    const CacheRequest request{"pin", array, offset_bytes, bytes};
    state.with_cache(request, [&](FileCache& cache) {
        state.check_range(cache, request);
        const Pages pages = pages_of(request, cache.page_bytes());
        const FileCache::Failure failure = cache.pin(array, pages.first, pages.count);
        if (pages.count > cache.quota()) state.refuse_pins(request, pages.count, cache.quota());
        if (failure.status == ondevice::Status::all_pinned) state.fail(request, failure.status);
        state.check(request, failure);
    });
}

void DeviceCache::unpin(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const {
    on_pages(made(state_, "unpin"), {"unpin", array, offset_bytes, bytes}, CacheTask::unpin);
}

void DeviceCache::keep(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const {
    DeviceCacheState& state = made(state_, "keep");
    const CacheRequest request{"keep", array, offset_bytes, bytes};
    if (state.options().policy != CachePolicy::pinned_range) {
        state.refuse(request, std::string("the policy of the cache is ") + to_string(state.options().policy),
                     "make the cache with the policy pinned-range, or pin");
    }
    on_pages(state, request, CacheTask::keep);
}

void DeviceCache::advise(std::uint32_t array, CacheAdvice advice) const {
    DeviceCacheState& state = made(state_, "advise");
    const CacheRequest request{"advise", array};
    if (array >= ondevice::kAdvisedArrays && array < state.arrays()) {
        state.refuse(request, "only the first " + std::to_string(ondevice::kAdvisedArrays) + " arrays take advice",
                     "put the array before others");
    }
    state.with_cache(request, [&](FileCache& cache) {
        CacheWork work{};
        work.task = CacheTask::advise;
        work.first = static_cast<u64>(advice);
        state.check(request, cache.run(array, work));
    });
}

void DeviceCache::flush() const {
    const CacheRequest request{"flush"};
    DeviceCacheState& state = made(state_, request.operation);
    state.with_cache(request, [&](FileCache& cache) { state.check(request, cache.flush()); });
}

void DeviceCache::invalidate(std::uint32_t array, std::uint64_t offset_bytes, std::uint64_t bytes) const {
    on_pages(made(state_, "invalidate"), {"invalidate", array, offset_bytes, bytes}, CacheTask::invalidate);
}

void DeviceCache::check() const {
    const CacheRequest request{"use stored arrays in a kernel"};
    DeviceCacheState& state = made(state_, request.operation);
    state.with_cache(request, [&](FileCache& cache) {
        const ondevice::Status status = cache.take_failure();
        if (status != ondevice::Status::ok) state.fail(request, status);
    });
}

DeviceCacheStatistics DeviceCache::statistics() const {
    const CacheRequest request{"ask a device cache"};
    DeviceCacheState& state = made(state_, request.operation);
    return state.with_cache(request, [&](FileCache& cache) { return state.statistics(cache); });
}

const ondevice::StoredRef* DeviceCache::ref(std::uint32_t array) const {
    const CacheRequest request{"ask a device cache", array};
    return made(state_, request.operation).with_cache(request, [&](FileCache& cache) { return cache.ref(array); });
}

void DeviceCache::close() const {
    if (state_) state_->close();
}

}  // namespace penstock
