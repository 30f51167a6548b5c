// Passes on threads of the host. Threads share the rows of x and z, one y each time.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "flow/engine.hpp"

namespace penstock::flow {
namespace {

int usable_cores() {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof mine, &mine) == 0) return std::max(1, CPU_COUNT(&mine));
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class HostEngine final : public Engine {
  public:
    explicit HostEngine(int threads) : threads_(threads > 0 ? threads : usable_cores()) {}
    MemoryKind memory() const noexcept override { return MemoryKind::system; }
    void upload(double* to, const double* from, std::int64_t count) override { std::copy_n(from, count, to); }
    void download(double* to, const double* from, std::int64_t count) override { std::copy_n(from, count, to); }
    void run(const Close& pass) override { over(pass, kHalo); }
    void run(const Advance& pass) override { over(pass, 0); }
    void run(const Diagnose& pass) override { over(pass, 0); }
    std::uintptr_t stream() const noexcept override { return 0; }
    void use_default_stream(bool) noexcept override {}
    void wait() override {}

  private:
    template <class Pass>
    void over(const Pass& pass, int halo) const {
        const Grid grid = pass.grid;
        std::atomic<int> next{-halo};
        const auto work = [&pass, &next, grid, halo] {
            for (int y = next.fetch_add(1); y < grid.ny + halo; y = next.fetch_add(1)) {
                for (int x = -halo; x < grid.nx + halo; ++x) {
                    for (int z = -halo; z < grid.nz + halo; ++z) pass(x, y, z);
                }
            }
        };
        std::vector<std::thread> others;
        for (int i = 1; i < std::min(threads_, grid.ny); ++i) others.emplace_back(work);
        work();
        for (std::thread& one : others) one.join();
    }
    int threads_;
};

}  // namespace

std::unique_ptr<Engine> make_host_engine(int threads) { return std::make_unique<HostEngine>(threads); }

}  // namespace penstock::flow
