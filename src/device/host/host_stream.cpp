// See host_stream.hpp. Small unthrottled work on an idle stream runs in the caller's thread. It is still in order, and
// saves the cost of waking another thread.
#include "device/host/host_stream.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "device/boxes/box_plan.hpp"
#include "device/host/box_host.hpp"
#include "device/host/pack_host.hpp"
#include "device/host/stamp_host.hpp"
#include "device/packs/pack_plan.hpp"

namespace penstock::device {
namespace {

constexpr std::uint64_t kCallerBytes = 64 * kKiB;
// The assumed speed of memcpy: a throttled copy moves its bytes this long before its modelled end.
constexpr double kMemcpyBytesPerSecond = 8e9;

std::chrono::nanoseconds seconds(double value) noexcept {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
}

HostEvent& as_host(Event& event) {
    auto* host = dynamic_cast<HostEvent*>(&event);
    if (host == nullptr) {
        throw Error(ErrorCode::invalid_argument, "record or wait", "the event belongs to another device",
                    "make events with the device that made the stream");
    }
    return *host;
}

const void* lowest(const void* first, const ByteSpan& span) noexcept {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(first) +
                                         static_cast<std::uint64_t>(span.low));
}

}  // namespace

void HostMarker::finish(const std::optional<ErrorInfo>& failure) {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    done_.store(true, std::memory_order_release);  // Pairs with: the load in done().
    finished_.notify_all();
}

bool HostMarker::wait(Deadline deadline) {
    if (done()) return true;
    if (deadline.passed()) return false;
    std::unique_lock lock(mutex_);
    if (deadline.is_never()) {
        finished_.wait(lock, [this] { return done(); });
        return true;
    }
    return finished_.wait_until(lock, deadline.when(), [this] { return done(); });
}

std::shared_ptr<HostMarker> HostEvent::renew() {
    auto marker = std::make_shared<HostMarker>();
    const std::lock_guard lock(mutex_);
    latest_ = marker;
    return marker;
}

std::shared_ptr<HostMarker> HostEvent::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

bool HostEvent::done() { return wait(Deadline::now()); }

bool HostEvent::wait(Deadline deadline) {
    const auto marker = latest();
    if (!marker) return true;
    if (!marker->wait(deadline)) return false;
    if (marker->failure()) throw Error(*marker->failure());
    return true;
}

std::chrono::nanoseconds HostCostModel::cost(std::uint64_t bytes) const noexcept {
    const auto latency = std::chrono::nanoseconds(latency_ns);
    if (bandwidth_bytes_per_s <= 0) return latency;
    return latency + seconds(static_cast<double>(bytes) / bandwidth_bytes_per_s);
}

void HostStreams::add(HostStream& stream) {
    const std::lock_guard lock(mutex_);
    all_.insert(&stream);
}

void HostStreams::remove(HostStream& stream) {
    const std::lock_guard lock(mutex_);
    all_.erase(&stream);
}

void HostStreams::with(std::uintptr_t native, const std::function<void(HostStream&)>& use) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(reinterpret_cast<HostStream*>(native));
    if (found == all_.end()) {
        throw Error(ErrorCode::invalid_argument, "find a stream",
                    std::to_string(native) + " is no stream of the device host",
                    "pass 0, or use a context of the GPU that the stream belongs to");
    }
    use(**found);
}

HostStream::HostStream(std::shared_ptr<HostMemory> memory, std::shared_ptr<HostStreams> streams, HostCostModel cost)
    : memory_(std::move(memory)), streams_(std::move(streams)), cost_(cost) {
    streams_->add(*this);
}

HostStream::~HostStream() {
    streams_->remove(*this);
    drain();
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    queued_.notify_one();
    if (thread_.joinable()) thread_.join();
}

std::optional<ErrorInfo> HostStream::failure() const {
    if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return failure_;
}

void HostStream::raise_failure() const {
    if (const auto info = failure()) throw Error(*info);
}

void HostStream::execute(Work& work) {
    if (work.run && !failed_.load(std::memory_order_acquire)) {
        try {
            work.run();
        } catch (const Error& error) {
            const std::lock_guard lock(mutex_);
            failure_ = error.info();
            failed_.store(true, std::memory_order_release);
        }
    }
    if (work.marker) work.marker->finish(failure());
}

void HostStream::submit(std::uint64_t bytes, Work work) {
    raise_failure();
    if (bytes <= kCallerBytes && !cost_.throttled() && idle()) {
        execute(work);
    } else {
        enqueue(std::move(work));
    }
}

// The source may be a registered mapping whose file was cut short. A GPU has pinned the pages and reads on. Here a
// plain copy would end the process.
void HostStream::copy_now(void* destination, const void* source, std::uint64_t bytes) const {
    if (!guard_.usable()) {
        std::memcpy(destination, source, bytes);
    } else if (!guard_.copy(destination, source, bytes)) {
        throw Error(ErrorCode::device_error, "copy", "the source went away while it was copied",
                    "do not cut files short while their registered mapping is read");
    }
}

void HostStream::start_thread() {
    if (thread_.joinable()) return;
    try {
        thread_ = std::thread([this] { run_queue(); });
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::out_of_memory, "start a stream of the emulated device", error.code().message(),
                    "raise the limits of memory and processes (ulimit -v, ulimit -u)");
    }
}

void HostStream::enqueue(Work work) {
    {
        const std::lock_guard lock(mutex_);
        start_thread();  // first, because work without a thread must not be counted
        queue_.push_back(std::move(work));
        pending_.fetch_add(1, std::memory_order_relaxed);
    }
    queued_.notify_one();
}

void HostStream::run_queue() {
    std::unique_lock lock(mutex_);
    while (true) {
        queued_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) return;
        Work work = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        execute(work);
        work = Work{};  // releases captured memory before the stream counts as idle
        lock.lock();
        // Pairs with: the load in idle().
        if (pending_.fetch_sub(1, std::memory_order_release) == 1) emptied_.notify_all();
    }
}

void HostStream::drain() {
    if (idle()) return;
    std::unique_lock lock(mutex_);
    emptied_.wait(lock, [this] { return idle(); });
}

void HostStream::synchronize() {
    drain();
    raise_failure();
}

// Sleeps until absolute times, so that the next copy makes up for a copy that slept too long.
void HostStream::move(std::uint64_t bytes, Clock::time_point issued, const std::function<void()>& copy_bytes) {
    if (!cost_.throttled()) return copy_bytes();
    busy_until_ = std::max(busy_until_, issued) + cost_.cost(bytes);
    std::this_thread::sleep_until(busy_until_ - seconds(static_cast<double>(bytes) / kMemcpyBytesPerSecond));
    copy_bytes();
    std::this_thread::sleep_until(busy_until_);
}

std::shared_ptr<const HostRegion> HostStream::require(const char* operation, const void* memory,
                                                      std::uint64_t bytes) const {
    auto region = memory_->find_device_side(memory, bytes);
    if (!region) {
        throw Error(ErrorCode::device_error, operation,
                    "an illegal memory access: " + std::to_string(bytes) +
                        " bytes at a pointer that is not, or no longer, memory of this device",
                    "keep buffers until the work that uses them is done");
    }
    return region;
}

void HostStream::copy(CopyDirection direction, void* destination, const void* source, std::uint64_t bytes) {
    raise_failure();
    if (bytes == 0) return;
    const void* device_side = direction == CopyDirection::to_device ? destination : source;
    if (!memory_->find_device_side(device_side, bytes)) {
        throw Error(ErrorCode::invalid_argument, "copy",
                    "the device side of the copy is not memory of this device, or leaves its allocation",
                    "allocate it with the device, or swap the direction");
    }
    const auto issued = cost_.throttled() ? Clock::now() : Clock::time_point{};
    submit(bytes, {[=, this] {
                       move(bytes, issued, [&] {
                           const auto region = require("copy", device_side, bytes);
                           copy_now(destination, source, bytes);
                       });
                   },
                   nullptr});
}

void HostStream::copy_batch(CopyDirection direction, std::span<const CopyPiece> pieces) {
    std::uint64_t total = 0;
    for (const CopyPiece& piece : pieces) total += piece.bytes;
    if (total == 0) return raise_failure();
    const auto issued = cost_.throttled() ? Clock::now() : Clock::time_point{};
    submit(total, {[=, this, kept = std::vector<CopyPiece>(pieces.begin(), pieces.end())] {
                       move(total, issued, [&] {
                           for (const CopyPiece& piece : kept) {
                               // A kernel touches both sides, so the host side must be visible to the device too.
                               if (piece.bytes == 0) continue;
                               const auto to = require("copy_batch", piece.destination, piece.bytes);
                               const auto from = require("copy_batch", piece.source, piece.bytes);
                               std::memcpy(piece.destination, piece.source, piece.bytes);
                           }
                       });
                   },
                   nullptr});
    static_cast<void>(direction);
}

void HostStream::record(Event& event) {
    raise_failure();
    auto marker = as_host(event).renew();
    if (idle()) {
        marker->finish(failure());
    } else {
        enqueue({nullptr, std::move(marker)});
    }
}

void HostStream::wait(Event& event) {
    raise_failure();
    auto marker = as_host(event).latest();
    if (!marker || (marker->done() && !marker->failure())) return;
    enqueue({[this, marker] {
                 marker->wait(Deadline::never());
                 if (marker->failure()) throw Error(*marker->failure());
                 if (cost_.throttled()) busy_until_ = std::max(busy_until_, Clock::now());
             },
             nullptr});
}

void HostStream::follow(std::uintptr_t native) {
    if (native == 0) return;
    HostEvent queued;
    streams_->with(native, [&](HostStream& first) { first.record(queued); });
    wait(queued);
}

void HostStream::lead(std::uintptr_t native) {
    if (native == 0) return synchronize();
    HostEvent queued;
    record(queued);
    streams_->with(native, [&](HostStream& later) { later.wait(queued); });
}

void HostStream::stamp(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) {
    submit(bytes, {[=, this] {
                       const auto region = require("stamp", memory, bytes);
                       stamp_on_host(memory, bytes, file_offset, seed);
                   },
                   nullptr});
}

StampCheck HostStream::verify_stamp(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                                    std::uint64_t seed) {
    StampCheck check;
    submit(bytes, {[&, this] {
                       const auto region = require("verify_stamp", memory, bytes);
                       check = check_stamp_on_host(memory, bytes, file_offset, seed);
                   },
                   nullptr});
    synchronize();
    return check;
}

std::vector<std::uint32_t> HostStream::checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) {
    std::vector<std::uint32_t> found;
    std::uint64_t total = 0;
    for (const ChecksumRange& range : ranges) total += range.bytes;
    submit(total, {[&, this] {
                       for (const ChecksumRange& range : ranges) {
                           std::shared_ptr<const HostRegion> region;  // empty ranges may lie anywhere
                           if (range.bytes != 0) region = require("checksums", range.memory, range.bytes);
                           found.push_back(checksum(kind, {static_cast<const std::byte*>(range.memory), range.bytes}));
                       }
                   },
                   nullptr});
    synchronize();
    return found;
}

void HostStream::fill(void* memory, std::uint64_t bytes, int byte_value) {
    submit(bytes, {[=, this] {
                       const auto region = require("fill", memory, bytes);
                       std::memset(memory, byte_value, bytes);
                   },
                   nullptr});
}

void HostStream::move_boxes(const std::vector<Box>& boxes) const {
    std::shared_ptr<const HostRegion> to, from;  // most boxes lie in the same region as the previous one
    for (const Box& box : boxes) {
        const ByteSpan written = destination_span(box), read = source_span(box);
        const void* writes = lowest(box.destination, written);
        const void* reads = lowest(box.source, read);
        if (!to || !to->holds(writes, written.bytes())) to = require("copy_boxes", writes, written.bytes());
        if (!from || !from->holds(reads, read.bytes())) from = require("copy_boxes", reads, read.bytes());
        copy_box_on_host(box);
    }
}

void HostStream::copy_boxes(std::span<const Box> boxes) {
    std::vector<Box> kept = simplified(boxes);
    std::uint64_t total = 0;
    for (const Box& box : kept) total += box.bytes();
    if (total == 0) return raise_failure();
    const auto issued = cost_.throttled() ? Clock::now() : Clock::time_point{};
    submit(total, {[=, this, kept = std::move(kept)] { move(total, issued, [&] { move_boxes(kept); }); }, nullptr});
}

void HostStream::fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item) {
    BoxFill fill = plan_fill(boxes, item);
    std::uint64_t total = 0;
    for (const Box& box : fill.boxes) total += box.bytes();
    if (total == 0) return raise_failure();
    submit(total, {[this, fill = std::move(fill)] {
                       for (Box box : fill.boxes) {
                           const auto region = require("fill_boxes", box.destination, destination_span(box).bytes());
                           box.source = fill.pattern.data();
                           copy_box_on_host(box);
                       }
                   },
                   nullptr});
}

void HostStream::move_packs(const std::vector<Pack>& packs) const {
    for (const Pack& pack : packs) {
        const auto region = [&](const void* first, PackNumber number, const auto& strides) {
            const ByteSpan span =
                byte_span(bytes_of(number), {pack.extents.data(), pack.dimensions}, {strides.data(), pack.dimensions});
            return require("pack", lowest(first, span), span.bytes());
        };
        const auto to = region(pack.destination, pack.to, pack.destination_strides);
        const auto from = region(pack.source, pack.from, pack.source_strides);
        pack_on_host(pack);
    }
}

void HostStream::pack(std::span<const Pack> packs) {
    std::vector<Pack> kept = simplified(packs);
    std::uint64_t total = 0;
    for (const Pack& pack : kept) total += pack.bytes();
    if (total == 0) return raise_failure();
    const auto issued = cost_.throttled() ? Clock::now() : Clock::time_point{};
    submit(total, {[=, this, kept = std::move(kept)] { move(total, issued, [&] { move_packs(kept); }); }, nullptr});
}

}  // namespace penstock::device
