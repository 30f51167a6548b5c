// See on_cores.hpp.
#include "data/cores/on_cores.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>

#include "os/limits.hpp"

namespace penstock::data {
namespace {

class ItemWork {
  public:
    ItemWork(const Items& items, const std::function<std::unique_ptr<ItemWorker>()>& make, const CoreOptions& options)
        : count_(items.count), others_(items.ended), make_(make), options_(options) {}

    // Works on items until none is left. Any number of threads may be in here.
    void run() noexcept {
        try {
            const std::unique_ptr<ItemWorker> worker = make_();
            for (std::size_t at = next(); at < count_; at = next()) {
                std::string fault = worker->take(at);
                if (!fault.empty()) return end(at, std::move(fault));
                done_.fetch_add(1, std::memory_order_relaxed);
            }
        } catch (...) {
            const std::lock_guard lock(mutex_);
            error_ = std::current_exception();
            ended_.store(true, std::memory_order_relaxed);
        }
    }

    // Requires: no thread is in run() any more.
    CoreResult result() {
        if (error_) std::rethrow_exception(error_);
        return {done_.load(std::memory_order_relaxed), std::move(fault_)};
    }

  private:
    std::size_t next() {
        const auto is_set = [](const std::atomic<bool>* flag) {
            return flag != nullptr && flag->load(std::memory_order_relaxed);
        };
        if (is_set(options_.stopped) || is_set(others_) || is_set(&ended_) || options_.deadline.passed()) return count_;
        return next_.fetch_add(1, std::memory_order_relaxed);
    }

    // Of several items with faults the first is told, as far as it was looked at.
    void end(std::size_t at, std::string fault) {
        const std::lock_guard lock(mutex_);
        if (!fault_ || at < fault_->first) fault_.emplace(at, std::move(fault));
        ended_.store(true, std::memory_order_relaxed);
    }

    const std::size_t count_;
    const std::atomic<bool>* const others_;
    const std::function<std::unique_ptr<ItemWorker>()>& make_;
    const CoreOptions& options_;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::size_t> done_{0};
    std::atomic<bool> ended_{false};
    std::mutex mutex_;
    std::optional<std::pair<std::size_t, std::string>> fault_;  // guarded by mutex_, as the next one is
    std::exception_ptr error_;
};

std::size_t threads_for(const Items& items, unsigned wanted) {
    const std::uint64_t all = std::max<unsigned>(1, wanted != 0 ? wanted : os::allowed_cpus());
    const std::uint64_t worth = items.count * std::max<std::uint64_t>(1, items.bytes) / items.bytes_of_thread;
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(std::min<std::uint64_t>(worth, items.count), 1, all));
}

}  // namespace

CoreResult on_cores(const Items& items, const std::function<std::unique_ptr<ItemWorker>()>& make,
                    const CoreOptions& options) {
    ItemWork work(items, make, options);
    const auto run = [&work] { work.run(); };
    const std::size_t others = threads_for(items, options.threads) - 1;
    if (options.crew != nullptr) {
        options.crew->run(others, run);
    } else {
        os::Crew().run(others, run);
    }
    return work.result();
}

}  // namespace penstock::data
