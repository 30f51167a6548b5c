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
    TransferState(Request request, Plan plan);

    const Request& request() const noexcept { return request_; }
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
    void arrived(PathKind path, std::uint64_t bytes);  // also progress
    void short_at(std::uint64_t position) noexcept;    // nothing valid from here on
    void reached_end() noexcept { reached_end_.store(true, std::memory_order_relaxed); }
    void add_fallback(PathKind wanted, PathKind took, std::uint64_t bytes, const std::string& cause);
    void add_note(const std::string& note);
    // A job has one share of the transfer until its last chunk is done. The last one to leave ends the transfer.
    void leave_job();
    void end_without_jobs();  // for a plan without steps

    // --- called by the owner ------------------------------------------------------------------------------------
    // Runs on the thread that ends the transfer, before waiters wake: durability, evidence after.
    std::function<void(Outcome&)> on_end;
    // Runs after waiters were woken: whoever waits for quiet files hears of it last.
    std::function<void(const ErrorInfo&)> after_end;
    // Set once somebody was told of the outcome: a late error is then not reported again by close().
    const std::shared_ptr<std::atomic<bool>> seen = std::make_shared<std::atomic<bool>>(false);
    bool done() const;
    bool wait(Deadline deadline) const;
    // The outcome; when the patience or the transfer's own deadline passed and operations hang, one that says so.
    Outcome result(Deadline patience = Deadline::never()) const;
    Outcome take_result();  // as result(), for the only one who asks, once
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
    Outcome collect() const;  // needs mutex_
    void report_progress(bool last);
    void tell_progress();

    Request request_;
    Plan plan_;
    std::string file_name_;  // of the first range, for messages after the files are let go
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
    std::unique_ptr<Outcome> outcome_;  // apart: malloc is fast for objects of up to 1 KiB
};

}  // namespace penstock::engine
