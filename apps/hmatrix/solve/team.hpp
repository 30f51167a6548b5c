// A few threads that share the parts of one job, and wait between jobs.
//
// Which thread takes which part depends on timing, so a part writes only what is its own; whoever sums over parts does
// it afterwards in the order of parts, and the result is the same on every run and for every number of threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::hmatrix {

// As many as the machine has, at most `limit`, at least 1.
unsigned threads_of_this_machine(unsigned limit) noexcept;

class Team {
  public:
    explicit Team(unsigned threads);  // the caller of run() is one of them
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Calls part(i) once for each i in [0, parts) and returns when all are done. When parts throw, the first to do so
    // wins, parts not begun are left out, and its exception is thrown here. One run at a time.
    void run(std::int64_t parts, const std::function<void(std::int64_t)>& part);

  private:
    void work();
    void take_parts(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable started_;
    std::condition_variable finished_;
    const std::function<void(std::int64_t)>* part_ = nullptr;  // null: no job
    std::int64_t parts_ = 0;
    std::int64_t next_ = 0;
    std::int64_t running_ = 0;
    std::exception_ptr error_;
    bool closing_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace penstock::hmatrix
