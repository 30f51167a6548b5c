// See transfer_state.hpp. end() reads the relaxed counters after the last leave_job(), whose release and acquire of
// jobs_left_ order every count before that read.
#include "engine/transfer_state.hpp"

#include <algorithm>
#include <utility>

#include "base/current_error.hpp"
#include "base/path_traits.hpp"

namespace penstock::engine {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(50);
// How long result() waits past the deadline for operations that are under way.
constexpr auto kDeadlineGrace = std::chrono::milliseconds(200);

void lower(std::atomic<std::uint64_t>& value, std::uint64_t limit) noexcept {
    std::uint64_t seen = value.load(std::memory_order_relaxed);
    while (limit < seen && !value.compare_exchange_weak(seen, limit, std::memory_order_relaxed)) {
    }
}

bool by_page_cache(PathKind path) noexcept { return traits_of(path).page_cache == PageCacheUse::through; }

}  // namespace

TransferState::TransferState(TransferRequest request, Plan plan)
    : request_(std::move(request)), plan_(std::move(plan)), jobs_left_(static_cast<std::uint32_t>(plan_.steps.size())) {
    for (const RequestRange& range : request_.ranges) total_bytes_ += range.bytes;
    valid_bytes_ = total_bytes_;
    if (!request_.ranges.empty()) file_name_ = request_.ranges.front().file->name;
}

void TransferState::check_deadline() {
    if (!request_.deadline.passed()) return;
    ErrorInfo info;
    info.code = ErrorCode::timed_out;
    info.cause = "the deadline passed";
    stop(std::move(info));
}

void TransferState::stop(ErrorInfo why) {
    const std::lock_guard lock(mutex_);
    if (!error_) {
        if (why.operation.empty()) why.operation = to_string(request_.direction);
        if (why.file.empty()) why.file = file_name_;
        error_ = std::make_unique<ErrorInfo>(std::move(why));
    }
    stopped_.store(true, std::memory_order_release);  // Pairs with: stopped()
}

void TransferState::cancel() {
    ErrorInfo info;
    info.code = ErrorCode::cancelled;
    info.cause = "cancelled by the caller";
    {
        const std::lock_guard lock(mutex_);
        if (done_) return;
    }
    stop(std::move(info));
}

void TransferState::count_operations(PathKind path, std::uint64_t count) noexcept {
    shares_[static_cast<std::size_t>(path)].operations.fetch_add(count, std::memory_order_relaxed);
}

void TransferState::count_staged(PathKind path, std::uint64_t bytes) noexcept {
    shares_[static_cast<std::size_t>(path)].staged.fetch_add(bytes, std::memory_order_relaxed);
}

void TransferState::count_lent_pinned(PathKind path) noexcept {
    shares_[static_cast<std::size_t>(path)].lent_pinned.store(true, std::memory_order_relaxed);
}

void TransferState::arrived(PathKind path, std::uint64_t bytes) {
    shares_[static_cast<std::size_t>(path)].bytes.fetch_add(bytes, std::memory_order_relaxed);
    done_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (request_.progress) report_progress(false);
}

void TransferState::report_progress(bool last) {
    std::unique_lock lock(progress_mutex_, std::defer_lock);
    if (last) {
        lock.lock();
    } else if (!lock.try_lock() || Clock::now() < progress_next_) {
        return;
    }
    progress_next_ = Clock::now() + kProgressInterval;
    tell_progress();
}

void TransferState::tell_progress() {
    try {
        request_.progress(bytes_done(), total_bytes_);
    } catch (...) {
        ErrorInfo info = info_of_current_exception();
        info.cause = "the progress callback threw: " + info.cause;
        stop(std::move(info));
    }
}

void TransferState::short_at(std::uint64_t position) noexcept { lower(valid_bytes_, position); }

void TransferState::add_fallback(PathKind wanted, PathKind took, std::uint64_t bytes, const std::string& cause) {
    const std::lock_guard lock(mutex_);
    for (Fallback& known : fallbacks_) {
        if (known.wanted == wanted && known.took == took && known.cause == cause) {
            known.bytes += bytes;
            return;
        }
    }
    fallbacks_.push_back({wanted, took, bytes, cause});
}

void TransferState::add_note(const std::string& note) {
    if (note.empty()) return;
    const std::lock_guard lock(mutex_);
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
}

void TransferState::leave_job() {
    if (jobs_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) end();
}

void TransferState::end_without_jobs() { end(); }

Outcome TransferState::collect() const {
    Outcome outcome;
    outcome.seconds = seconds_since(request_.started);
    if (error_) outcome.error = *error_;
    outcome.reached_end = reached_end_.load(std::memory_order_relaxed);
    outcome.bytes = valid_bytes_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < kPathKinds; ++i) {
        const Share& share = shares_[i];
        if (share.operations.load(std::memory_order_relaxed) == 0) continue;
        outcome.evidence.paths.push_back({static_cast<PathKind>(i), share.bytes.load(std::memory_order_relaxed),
                                          share.operations.load(std::memory_order_relaxed),
                                          share.staged.load(std::memory_order_relaxed),
                                          share.lent_pinned.load(std::memory_order_relaxed),
                                          by_page_cache(static_cast<PathKind>(i)) ? std::optional(false)
                                                                                  : std::nullopt});
    }
    std::sort(outcome.evidence.paths.begin(), outcome.evidence.paths.end(),
              [](const PathShare& a, const PathShare& b) { return a.bytes > b.bytes; });
    for (Fallback fallback : fallbacks_) {  // a plan announces its fallbacks before anything moves
        const Share& took = shares_[static_cast<std::size_t>(fallback.took)];
        fallback.bytes = std::min(fallback.bytes, took.bytes.load(std::memory_order_relaxed));
        if (fallback.bytes != 0) outcome.evidence.fallbacks.push_back(std::move(fallback));
    }
    outcome.evidence.notes = notes_;
    outcome.evidence.plan = plan_.describe();
    outcome.evidence.why = plan_.reason();
    outcome.evidence.predicted_seconds = plan_.predicted_seconds();
    outcome.evidence.seconds = outcome.seconds;
    return outcome;
}

void TransferState::end() {
    if (request_.progress) report_progress(true);
    auto outcome = std::make_unique<Outcome>();
    {
        const std::lock_guard lock(mutex_);
        *outcome = collect();
    }
    try {
        if (on_end) on_end(*outcome);
    } catch (...) {
        if (outcome->ok()) outcome->error = info_of_current_exception();
    }
    // Files, memory and callbacks are let go before waiters wake, so that a waiter may close and free at once.
    request_.keep_alive.clear();
    on_end = nullptr;
    request_.progress = nullptr;
    const auto after = std::move(after_end);
    const ErrorInfo error = outcome->error;
    {
        const std::lock_guard lock(mutex_);
        outcome_ = std::move(outcome);
        done_ = true;
        ended_.notify_all();
    }
    if (after) after(error);  // a waiter may have destroyed `this` by now
}

bool TransferState::done() const {
    const std::lock_guard lock(mutex_);
    return done_;
}

bool TransferState::wait(Deadline deadline) const {
    std::unique_lock lock(mutex_);
    if (deadline.is_never()) {
        ended_.wait(lock, [this] { return done_; });
        return true;
    }
    return ended_.wait_for(lock, deadline.left(), [this] { return done_; });
}

bool TransferState::wait_for_result(Deadline patience) const {
    const Deadline end = request_.deadline.is_never() ? Deadline::never()
                                                      : Deadline::at(request_.deadline.when() + kDeadlineGrace);
    return wait(end.when() < patience.when() ? end : patience);
}

Outcome TransferState::overdue() const {
    const std::lock_guard lock(mutex_);
    Outcome outcome = collect();
    outcome.bytes = 0;
    const bool cancelled = outcome.error.code == ErrorCode::cancelled;
    outcome.error.code = cancelled ? ErrorCode::cancelled : ErrorCode::timed_out;
    outcome.error.operation = to_string(request_.direction);
    outcome.error.file = file_name_;
    outcome.error.cause = std::string(cancelled ? "cancelled by the caller" : "the deadline passed") +
                          " and operations are still under way in the system";
    outcome.error.advice = "keep the memory of this transfer until its wait() says done";
    return outcome;
}

Outcome TransferState::result(Deadline patience) const {
    if (!wait_for_result(patience)) return overdue();
    const std::lock_guard lock(mutex_);
    return *outcome_;
}

Outcome TransferState::take_result() {
    if (!wait_for_result(Deadline::never())) return overdue();
    const std::lock_guard lock(mutex_);
    return std::move(*outcome_);
}

}  // namespace penstock::engine
