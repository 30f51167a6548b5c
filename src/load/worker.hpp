// One thread of a load run. It draws requests, moves them one by one or several at a time, and keeps its own counts,
// which the caller reads after it has ended. LoadRun is what the threads share.
#pragma once

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "load/load.hpp"
#include "load/pattern.hpp"
#include "load/plain.hpp"
#include "load/requests.hpp"
#include "os/process_io.hpp"

namespace penstock::load {

// How many distinct causes of fallbacks a report contains.
inline constexpr std::size_t kFallbacksTold = 8;

// What all threads of a run share.
class LoadRun {
  public:
    struct TakeCpuTime {
        os::CpuTime* into;
        void operator()() const noexcept { *into = os::cpu_time(); }
    };
    LoadRun(const Context& run_context, const LoadOptions& run_options)
        : context(run_context),
          options(run_options),
          ready(run_options.threads),
          ended(run_options.threads, TakeCpuTime{&cpu_at_end}) {}
    bool stopped() const noexcept {
        return stop_.load(std::memory_order_acquire) ||
               (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed));
    }
    void fail(ErrorInfo why);  // keeps the first failure and stops all threads
    void stop() noexcept { stop_.store(true, std::memory_order_release); }
    void throw_failure() const;  // Requires: all threads have ended.

    const Context& context;
    const LoadOptions& options;
    std::latch ready;  // counts threads that are warm
    std::latch go{1};
    Clock::time_point start{};  // written before `go` opens
    os::CpuTime cpu_at_start, cpu_at_end;
    Deadline limit = Deadline::never();
    std::barrier<TakeCpuTime> ended;  // threads whose requests are done: no thread checks before all are
    std::byte* staging = nullptr;     // of the plain way to a device, one slot for each thread

  private:
    std::atomic<bool> stop_{false};
    std::mutex mutex_;  // guards failure_
    std::optional<ErrorInfo> failure_;
};

// The work of one thread.
struct WorkerShare {
    unsigned thread = 0;
    const File* file = nullptr;
    Part part;
    std::uint64_t start = 0;        // see Requests
    MemoryView memory;              // the slots of this thread, or with `mirror` all of the memory
    std::uint64_t span_offset = 0;  // in the file: the first byte of mirrored memory
};

// The requests of one submission.
struct LoadSubmission {
    Direction direction = Direction::read;
    std::vector<Request> requests;
    std::vector<Range> ranges;  // the same requests with their memory
    std::uint64_t bytes = 0;
};

// Which submissions in flight have ended, as reported by the callbacks of their transfers.
class Arrivals {
  public:
    void tell(unsigned slot);
    // Returns a slot that a callback reported, or nothing after `wait`.
    std::optional<unsigned> next(Clock::duration wait);

  private:
    std::mutex mutex_;  // guards told_
    std::condition_variable came_;
    std::deque<unsigned> told_;
};

class Worker {
  public:
    Worker(LoadRun& run, const WorkerShare& share);
    void operator()() noexcept;  // the thread's function; reports failures to the LoadRun

    // Requires: the thread has ended.
    LoadReport report;
    Clock::time_point end{};

  private:
    struct SubmissionSlot {
        LoadSubmission submission;
        std::vector<Range> held;  // with `check_last`: what it read last
        Transfer transfer;
        bool busy = false;
    };

    void prepare();
    void prepare_memory();
    void work();
    void one_by_one();
    void several_in_flight();
    void drain();
    void check_at_end();
    bool may_go_on();
    bool draw(SubmissionSlot& slot, unsigned number);
    void* memory_for(const Request& request, unsigned slot, std::size_t index) const;
    Outcome move(const LoadSubmission& submission);
    void start(SubmissionSlot& slot, unsigned number);
    void finish(SubmissionSlot& slot);
    unsigned next_ended(unsigned oldest);
    void account(SubmissionSlot& slot, const Outcome& outcome, double seconds);
    void keep_or_check(SubmissionSlot& slot);

    LoadRun& run_;
    const LoadOptions& options_;
    WorkerShare share_;
    Requests requests_;
    std::uint64_t slot_bytes_;
    bool began_ = false;
    TransferOptions transfer_;
    std::unique_ptr<Plain> plain_;
    std::unique_ptr<Pattern> pattern_;
    std::vector<SubmissionSlot> slots_;
    std::shared_ptr<Arrivals> arrivals_;  // callbacks share it
    Moved moved_;                         // with mirrored memory
};

// Returns the distance from one slot to the next, in bytes.
std::uint64_t slot_bytes(const LoadOptions& options) noexcept;

}  // namespace penstock::load
