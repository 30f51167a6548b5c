// Threads that share out the items of a loop: for assembly and products on the host.
//
// Items are taken one by one, so their costs may differ; which worker takes which item is not determined, so results
// must not depend on it. What an item throws ends the loop and is thrown again where it was started.
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
    // 0: one for each core this process may use. The caller of for_each is one of them.
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
    std::uint64_t round_ = 0;  // of for_each; under mutex_, as the next two
    int busy_ = 0;             // threads still in this round
    bool stop_ = false;
    std::atomic<std::int64_t> next_{0};
    std::int64_t items_ = 0;  // set before a round begins, so ordered by mutex_, as the next
    const std::function<void(int, std::int64_t)>* item_ = nullptr;
    std::exception_ptr failure_;  // under mutex_
    std::vector<std::thread> threads_;
};

}  // namespace penstock::hmatrix
