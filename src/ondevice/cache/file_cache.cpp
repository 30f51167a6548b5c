// See file_cache.hpp.
#include "ondevice/cache/file_cache.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "os/file/file_stat.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kSlotMemory = 64 * kMiB;   // the mailbox's page-locked memory
constexpr u32 kSlotsMax = 4096;          // more add nothing: the link is full long before
constexpr u32 kThreadsMax = 12;          // the most that the cache takes by itself
constexpr u32 kThreadsAskedMax = 256;    // more would only wait for each other
// The workers of a write: so many, or a quarter of the pages on probation if that is more. With more workers, fewer
// neighbours would be in the cache at one time.
constexpr u32 kWriters = 64;
constexpr u32 kManyWorkers = 1024;       // allowed even if the probation part is smaller
constexpr u32 kFlushTurns = 30;          // at most: see write_back
constexpr u64 kThreadRows = 8;           // of a list, for each of a GPU's threads that put it in order
constexpr u32 kStripes = 256;            // stripes of counts: a power of two, more than a GPU has multiprocessors

[[noreturn]] void refuse_cache(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "make a page cache", cause, advice);
}

// Refuses a file that cannot be written back: bytes stored to its pages could never leave the cache.
[[noreturn]] void refuse_to_write(const FileHandle& file, const std::string& not_mapped) {
    ErrorInfo info;
    info.code = ErrorCode::unsupported;
    info.operation = "make a page cache";
    info.file = file.name;
    info.cause = "files of hugetlbfs are written by a mapping of the GPU's alone, and there is none: " + not_mapped;
    info.advice = "open it for reading, or keep it in tmpfs";
    throw Error(std::move(info));
}

CacheShape checked_shape(const FileCacheOptions& options) {
    const u64 page = options.page_bytes;
    if (page < 512 || page > 2 * kMiB || (page & (page - 1)) != 0) {
        refuse_cache("pages of " + std::to_string(page) + " bytes", "give a power of two from 512 to 2097152");
    }
    const u64 frames = options.cache_bytes / page;
    if (frames == 0 || frames >= kNoFrame) {
        refuse_cache("cache_bytes of " + std::to_string(options.cache_bytes) + " are " + std::to_string(frames) +
                         " pages of " + std::to_string(page),
                     "give room for at least one page, and for fewer than 4294967295 pages");
    }
    return shape_of(static_cast<u32>(frames), static_cast<u32>(page));
}

MailboxSizes mailbox_sizes(const FileCacheOptions& options, u32 page_bytes) {
    const u64 room = std::clamp<u64>(kSlotMemory / page_bytes, 16, kSlotsMax);
    return checked({options.slots != 0 ? options.slots : static_cast<u32>(room), page_bytes});
}

u32 service_threads(const FileCacheOptions& options, u32 slots) {
    if (options.threads > kThreadsAskedMax) {
        refuse_cache(std::to_string(options.threads) + " threads",
                     "ask for at most " + std::to_string(kThreadsAskedMax));
    }
    const u32 cores = std::max(1u, std::thread::hardware_concurrency());
    const u32 wanted = options.threads != 0 ? options.threads : std::clamp(cores * 3 / 4, 1u, kThreadsMax);
    return std::min(wanted, slots);
}

// How many pages must stay unpinned. All others come through them, so they must do for what is under way at a time.
u32 unpinned(const CacheShape& shape) {
    constexpr u64 kPages = 256, kBytes = 8 * kMiB;
    const u64 enough = std::max(kPages, kBytes / shape.page_bytes);
    return static_cast<u32>(std::min<u64>((shape.frames + 7) / 8, enough));
}

using Company = CacheLanes::Company;

// Whether other calls may run beside this task. They may, if the task moves bytes, as a user's kernel does, or changes
// a word in one step. A task that changes which pages may go, or answers for all pages, would find pages in use.
Company company_of(CacheTask task) noexcept {
    switch (task) {
        case CacheTask::gather:
        case CacheTask::gather_mapped:
        case CacheTask::scatter:
        case CacheTask::read:
        case CacheTask::write:
        case CacheTask::prefetch:
        case CacheTask::failure: return Company::others;
        default: return Company::none;
    }
}

// Waits for the event: at first it spins, because waking a thread that sleeps takes as long as short work; then it
// sleeps, so that others have the core, the service's threads among them.
void wait_for(Event& event) {
    constexpr std::chrono::microseconds kShort{200};
    const auto end = penstock::Clock::now() + kShort;
    while (!event.done()) {
        if (penstock::Clock::now() >= end) {
            event.wait(Deadline::never());
            return;
        }
        std::this_thread::yield();
    }
}

// Reads counters to which other calls go on adding. Threads of the host add to each word by itself, so this reads word
// by word.
template <class T>
std::vector<T> words_of(const DmaBlock& from) {
    static_assert(sizeof(T) % sizeof(u64) == 0);
    std::vector<u64> words(from.bytes / sizeof(u64));
    for (u64 i = 0; i < words.size(); ++i)
        words[i] = __atomic_load_n(reinterpret_cast<const u64*>(from.data) + i, __ATOMIC_RELAXED);
    std::vector<T> found(from.bytes / sizeof(T));
    std::memcpy(found.data(), words.data(), from.bytes);
    return found;
}

}  // namespace

FileCache::FileCache(Device& device, const std::vector<FileSet>& arrays, const FileCacheOptions& options)
    : device_(device.info()),
      options_(options),
      shape_(checked_shape(options)),
      own_(device, MemoryKind::device),
      shared_(device, MemoryKind::pinned),
      fetched_(arrays.size()) {
    for (std::atomic<u8>& one : fetched_) one = 1;
    if (arrays.empty()) refuse_cache("no files", "name at least one");
    const MailboxSizes sizes = mailbox_sizes(options, shape_.page_bytes);
    const u32 threads = service_threads(options, sizes.slots);
    check_apart(arrays);
    for (const FileSet& set : arrays) {
        layouts_.push_back(layout_of(set, shape_.page_bytes));
        read_only_.push_back(!set.writable());
    }
    map(device, arrays);
    quota_ = shape_.frames - unpinned(shape_);
    most_workers_ = ondevice::most_workers(device_);
    data_ = own_.allocate(shape_.data_bytes());
    states_ = own_.allocate(shape_.state_bytes());
    counts_ = own_.allocate(kStripes * sizeof(CacheCounts));
    failed_ = own_.allocate(sizeof(u32));
    reuse_ = own_.allocate(Reuse<Native>::bytes_of(shape_.frames));
    done_ = own_.allocate(u64{most_workers_} * sizeof(u32));
    mailbox_ = std::make_unique<Mailbox>(shared_, own_, sizes);
    make_refs(arrays);
    const u64 answer = std::max<u64>({counts_.bytes, moved_.bytes, sizeof(CacheOutcome), done_.bytes});
    lanes_ = std::make_unique<CacheLanes>(device, CacheLanes::Memories{own_, shared_}, answer);
    service_ = std::make_unique<Service>(*mailbox_, arrays,
                                         ServiceOptions{.threads = threads, .system = options.system});
    CacheWork format{};
    format.task = CacheTask::format;
    run(0, format);
}

FileCache::~FileCache() {
    CacheWork settle{};
    settle.task = CacheTask::settle;
    try {
        run(0, settle);
    } catch (...) {  // a device that fails here has nothing in flight any more
    }
}

void FileCache::map(Device& device, const std::vector<FileSet>& arrays) {
    for (u32 i = 0; i < arrays.size(); ++i) {
        const FileMapping::Devices devices =
            options_.map_emulated ? FileMapping::Devices::all : FileMapping::Devices::gpus;
        mappings_.push_back(options_.map ? std::make_unique<FileMapping>(device, arrays[i], layouts_[i], devices)
                                         : nullptr);
        if (!arrays[i].writable() || mapped(i)) continue;
        for (const FileHandle* file : arrays[i].files)
            if (os::of_huge_pages(file->buffered_fd)) refuse_to_write(*file, mapping_refusal(i));
    }
}

void FileCache::make_refs(const std::vector<FileSet>& arrays) {
    std::vector<StoreArray> table;
    std::vector<StoredRef> refs(arrays.size());
    u64 files = 0;
    for (const FileLayout& layout : layouts_) files += layout.stripes.files;
    moved_ = own_.allocate(files * sizeof(MovedByGpu));
    auto* moved = reinterpret_cast<MovedByGpu*>(moved_.data);
    for (u32 i = 0; i < arrays.size(); ++i) {
        auto* const mapping = mapped(i) ? reinterpret_cast<u8*>(mappings_[i]->data()) : nullptr;
        table.push_back({bytes(i), mapping, arrays[i].writable() ? 1u : 0u, layouts_[i].stripes, moved});
        moved += layouts_[i].stripes.files;
    }
    files_ = own_.allocate(table.size() * sizeof(StoreArray));
    own_.write(files_, table.data(), table.size() * sizeof(StoreArray));
    StoredCache cache{};
    cache.hits() = {pool_of<Native>(shape_, states_.data), data_.data, shape_.page_bytes,
                    reinterpret_cast<CacheCounts*>(counts_.data), kStripes - 1};
    cache.hits().pool.chosen = options_.replacement;
    cache.store() = {mailbox_->ref(), reinterpret_cast<StoreArray*>(files_.data), static_cast<u32>(arrays.size()),
                     shape_.page_bytes};
    cache.quota = quota_;
    cache.together = together_of(shape_.frames, quota_);
    for (u32 i = 0; i < refs.size(); ++i) {
        refs[i].cache = cache;
        refs[i].number = i;
        refs[i].bytes = bytes(i);
        refs[i].wait_ns = options_.wait_ns;
        refs[i].status = reinterpret_cast<int*>(failed_.data);
        refs[i].writable = arrays[i].writable() ? 1 : 0;
    }
    refs_ = own_.allocate(refs.size() * sizeof(StoredRef));
    own_.write(refs_, refs.data(), refs.size() * sizeof(StoredRef));
}

const StoredRef* FileCache::ref(u32 array) const { return reinterpret_cast<const StoredRef*>(refs_.data) + array; }

// Copies the device's bytes at `from` to the lane's answers, on the lane's stream behind what was queued before. So one
// wait is enough for both.
void FileCache::fetch(CacheLane& lane, u8* from, u64 bytes, Then then) const {
    lane.stream->copy(CopyDirection::to_host, lane.answers, from, bytes);
    lane.stream->record(*lane.event);
    if (then == Then::clear) lane.stream->fill(from, bytes, 0);  // behind the event, so that no thread waits for it
    wait_for(*lane.event);
}

template <class T>
std::vector<T> FileCache::fetched(CacheLane& lane, const DmaBlock& from) const {
    fetch(lane, from.data, from.bytes, Then::keep);
    std::vector<T> found(from.bytes / sizeof(T));
    std::memcpy(found.data(), lane.answers, found.size() * sizeof(T));
    return found;
}

Status FileCache::take_failure() {
    CacheWork work{};
    work.task = CacheTask::failure;
    Failure failure = run(0, work);
    for (u32 array = 1; array < layouts_.size() && failure.status == Status::ok; ++array) failure = cut_short(array);
    return failure.status;
}

// How many workers the work gets: as many as it can use, and no more than can hold a page each while others have room.
u32 FileCache::workers_for(const CacheWork& work) const {
    u64 useful = 1;
    switch (work.task) {
        case CacheTask::gather:
        case CacheTask::gather_mapped:
        case CacheTask::scatter:
        case CacheTask::prefetch:
        case CacheTask::pin:
        case CacheTask::unpin: useful = work.count; break;
        case CacheTask::read: useful = work.count / shape_.page_bytes + 2; break;
        case CacheTask::write:
            useful = std::min<u64>(work.count / shape_.page_bytes + 2, std::max(kWriters, shape_.probation / 4));
            break;
        // Each worker takes neighbours along, and should find slots for them.
        case CacheTask::write_back: useful = std::min(shape_.frames, kManyWorkers); break;
        case CacheTask::format: useful = shape_.frames; break;
        case CacheTask::order_count:
        case CacheTask::order_place: useful = work.count / (kThreadRows * 32) + 1; break;
        case CacheTask::order_begin: useful = work.order.regions / 32 + 1; break;
        default: break;
    }
    // If more misses are under way than the probation part has frames, some of them wait for others' pages.
    if (is_of_order(work.task)) return static_cast<u32>(std::min<u64>(useful, most_workers_));
    const u64 room = std::min(std::max<u64>(1, shape_.frames / 2), std::max<u64>(kManyWorkers, shape_.probation));
    if (work.workers != 0) useful = std::min<u64>(useful, work.workers);
    return static_cast<u32>(std::clamp<u64>(useful, 1, std::min<u64>(most_workers_, room)));
}

FileCache::Failure FileCache::run_on(CacheLane& lane, u32 array, CacheWork work) {
    const u64 failures_before = service_->failures();
    work.ref = ref(array);
    work.outcome = lane.outcome;
    launch(device_, *lane.stream, work, workers_for(work));
    fetch(lane, reinterpret_cast<u8*>(lane.outcome), sizeof(CacheOutcome), Then::clear);
    CacheOutcome outcome;
    std::memcpy(&outcome, lane.answers, sizeof(outcome));
    cycles_ += outcome.cycles;
    ns_ += outcome.ns;
    if (work.task == CacheTask::gather_mapped) note_fetched(array, work, outcome.fetched);
    Failure failure{static_cast<Status>(static_cast<int>(outcome.status)), outcome.where};
    if (failure.status == Status::ok) return cut_short(array);
    for (const ServedFailure& one : service_->failures_since(failures_before)) {
        if (one.status == failure.status) failure.storage.push_back(one);
    }
    return failure;
}

// The failure of an array whose mapped file was cut short, if one was. The GPU's registration pins the mapping's pages,
// so kernels go on reading and writing them after the file has lost them, and do not notice.
FileCache::Failure FileCache::cut_short(u32 array) const {
    if (!mapped(array)) return {};
    const auto cut = service_->cut_short(array);
    return cut ? Failure{cut->status, 0, {*cut}} : Failure{};
}

FileCache::Failure FileCache::run(u32 array, CacheWork work) {
    const CacheLanes::Turn lane(*lanes_, company_of(work.task));
    return work.task == CacheTask::gather ? gather(*lane, array, work) : run_on(*lane, array, work);
}

FileCache::Failure FileCache::pin(u32 array, u64 first_page, u64 pages) {
    const CacheLanes::Turn lane(*lanes_, Company::none);
    if (pages > quota_) return {Status::all_pinned, first_page};
    CacheWork work{};
    work.first = first_page;
    work.count = pages;
    work.task = CacheTask::promise;
    Failure failure = run_on(*lane, array, work);
    if (failure.status != Status::ok || pages == 0) return failure;
    work.task = CacheTask::pin;
    work.done = reinterpret_cast<u32*>(done_.data);
    failure = run_on(*lane, array, work);
    if (failure.status == Status::ok) return failure;
    std::vector<u32> done = fetched<u32>(*lane, done_);
    done.resize(workers_for(work));
    work.task = CacheTask::unpin;
    run_on(*lane, array, work);
    for (const u32 count : done) work.count -= count;
    work.task = CacheTask::take_back;
    run_on(*lane, array, work);
    return failure;
}

FileCache::Failure FileCache::flush() {
    const CacheLanes::Turn lane(*lanes_, Company::none);
    const Failure written = write_back(*lane);
    CacheWork work{};
    work.task = CacheTask::commit;
    Failure failure = run_on(*lane, 0, work);
    failure.of_sync = true;
    if (written.status != Status::ok) return written;
    for (u32 array = 1; array < layouts_.size() && failure.status == Status::ok; ++array) failure = cut_short(array);
    return failure;
}

// Writes back all dirty pages. If many warps wait for few slots or a slow disk, a page may not go in its time though
// others do. Then the pages that are left have another turn, as long as some go in each turn, and at most kFlushTurns:
// a kernel may go on making other pages dirty.
FileCache::Failure FileCache::write_back(CacheLane& lane) {
    CacheWork work{};
    work.task = CacheTask::write_back;
    const auto gone = [&] {
        u64 pages = 0;
        const auto all = device_.emulated ? words_of<CacheCounts>(counts_) : fetched<CacheCounts>(lane, counts_);
        for (const CacheCounts& one : all) pages += one.tally.write_backs;
        return pages;
    };
    Failure written;
    u64 before = gone();
    for (u32 turn = 0; turn < kFlushTurns; ++turn) {
        written = run_on(lane, 0, work);
        if (written.status != Status::timed_out) break;
        const u64 now = gone();
        if (now == before) break;
        before = now;
    }
    return written;
}

template <class T>
std::vector<T> FileCache::counted(const DmaBlock& from) {
    if (device_.emulated) return words_of<T>(from);
    const CacheLanes::Turn lane(*lanes_, Company::others);
    return fetched<T>(*lane, from);
}

std::vector<CacheCounts> FileCache::counts() { return counted<CacheCounts>(counts_); }

double FileCache::cycles_per_ns() const noexcept {
    const u64 ns = ns_;
    return ns == 0 ? 0 : static_cast<double>(cycles_) / static_cast<double>(ns);
}

std::vector<MovedByGpu> FileCache::moved() { return counted<MovedByGpu>(moved_); }

std::string FileCache::mapping_refusal(u32 array) const {
    return mappings_[array] == nullptr ? "not asked for" : mappings_[array]->refusal();
}

u64 FileCache::device_bytes() const noexcept {
    return states_.bytes + data_.bytes + files_.bytes + refs_.bytes + counts_.bytes + moved_.bytes + done_.bytes +
           lanes_->device_bytes() + failed_.bytes + reuse_.bytes + order_bytes_;
}

u64 FileCache::pinned_bytes() const noexcept {
    const MailboxRef<Native> ref = mailbox_->ref();
    return ref.depth() * (u64{ref.slot_bytes} + sizeof(MailboxDescriptor) + sizeof(u32)) + lanes_->pinned_bytes();
}

}  // namespace penstock::ondevice
