// The shared record of one transfer: what is left, what moved by which path, how it ended.
//
// Sessions on several workers report into it; users wait on it. It ends exactly once: when no job has chunks left and
// none is in flight. The first error wins and stops what has not started. Byte counts per path are summed from what
// arrived, so they add up to the bytes moved.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/request.hpp"
#include "penstock/evidence.hpp"
#include "penstock/outcome.hpp"
#include "penstock/plan.hpp"

namespace penstock::engine {

class TransferState {
  public:
    TransferState(TransferRequest request, Plan plan);

    const TransferRequest& request() const noexcept { return request_; }
    const Plan& plan() const noexcept { return plan_; }
    std::uint64_t bytes_total() const noexcept { return total_bytes_; }
    std::uint64_t bytes_done() const noexcept { return done_bytes_.load(std::memory_order_relaxed); }

    // --- called by sessions -------------------------------------------------------------------------------------
    bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }
    void check_deadline();                      // stops with timed_out when it has passed
    void stop(ErrorInfo why);                   // first reason wins
    void count_operations(PathKind path, std::uint64_t count) noexcept;
    void count_staged(PathKind path, std::uint64_t bytes) noexcept;
    void count_lent_pinned(PathKind path) noexcept;
    void arrived(PathKind path, std::uint64_t bytes);  // reports progress too
    void short_at(std::uint64_t position) noexcept;    // bytes from here on are not valid
    void reached_end() noexcept { reached_end_.store(true, std::memory_order_relaxed); }
    void add_fallback(PathKind wanted, PathKind took, std::uint64_t bytes, const std::string& cause);
    void add_note(const std::string& note);
    // Each job leaves once, after its last chunk. The last job to leave ends the transfer.
    void leave_job();
    void end_without_jobs();  // for a plan without steps

    // --- called by the owner ------------------------------------------------------------------------------------
    // Runs on the thread that ends the transfer, before waiters wake: makes writes durable, reads counters again.
    std::function<void(Outcome&)> on_end;
    // Runs after waiters have woken. It counts the transfer out of its files: a caller that waits until no transfer
    // uses a file wakes after those that wait for this transfer.
    std::function<void(const ErrorInfo&)> after_end;
    // Set once a caller has seen the outcome: close() then does not report a late error again.
    const std::shared_ptr<std::atomic<bool>> seen = std::make_shared<std::atomic<bool>>(false);
    bool done() const;
    bool wait(Deadline deadline) const;
    // The outcome. When `patience` or the transfer's own deadline has passed and operations hang, one that says so.
    Outcome result(Deadline patience = Deadline::never()) const;
    Outcome take_result();  // as result(), for a caller that asks once and is the only one
    void cancel();

  private:
    struct Share {
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint64_t> operations{0};
        std::atomic<std::uint64_t> staged{0};
        std::atomic<bool> lent_pinned{false};
    };
    void end();
    bool wait_for_result(Deadline patience) const;
    Outcome overdue() const;
    Outcome collect() const;  // Requires: mutex_
    void report_progress(bool last);
    void tell_progress();

    TransferRequest request_;
    Plan plan_;
    std::string file_name_;  // of the first range: messages name it after the files were let go
    std::uint64_t total_bytes_ = 0;
    std::atomic<std::uint64_t> done_bytes_{0};
    std::atomic<std::uint64_t> valid_bytes_;  // first position that did not move
    std::atomic<bool> stopped_{false};
    std::atomic<bool> reached_end_{false};
    std::atomic<std::uint32_t> jobs_left_;
    std::array<Share, kPathKinds> shares_;
    std::mutex progress_mutex_;
    Clock::time_point progress_next_{};

    mutable std::mutex mutex_;
    mutable std::condition_variable ended_;
    bool done_ = false;
    std::unique_ptr<ErrorInfo> error_;
    std::vector<Fallback> fallbacks_;
    std::vector<std::string> notes_;
    std::unique_ptr<Outcome> outcome_;  // allocated apart: malloc is fast for objects of up to 1 KiB
};

}  // namespace penstock::engine
