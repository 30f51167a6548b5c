// One thread of a load run. It draws requests, moves them one by one or several at a time, and keeps its own counts,
// which the caller reads after it has ended. Run is what the threads share.
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

#include "load/cpu_time.hpp"
#include "load/load.hpp"
#include "load/pattern.hpp"
#include "load/plain.hpp"
#include "load/requests.hpp"

namespace penstock::load {

// How many distinct causes of fallbacks a report contains.
inline constexpr std::size_t kFallbacksTold = 8;
// Fills memory and staging memory before the run, so that bytes that never arrived cannot pass for the pattern.
inline constexpr int kPoison = 0xEE;

// What all threads of a run share.
class Run {
  public:
    struct TakeCpuTime {
        CpuTime* into;
        void operator()() const noexcept { *into = cpu_time(); }
    };
    Run(const Context& run_context, const LoadOptions& run_options)
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
    CpuTime cpu_at_start, cpu_at_end;
    Deadline limit = Deadline::never();
    std::barrier<TakeCpuTime> ended;  // threads whose requests are done: no thread checks before all are
    std::byte* staging = nullptr;     // of the plain way to a device, one slot for each thread

  private:
    std::atomic<bool> stop_{false};
    std::mutex mutex_;  // guards failure_
    std::optional<ErrorInfo> failure_;
};

// The work of one thread.
struct Share {
    unsigned thread = 0;
    const File* file = nullptr;
    Part part;
    std::uint64_t start = 0;        // see Requests
    MemoryView memory;              // the slots of this thread, or with `mirror` all of the memory
    std::uint64_t span_offset = 0;  // in the file: the first byte of mirrored memory
};

// The requests of one submission.
struct Submission {
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
    Worker(Run& run, const Share& share);
    void operator()() noexcept;  // the thread's function; reports failures to the Run

    // Requires: the thread has ended.
    LoadReport report;
    Clock::time_point end{};

  private:
    struct Slot {
        Submission submission;
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
    bool draw(Slot& slot, unsigned number);
    void* memory_for(const Request& request, unsigned slot, std::size_t index) const;
    Outcome move(const Submission& submission);
    void start(Slot& slot, unsigned number);
    void finish(Slot& slot);
    unsigned next_ended(unsigned oldest);
    void account(Slot& slot, const Outcome& outcome, double seconds);
    void keep_or_check(Slot& slot);

    Run& run_;
    const LoadOptions& options_;
    Share share_;
    Requests requests_;
    std::uint64_t slot_bytes_;
    bool began_ = false;
    TransferOptions transfer_;
    std::unique_ptr<Plain> plain_;
    std::unique_ptr<Pattern> pattern_;
    std::vector<Slot> slots_;
    std::shared_ptr<Arrivals> arrivals_;  // callbacks share it
    Moved moved_;                         // with mirrored memory
};

// Returns the distance from one slot to the next, in bytes.
std::uint64_t slot_bytes(const LoadOptions& options) noexcept;

}  // namespace penstock::load
