// Streams and events of the emulated GPU: in-order queues, each run by a thread of its own.
//
// Ensures: the work of one stream runs in order. The work of two streams overlaps unless an event orders it. A
// throttled copy moves its bytes late, so that tests notice a caller that reads the destination or reuses the source
// too early. An error during work stays with the stream, and every later call on the stream throws it, as on a GPU.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "device/host/host_memory.hpp"
#include "os/memory/fault_guard.hpp"
#include "penstock/device.hpp"

namespace penstock::device {

// One recording of an event. Recording again makes a new marker, so a wait keeps the point that it was made for.
class HostMarker {
  public:
    void finish(const std::optional<ErrorInfo>& failure);
    bool done() const noexcept { return done_.load(std::memory_order_acquire); }  // Pairs with: the store in finish().
    bool wait(Deadline deadline);
    const std::optional<ErrorInfo>& failure() const noexcept { return failure_; }  // valid after done()

  private:
    std::mutex mutex_;
    std::condition_variable finished_;
    std::atomic<bool> done_{false};
    std::optional<ErrorInfo> failure_;  // written before done_
};

class HostEvent final : public Event {
  public:
    bool done() override;
    bool wait(Deadline deadline) override;
    std::shared_ptr<HostMarker> renew();
    std::shared_ptr<HostMarker> latest() const;  // nullptr: the event was never recorded

  private:
    mutable std::mutex mutex_;  // guards latest_
    std::shared_ptr<HostMarker> latest_;
};

struct HostCostModel {
    double bandwidth_bytes_per_s = 0;  // 0: as fast as memory
    std::uint64_t latency_ns = 0;
    bool throttled() const noexcept { return bandwidth_bytes_per_s > 0 || latency_ns > 0; }
    std::chrono::nanoseconds cost(std::uint64_t bytes) const noexcept;
};

class HostStream;

// The streams of one emulated device, found by their native handles.
class HostStreams {
  public:
    void add(HostStream& stream);
    void remove(HostStream& stream);  // returns when no call of with() uses it
    // Calls `use` with the stream, which cannot end meanwhile. Throws Error{invalid_argument} of a handle of none.
    void with(std::uintptr_t native, const std::function<void(HostStream&)>& use);

  private:
    std::mutex mutex_;
    std::set<HostStream*> all_;
};

class HostStream final : public Stream {
  public:
    HostStream(std::shared_ptr<HostMemory> memory, std::shared_ptr<HostStreams> streams, HostCostModel cost);
    ~HostStream() override;

    void copy(CopyDirection direction, void* destination, const void* source, std::uint64_t bytes) override;
    void copy_batch(CopyDirection direction, std::span<const CopyPiece> pieces) override;
    void copy_boxes(std::span<const Box> boxes) override;
    void fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item) override;
    void pack(std::span<const Pack> packs) override;
    CellsFound sort_cells(const CellSort& sort) override;
    void gather(const RowGather& gather) override;
    std::vector<std::uint32_t> checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) override;
    void record(Event& event) override;
    void wait(Event& event) override;
    void follow(std::uintptr_t native) override;
    void lead(std::uintptr_t native) override;
    void synchronize() override;
    void stamp(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) override;
    StampCheck verify_stamp(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                            std::uint64_t seed) override;
    void fill(void* memory, std::uint64_t bytes, int byte_value) override;
    void* native_handle() noexcept override { return this; }

  private:
    os::FaultGuard guard_;
    struct Work {
        std::function<void()> run;           // may throw Error, which stays with the stream
        std::shared_ptr<HostMarker> marker;  // finished after `run`, also on a failed stream
    };

    // Pairs with: fetch_sub in run_queue().
    bool idle() const noexcept { return pending_.load(std::memory_order_acquire) == 0; }
    void submit(std::uint64_t bytes, Work work);
    void enqueue(Work work);
    void move_boxes(const std::vector<Box>& boxes) const;
    void move_packs(const std::vector<Pack>& packs) const;
    void copy_now(void* destination, const void* source, std::uint64_t bytes) const;
    void start_thread();  // Requires: the caller holds mutex_. Throws Error{out_of_memory}.
    void execute(Work& work);
    void run_queue();
    void drain();
    void move(std::uint64_t bytes, Clock::time_point issued, const std::function<void()>& copy_bytes);
    std::shared_ptr<const HostRegion> require(const char* operation, const void* memory, std::uint64_t bytes) const;
    std::optional<ErrorInfo> failure() const;
    void raise_failure() const;

    std::shared_ptr<HostMemory> memory_;
    std::shared_ptr<HostStreams> streams_;
    HostCostModel cost_;
    Clock::time_point busy_until_{};  // modelled end of the last copy; used by the thread that executes work
    mutable std::mutex mutex_;        // guards queue_, stop_, failure_
    std::condition_variable queued_;
    std::condition_variable emptied_;
    std::deque<Work> queue_;
    std::optional<ErrorInfo> failure_;
    std::atomic<bool> failed_{false};        // failure_ is set
    std::atomic<std::uint64_t> pending_{0};  // queued or running
    bool stop_ = false;
    std::thread thread_;  // started by the first work that needs it
};

}  // namespace penstock::device
