// Which worker serves which job.
//
// A job takes at most shape.workers workers at a time. Waiting jobs are served in turn: when a worker has served a
// quantum of time and some job has no worker, it goes over to that job. A job wakes the idle worker that has served its
// path and was busy last, because that worker has a path, slots and warm caches; were workers woken in turn, each would
// need a path and slots of its own. One mutex guards all state. A worker takes it once a quantum, never per chunk.
#pragma once

#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/jobs/job.hpp"

namespace penstock::engine {

using PathSet = std::bitset<kPathKinds>;

class Scheduler {
  public:
    void add(std::shared_ptr<Job> job);
    // Blocks until there is a job for this worker, which has served these paths; nullptr once stopped.
    std::shared_ptr<Job> take(const PathSet& served = {});
    // A job of this shape that has a chunk left, without blocking; nullptr when there is none.
    std::shared_ptr<Job> take_alike(const Shape& shape);
    // The worker is done with the job for now.
    void give_back(const std::shared_ptr<Job>& job);
    bool has_work();  // take() would not block
    // True when some job has no worker at all. Ends jobs that were cancelled or met their deadline while they waited.
    bool someone_waits();
    void end_stopped();
    void stop();  // take() answers nullptr from now on; queued jobs are cancelled
    bool stopping();
    std::size_t idle_workers();  // that sleep in take()

  private:
    // A worker that sleeps, on the stack of its take().
    struct Idle {
        const PathSet& served;
        std::condition_variable wake;
        bool woken = false;
    };
    // Requires: mutex_. Without a shape, a job of any shape will do.
    void wake(PathKind path, std::uint32_t workers);
    std::shared_ptr<Job> pick(const Shape* shape);
    std::list<std::shared_ptr<Job>>::iterator next_for(const Shape* shape);
    std::list<std::shared_ptr<Job>> take_stopped();

    std::mutex mutex_;
    std::vector<Idle*> idle_;  // in the order in which they became idle
    std::list<std::shared_ptr<Job>> jobs_;  // not exhausted, next to serve first
    bool stopping_ = false;
};

}  // namespace penstock::engine
