// See scheduler.hpp.
#include "engine/jobs/scheduler.hpp"

#include <algorithm>
#include <iterator>

namespace penstock::engine {
namespace {

// Several workers that share the slots of one job need less staging memory than workers on several such jobs.
bool shares_slots(const Job& job) { return job.shape().part_bytes != 0; }

}  // namespace

void Scheduler::add(std::shared_ptr<Job> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    wake(jobs_.back()->shape().path, jobs_.back()->shape().workers);
}

// Wakes fewer when fewer are idle: a busy worker looks for jobs before it becomes idle.
void Scheduler::wake(PathKind path, std::uint32_t workers) {
    const auto has_served = [path](const Idle* idle) { return idle->served.test(static_cast<std::size_t>(path)); };
    for (; workers > 0 && !idle_.empty(); --workers) {
        const auto found = std::find_if(idle_.rbegin(), idle_.rend(), has_served);
        const auto chosen = found == idle_.rend() ? std::prev(idle_.end()) : std::prev(found.base());
        (*chosen)->woken = true;
        (*chosen)->wake.notify_one();  // under the mutex: the worker may leave take() as soon as it is free
        idle_.erase(chosen);
    }
}

// A job without any worker comes first, unless it shares slots and a worker serves another job that does: such jobs
// gather workers one after the other. Jobs that were served lie at the back, so the search ends early in a long queue.
std::list<std::shared_ptr<Job>>::iterator Scheduler::next_for(const Shape* shape) {
    auto waiting_team = jobs_.end();
    auto waiting = jobs_.end();
    auto unfilled = jobs_.end();
    bool team_at_work = false;
    for (auto it = jobs_.begin(); it != jobs_.end();) {
        const auto here = it++;
        const Job& job = **here;
        if (job.lanes != 0 && (*here)->exhausted()) {  // its workers will end it
            jobs_.erase(here);
            continue;
        }
        team_at_work |= shares_slots(job) && job.lanes != 0;
        if (shape != nullptr && !(job.shape() == *shape)) continue;
        auto& first = shares_slots(job) ? waiting_team : waiting;
        if (job.lanes == 0 && first == jobs_.end()) first = here;
        if (waiting != jobs_.end() && waiting_team == jobs_.end()) return waiting;
        if (job.lanes < job.shape().workers && unfilled == jobs_.end()) unfilled = here;
    }
    if (waiting_team != jobs_.end() && !team_at_work) return waiting_team;  // it came before what else waits
    return waiting != jobs_.end() ? waiting : unfilled;
}

std::shared_ptr<Job> Scheduler::pick(const Shape* shape) {
    const auto found = next_for(shape);
    if (found == jobs_.end()) return nullptr;
    std::shared_ptr<Job> job = *found;
    ++job->lanes;
    if (!shares_slots(*job)) jobs_.splice(jobs_.end(), jobs_, found);  // served last next time
    return job;
}

std::shared_ptr<Job> Scheduler::take(const PathSet& served) {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (std::shared_ptr<Job> job = pick(nullptr)) return job;
        Idle idle{.served = served, .wake = {}};
        idle_.push_back(&idle);
        idle.wake.wait(lock, [&idle] { return idle.woken; });
    }
    return nullptr;
}

std::shared_ptr<Job> Scheduler::take_alike(const Shape& shape) {
    const std::lock_guard lock(mutex_);
    return stopping_ ? nullptr : pick(&shape);
}

void Scheduler::give_back(const std::shared_ptr<Job>& job) {
    bool more = false;
    {
        const std::lock_guard lock(mutex_);
        --job->lanes;
        more = !job->exhausted();
        // From the back, where the jobs that are served lie.
        const auto after = std::find(jobs_.rbegin(), jobs_.rend(), job).base();
        const auto place = after == jobs_.begin() ? jobs_.end() : std::prev(after);
        if (place != jobs_.end() && more) jobs_.splice(jobs_.end(), jobs_, place);
        if (place != jobs_.end() && !more) jobs_.erase(place);
        if (more) wake(job->shape().path, 1);
    }
    if (job->ends_now()) job->transfer().leave_job();
}

std::list<std::shared_ptr<Job>> Scheduler::take_stopped() {
    std::list<std::shared_ptr<Job>> stopped;
    for (auto it = jobs_.begin(); it != jobs_.end();) {
        const auto job = it++;
        if ((*job)->lanes != 0) continue;
        (*job)->transfer().check_deadline();
        if ((*job)->transfer().stopped()) stopped.splice(stopped.end(), jobs_, job);
    }
    return stopped;
}

void Scheduler::end_stopped() {
    std::list<std::shared_ptr<Job>> stopped;
    {
        const std::lock_guard lock(mutex_);
        stopped = take_stopped();
    }
    for (const auto& job : stopped) {
        if (job->ends_now()) job->transfer().leave_job();
    }
}

bool Scheduler::has_work() {
    const std::lock_guard lock(mutex_);
    return stopping_ || next_for(nullptr) != jobs_.end();
}

bool Scheduler::someone_waits() {
    end_stopped();
    const std::lock_guard lock(mutex_);
    return std::any_of(jobs_.begin(), jobs_.end(),
                       [](const auto& job) { return job->lanes == 0 && !job->exhausted(); });
}

void Scheduler::stop() {
    std::list<std::shared_ptr<Job>> left;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        left.swap(jobs_);
        wake({}, UINT32_MAX);
    }
    for (const auto& job : left) {
        ErrorInfo info;
        info.code = ErrorCode::cancelled;
        info.cause = "the context was destroyed before the transfer ended";
        job->transfer().stop(info);
        if (job->ends_now()) job->transfer().leave_job();
    }
}

bool Scheduler::stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
}

std::size_t Scheduler::idle_workers() {
    const std::lock_guard lock(mutex_);
    return idle_.size();
}

}  // namespace penstock::engine
