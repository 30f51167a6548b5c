// Threads that share out the items of a loop: for assembly, products and vectors on the host.
//
// Items are taken one by one, so their costs may differ; which worker takes which item is not determined, so results
// must not depend on it. What an item throws ends the loop and is thrown again where it was started. One pool serves
// everything a caller does one after the other: two would fight for the same cores.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::hmatrix {

class Workers {
  public:
    static constexpr int kMost = 4096;
    // 0: one for each core this process may use. The caller of for_each is one of them. Throws Error{invalid_argument}
    // below 0 and above kMost; where the system gives fewer threads, those there are do the same work.
    explicit Workers(int count = 0);
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers();

    int count() const noexcept { return static_cast<int>(threads_.size()) + 1; }
    // Calls item(worker, index) for each index below `items`, worker below count(), and returns when all are done. Not
    // from several threads at once, and not from inside an item.
    void for_each(std::int64_t items, const std::function<void(int worker, std::int64_t index)>& item);

  private:
    void serve(int worker);
    void take_items(int worker) noexcept;

    std::mutex mutex_;
    std::condition_variable begun_;
    std::condition_variable ended_;
    std::uint64_t round_ = 0;  // of for_each; under mutex_, as all up to failure_
    bool open_ = false;        // there may be items left: who wakes later than that stays out of the round
    int busy_ = 0;             // threads in this round
    bool stop_ = false;
    std::exception_ptr failure_;
    std::atomic<std::int64_t> next_{0};
    std::int64_t items_ = 0;  // set before a round opens, so ordered by mutex_, as the next
    const std::function<void(int, std::int64_t)>* item_ = nullptr;
    std::vector<std::thread> threads_;
};

// The threads somebody lent, or own ones where none were; only the caller's where the work is not worth waking others.
class LentWorkers {
  public:
    LentWorkers(Workers* lent, bool worth_it) : own_(lent == nullptr && worth_it ? 0 : 1) {
        used_ = lent != nullptr && worth_it ? lent : &own_;
    }
    LentWorkers(const LentWorkers&) = delete;
    LentWorkers& operator=(const LentWorkers&) = delete;
    void for_each(std::int64_t items, const std::function<void(int worker, std::int64_t index)>& item) {
        used_->for_each(items, item);
    }

  private:
    Workers own_;
    Workers* used_;
};

}  // namespace penstock::hmatrix
