// See service_worker.hpp.
#include "ondevice/service/service_worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "ondevice/service/naps.hpp"
#include "os/file/move_all.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

constexpr std::size_t kTakenAtOnce = 32;  // requests that a thread takes before it looks for completions
constexpr std::chrono::microseconds kReapWait{20};
const std::uint64_t kSystemPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

std::uint64_t multiple(std::uint32_t alignment) { return std::max<std::uint32_t>(alignment, 1); }

}  // namespace

ServiceWorker::ServiceWorker(ServedArrays& arrays, const ServiceOptions& options, ServiceInbox inbox)
    : arrays_(arrays),
      options_(options),
      system_(options.system != nullptr ? *options.system : os::real_system()),
      inbox_(std::move(inbox)),
      under_way_(inbox_.slots()),
      counted_(arrays.files()) {
    doubtful_.reserve(kTakenAtOnce);
}

// Makes the path past the page cache. Requires: the thread that will use it calls, since a path belongs to one thread.
void ServiceWorker::make_direct() {
    if (!options_.direct) return;
    PathOptions path_options;
    path_options.depth = inbox_.slots();
    path_options.system = &system_;
    path_options.arena = inbox_.arena();
    try {
        direct_ = make_path(PathKind::uring, path_options);
        const std::string& notes = direct_->capabilities().notes;
        direct_by_ = notes.empty() ? "uring" : "uring; " + notes;
    } catch (const Error& error) {  // the evidence has the cause
        direct_ = make_path(PathKind::direct, path_options);
        direct_by_ = "direct: " + error.info().cause;
    }
}

ServiceWorker::~ServiceWorker() = default;

void ServiceWorker::run(const std::atomic<bool>& stop) {
    answer_file_size_limits();
    make_direct();
    os::GuardedCopies copies;
    Naps naps(options_.spin_us, options_.sleep_us);
    while (!stop.load(std::memory_order_acquire)) {
        const bool took = take_some(copies, stop);
        if (reap(!took) || took || count_under_way_ != 0)
            naps.worked();
        else
            naps.rest();
    }
    while (count_under_way_ != 0) reap(true);
    std::uint32_t slot = 0;
    for (Request request{}; inbox_.next(slot, request);) inbox_.complete(slot, Status::cancelled);
    direct_.reset();
}

// Takes some requests; false: there were none. It answers at once those that cost little.
bool ServiceWorker::take_some(os::GuardedCopies& copies, const std::atomic<bool>& stop) {
    std::uint32_t slot = 0;
    Request request{};
    std::size_t taken = 0;
    bool guarded = false;
    std::uint64_t now_ns = 0;
    while (taken < kTakenAtOnce && !stop.load(std::memory_order_relaxed) && inbox_.next(slot, request)) {
        if (taken++ == 0) {
            guarded = options_.mappings && copies.usable() && arrays_.file(0).guarded();
            now_ns = Native::now_ns();
        }
        sort(slot, request, guarded, now_ns);
    }
    start_direct();
    copy_mapped(copies);
    return taken != 0;
}

bool ServiceWorker::goes_direct(const ServedFile& file, const Request& request) const noexcept {
    const FileHandle& handle = file.handle();
    if (!direct_ || handle.direct_fd < 0) return false;
    std::uint64_t offsets = multiple(handle.offset_alignment);
    // A write of a part of a page of the system's cache goes through that cache: if the rest of the page were written
    // through it at the same time, one of the two writes would be lost.
    if (request.operation == ondevice::RequestOperation::write) offsets = std::max(offsets, kSystemPage);
    if (request.offset_bytes % offsets != 0 || request.bytes % offsets != 0) return false;
    const auto* memory = inbox_.slot_data(inbox_.first());
    const std::uint64_t slot_bytes = inbox_.slot_bytes();
    const std::uint64_t place = reinterpret_cast<std::uintptr_t>(memory);
    return place % multiple(handle.memory_alignment) == 0 && slot_bytes % multiple(handle.memory_alignment) == 0;
}

void ServiceWorker::sort(std::uint32_t slot, const Request& request, bool guarded, std::uint64_t now_ns) {
    if (request.operation == RequestOperation::flush) return flush(slot, request.file);
    Request& located = under_way(slot);
    located = request;
    Status wrong = arrays_.locate(located);
    if (wrong != Status::ok) return refuse(slot, wrong);
    ServedFile& file = arrays_.file(located.file);
    wrong = file.check(located);
    if (wrong != Status::ok) return refuse(slot, wrong);
    const bool cached = file.cached(located.offset_bytes, located.bytes, now_ns);
    if (cached && guarded && located.operation == RequestOperation::read) {
        pieces_.push_back({inbox_.slot_data(slot), file.at(located.offset_bytes), located.bytes});
        piece_slots_.push_back(slot);
    } else if (!cached && goes_direct(file, located)) {
        plan_direct(slot, located);
    } else {
        serve_by_descriptor(slot);
    }
}

// Copies the cached pieces. A piece that cannot be copied, because its file was cut short, goes to descriptors, which
// find that out.
void ServiceWorker::copy_mapped(os::GuardedCopies& copies) {
    const auto tell = [](void* self, std::size_t piece) { static_cast<ServiceWorker*>(self)->copied(piece); };
    while (!pieces_.empty()) {
        const std::size_t done = copies.copy_each(pieces_, tell, this);
        if (done < pieces_.size()) serve_by_descriptor(piece_slots_[done]);
        const auto gone = static_cast<std::ptrdiff_t>(std::min(done + 1, pieces_.size()));
        pieces_.erase(pieces_.begin(), pieces_.begin() + gone);
        piece_slots_.erase(piece_slots_.begin(), piece_slots_.begin() + gone);
    }
    settle_doubtful();
}

void ServiceWorker::copied(std::size_t piece) noexcept {
    const os::GuardedCopies::Piece& one = pieces_[piece];
    if (static_cast<const std::byte*>(one.to)[one.bytes - 1] == std::byte{0})
        doubtful_.push_back(piece_slots_[piece]);  // there is room for a batch
    else
        done(piece_slots_[piece], Source::mapping);
}

// Answers the copies that end in a zero. The zeros behind the end of a file that was cut short do not fault, so the
// thread asks for the file's size after the copies: bytes that it covers then were there. It asks once for a batch, and
// not at all for copies that end in another byte.
void ServiceWorker::settle_doubtful() {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < doubtful_.size(); ++i) {
        const Request& request = under_way(doubtful_[i]);
        if (i == 0 || request.file != under_way(doubtful_[i - 1]).file) bytes = arrays_.file(request.file).bytes_now();
        if (request.offset_bytes + request.bytes <= bytes)
            done(doubtful_[i], Source::mapping);
        else
            serve_by_descriptor(doubtful_[i]);
    }
    doubtful_.clear();
}

void ServiceWorker::serve_by_descriptor(std::uint32_t slot) {
    const Request& request = under_way(slot);
    auto* memory = reinterpret_cast<std::byte*>(inbox_.slot_data(slot));
    const Answer answer = by_descriptor(arrays_.file(request.file), request, memory);
    if (answer.status == Status::ok) return done(slot, Source::buffered);
    note(request.file, request, answer);
    inbox_.complete(slot, answer.status);
}

void ServiceWorker::plan_direct(std::uint32_t slot, const Request& request) {
    Operation one{};
    one.direction = request.operation == ondevice::RequestOperation::write ? Direction::write : Direction::read;
    one.file = &arrays_.file(request.file).handle();
    one.offset_bytes = request.offset_bytes;
    one.memory = inbox_.slot_data(slot);
    one.bytes = request.bytes;
    one.tag = slot;
    one.staging = true;
    operations_.push_back(one);
}

// Submits requests in the order in which they lie in the file: the system joins neighbours that come together.
void ServiceWorker::start_direct() {
    const auto place = [](const Operation& one) { return std::pair(one.file, one.offset_bytes); };
    std::sort(operations_.begin(), operations_.end(),
              [&](const Operation& a, const Operation& b) { return place(a) < place(b); });
    for (std::span<const Operation> left = operations_; !left.empty();) {
        const std::size_t count = direct_->submit(left);
        count_under_way_ += count;
        left = left.subspan(count);
        if (!left.empty()) reap(true);  // the path's queue is full
    }
    operations_.clear();
}

// Takes completions; true: something ended. With `wait` it waits for a moment.
bool ServiceWorker::reap(bool wait) {
    if (count_under_way_ == 0) return false;
    std::array<Completion, 32> ended;
    const std::size_t count = direct_->reap(ended, wait ? Deadline::after(kReapWait) : Deadline::now());
    for (std::size_t i = 0; i < count; ++i) {
        const auto slot = static_cast<std::uint32_t>(ended[i].tag);
        const Request& request = under_way(slot);
        --count_under_way_;
        if (ended[i].status == ErrorCode::ok && ended[i].bytes == request.bytes) {
            done(slot, Source::direct);
            continue;
        }
        // A short count, an interruption, O_DIRECT refused after all, or a bad disk: descriptors find out which.
        serve_by_descriptor(slot);
    }
    return count != 0;
}

ServiceWorker::Answer ServiceWorker::by_descriptor(const ServedFile& file, const Request& request, std::byte* memory) {
    const bool read = request.operation == ondevice::RequestOperation::read;
    const os::FileMoved moved = os::move_all(
        system_, {.direction = read ? Direction::read : Direction::write,
                  .fd = file.handle().buffered_fd,
                  .memory = memory,
                  .bytes = request.bytes,
                  .offset_bytes = request.offset_bytes});
    const int number = moved.error_number;
    if (moved.bytes == request.bytes) return {};
    if (number == 0) return {Status::truncated, 0};
    return {number == EBADF || number == EROFS ? Status::read_only : Status::io_error, number};
}

// Syncs all files of the array, even after one that fails. Ensures: what was completed before the request is durable.
// Requires: a caller waits for its writes before it asks for a flush.
void ServiceWorker::flush(std::uint32_t slot, std::uint32_t array) {
    const ServedArrays::FileNumbers numbers = arrays_.files_of(array);
    if (numbers.count == 0) return refuse(slot, Status::invalid);
    Status first = Status::ok;
    for (std::uint32_t file = numbers.first; file < numbers.first + numbers.count; ++file) {
        const Answer answer = sync(arrays_.file(file));
        if (answer.status == Status::ok) {
            count(file, Source::buffered, 0);
            continue;
        }
        if (first == Status::ok) first = answer.status;
        note(file, Request{0, 0, 0, 0, RequestOperation::flush, 0}, answer);
    }
    inbox_.complete(slot, first);
}

// Syncs a file. Once a sync failed, it fails for ever: bytes may be lost, and no later sync brings them back.
ServiceWorker::Answer ServiceWorker::sync(ServedFile& file) {
    for (std::uint32_t retries = 0; system_.fdatasync(file.handle().buffered_fd) != 0;) {
        const int number = errno;
        if (number == EINTR && os::try_again(number, retries)) continue;
        if (number == EINTR) return {Status::io_error, EINTR};
        file.lose(number);
        break;
    }
    return file.lost() == 0 ? Answer{} : Answer{Status::io_error, file.lost()};
}

// Answers a request that makes no sense; the storage is not asked.
void ServiceWorker::refuse(std::uint32_t slot, Status status) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    inbox_.complete(slot, status);
}

void ServiceWorker::note(std::uint32_t file, const Request& request, const Answer& answer) {
    counted_[file].failed.fetch_add(1, std::memory_order_relaxed);
    arrays_.failed({answer.status, request.operation, file, request.offset_bytes, request.bytes, answer.system_code});
}

void ServiceWorker::count(std::uint32_t file, Source source, std::uint64_t bytes) {
    Counted& counted = counted_[file].by_source[static_cast<std::size_t>(source)];
    counted.bytes.store(counted.bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    // Pairs with: the acquiring load of add_to. A thread that sees a request of a source then sees what that source is.
    counted.requests.store(counted.requests.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void ServiceWorker::done(std::uint32_t slot, Source source) {
    const Request& request = under_way(slot);
    count(request.file, source, request.bytes);
    inbox_.complete(slot, Status::ok);
}

void ServiceWorker::add_to(ServiceEvidence& evidence) const {
    bool direct = false;
    for (std::size_t file = 0; file < counted_.size(); ++file) {
        FileEvidence& found = evidence.files[file];
        for (std::size_t i = 0; i < kSources; ++i) {
            const std::uint64_t requests = counted_[file].by_source[i].requests.load(std::memory_order_acquire);
            const std::uint64_t bytes = counted_[file].by_source[i].bytes.load(std::memory_order_relaxed);
            found.by_source[i].requests += requests;
            found.by_source[i].bytes += bytes;
            evidence.by_source[i].requests += requests;
            evidence.by_source[i].bytes += bytes;
            direct |= static_cast<Source>(i) == Source::direct && requests != 0;
        }
        const std::uint64_t failed = counted_[file].failed.load(std::memory_order_relaxed);
        found.failed += failed;
        evidence.failed += failed;
    }
    evidence.failed += refused_.load(std::memory_order_relaxed);
    if (direct && evidence.direct_by.empty()) evidence.direct_by = direct_by_;
}

}  // namespace penstock::ondevice
