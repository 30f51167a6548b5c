// See engine.hpp.
#include "engine/engine.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/current_error.hpp"
#include "base/path_traits.hpp"
#include "engine/slots/own_slots.hpp"
#include "engine/workers/session.hpp"
#include "engine/workers/team.hpp"
#include "os/memory/numa.hpp"
#include "os/refusal.hpp"

namespace penstock::engine {
namespace {

constexpr std::uint32_t kEngineThreadsMax = 512;
constexpr std::size_t kInlineLanesMax = 16;

CutRules rules_for(const TransferState& transfer, const Step& step) {
    CutRules rules;
    rules.chunk_bytes = step.shape.chunk_bytes;
    if (bypasses_cache(step.shape.path)) {
        for (const PlanPiece& piece : step.pieces) {
            const FileHandle& file = *transfer.request().ranges[piece.range].file;
            rules.alignment = std::max<std::uint64_t>({rules.alignment, file.offset_alignment, file.memory_alignment});
        }
    }
    rules.pack = step.shape.staged;
    // Where the path reaches the caller's memory by itself, an operation must touch no byte that was not asked for.
    if (!step.shape.staged) rules.alignment = 1;
    return rules;
}

}  // namespace

Engine::Engine(EngineOptions options)
    : options_(std::move(options)),
      // The inline lanes' slots are part of the budget.
      pool_(options_, staging_budget(options_.budget_bytes)),
      inline_(*options_.device, *options_.system, InlineLanes::kSlotBytes, kInlineLanesMax),
      large_(*options_.device, *options_.system, InlineLanes::kLargeSlotBytes, large_lanes(options_.budget_bytes)) {}

Engine::~Engine() {
    scheduler_.stop();
    for (std::thread& worker : workers_) worker.join();
    pool_.drop_idle();
}

void Engine::start(const std::shared_ptr<TransferState>& transfer) {
    const std::vector<Step>& steps = transfer->plan().steps;
    if (steps.empty()) {
        transfer->end_without_jobs();
        return;
    }
    if (steps.size() == 1 && steps.front().shape.run_inline) {
        const bool large = steps.front().shape.staged && steps.front().shape.chunk_bytes > InlineLanes::kSlotBytes;
        (large ? large_ : inline_).run(*transfer);
        return;
    }
    std::uint32_t workers = 0;
    for (const Step& step : steps) workers += step.shape.workers;
    try {
        ensure_workers(workers);
    } catch (const Error& error) {  // the loop below ends the jobs one by one before they start
        transfer->stop(error.info());
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        auto job = std::make_shared<Job>(transfer, i, rules_for(*transfer, steps[i]));
        if (!transfer->stopped() || have_workers()) {
            scheduler_.add(std::move(job));
        } else if (job->ends_now()) {
            transfer->leave_job();
        }
    }
}

void Engine::cancel(TransferState& transfer) {
    transfer.cancel();
    scheduler_.end_stopped();
}

// A small transfer gives its lane back before it ends; a worker gives its path and slots back after that.
bool Engine::fill_staging(int byte_value, Deadline deadline) {
    return inline_.fill(byte_value) && large_.fill(byte_value) && pool_.fill(byte_value, deadline);
}

bool Engine::runs_here() {
    const std::lock_guard lock(workers_mutex_);
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const std::thread& worker) { return worker.get_id() == std::this_thread::get_id(); });
}

bool Engine::stop(Deadline deadline) {
    scheduler_.stop();
    std::unique_lock lock(workers_mutex_);
    return worker_ended_.wait_for(lock, deadline.left(), [this] { return ended_ == workers_.size(); });
}

bool Engine::have_workers() {
    const std::lock_guard lock(workers_mutex_);
    return !workers_.empty();
}

// Fewer than asked for are enough; none at all is an error.
void Engine::ensure_workers(std::uint32_t count) {
    const std::lock_guard lock(workers_mutex_);
    while (workers_.size() < std::min(count, kEngineThreadsMax)) {
        const auto index = static_cast<std::uint32_t>(workers_.size());
        try {
            workers_.emplace_back([this, index] { work(index); });
        } catch (const std::system_error& error) {
            if (!workers_.empty()) return;
            throw Error(ErrorCode::out_of_memory, "start a worker thread", error.code().message(),
                        "raise the limit of processes and threads (ulimit -u, or the container's pids limit)");
        }
    }
}

void Engine::work(std::uint32_t worker) {
    os::place_thread_near(options_.numa_node);
    PathSet served;
    while (std::shared_ptr<Job> job = scheduler_.take(served)) {
        served.set(static_cast<std::size_t>(job->shape().path));
        serve(job, worker);
    }
    const std::lock_guard lock(workers_mutex_);
    ++ended_;
    worker_ended_.notify_all();
}

// The worker that asks first makes the team; nullptr when it gives up waiting for the slots.
std::shared_ptr<Team> Engine::join_team(const std::shared_ptr<Job>& job, const std::function<bool()>& give_up) {
    return job->team([&]() -> std::shared_ptr<Team> {
        std::unique_ptr<StagingSlots> slots = pool_.lease_slots(job->shape(), give_up);
        return slots ? std::make_shared<Team>(scheduler_, pool_, std::move(slots), job) : nullptr;
    });
}

// A path by io_uring takes a descriptor that the process may not have left. Then threads make the same system calls, on
// record, unless the transfer is strict.
std::unique_ptr<WorkerPath> Engine::lease_alone(Job& job, std::uint32_t worker, const std::function<bool()>& give_up) {
    try {
        return pool_.lease(job.shape(), worker, give_up);
    } catch (const Error& error) {
        const bool may_change = traits_of(job.shape().path).io_uring && !job.transfer().request().strict;
        if (!may_change || !os::is_out_of_descriptors(error.info().system_code)) throw;
        Shape shape = job.shape();
        shape.path = bypasses_cache(shape.path) ? PathKind::direct : PathKind::buffered;
        std::unique_ptr<WorkerPath> path = pool_.lease(shape, worker, give_up);
        TransferState& transfer = job.transfer();
        transfer.add_fallback(job.shape().path, shape.path, transfer.bytes_total(), error.info().cause);
        return path;
    }
}

void Engine::serve(const std::shared_ptr<Job>& job, std::uint32_t worker) {
    std::unique_ptr<WorkerPath> path;
    std::shared_ptr<SlotSource> slots;
    const auto give_up = [&] {
        job->transfer().check_deadline();
        return scheduler_.stopping() || job->exhausted();
    };
    try {
        options_.device->enter_thread();
        if (job->shape().part_bytes != 0) {
            slots = join_team(job, give_up);
            if (slots) path = pool_.lease_path(job->shape(), worker);
        } else {
            path = lease_alone(*job, worker, give_up);
            if (path) slots = std::make_shared<OwnSlots>(scheduler_, *path->slots(), job);
        }
    } catch (...) {
        job->transfer().stop(info_of_current_exception());
    }
    if (!path || !slots) {
        if (path) pool_.give_back(std::move(path));
        return scheduler_.give_back(job);
    }
    job->transfer().add_note(path->path().capabilities().notes);
    const bool sound = Session(scheduler_, *path, *slots, *options_.system).run();
    slots.reset();
    if (sound) {
        pool_.give_back(std::move(path));
    } else {
        pool_.drop(std::move(path));
    }
}

}  // namespace penstock::engine
