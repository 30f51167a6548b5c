// Which worker serves which job.
//
// A job takes at most shape.workers workers at a time. Waiting jobs are served in turn: a worker that has served a
// quantum of time while a job without any worker waits goes over to that one. A job wakes the idle worker that has
// served its path and was busy last: that one has a station and warm caches, while waking them in turn would make each
// of them need its own. All state is guarded by one mutex that is taken once a quantum, never per chunk.
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
    // A job of this shape that another chunk may come from, without blocking; nullptr when there is none.
    std::shared_ptr<Job> take_alike(const Shape& shape);
    // The worker is done with the job for now.
    void give_back(const std::shared_ptr<Job>& job);
    bool has_work();  // take() would not block
    // True when some job has no worker at all. Ends those that were cancelled while they waited, or came too late.
    bool someone_waits();
    void end_stopped();
    void stop();  // take() answers nullptr from now on; queued jobs are cancelled
    bool stopping();
    std::size_t idle_workers();  // in take(), with nothing to do

  private:
    // A worker that found no job; lives in its take().
    struct Idle {
        const PathSet& served;
        std::condition_variable wake;
        bool woken = false;
    };
    void wake(PathKind path, std::uint32_t workers);  // needs mutex_
    std::shared_ptr<Job> pick(const Shape* shape);  // needs mutex_
    std::list<std::shared_ptr<Job>>::iterator next_for(const Shape* shape);  // needs mutex_
    std::list<std::shared_ptr<Job>> take_stopped();                          // needs mutex_
    std::mutex mutex_;
    std::vector<Idle*> idle_;  // who became idle last is last
    std::list<std::shared_ptr<Job>> jobs_;  // not exhausted, next to serve first
    bool stopping_ = false;
};

}  // namespace penstock::engine
