// Passes on threads of the host, each of which takes the next bodies.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "nbody/body_engine.hpp"

namespace penstock::nbody {
namespace {

class HostBodies final : public BodyEngine {
  public:
    explicit HostBodies(unsigned threads) : threads_(threads) {}
    void run(const Evaluate& pass) override { over_bodies(pass); }
    void run(const Correct& pass) override { over_bodies(pass); }
    void wait() override {}

  private:
    template <class Pass>
    void over_bodies(const Pass& pass) const {
        constexpr std::int64_t together = 64;
        std::atomic<std::int64_t> next{0};
        const auto work = [&pass, &next] {
            for (;;) {
                const std::int64_t first = next.fetch_add(together);
                if (first >= pass.all.count) return;
                for (std::int64_t i = first; i < std::min(first + together, pass.all.count); ++i) pass(i);
            }
        };
        std::vector<std::thread> others;
        const std::int64_t useful = (pass.all.count + together - 1) / together;
        for (std::int64_t i = 1; i < std::min<std::int64_t>(threads_, useful); ++i) others.emplace_back(work);
        work();
        for (std::thread& one : others) one.join();
    }
    unsigned threads_;
};

}  // namespace

std::unique_ptr<BodyEngine> make_body_engine_of_host(unsigned threads) {
    return std::make_unique<HostBodies>(threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace penstock::nbody
