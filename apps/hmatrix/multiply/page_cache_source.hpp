// Batches that the device's own threads fetch, through a page cache in device memory (penstock/device_cache.hpp).
//
// Threads of the device ask for the pages of a batch and copy them, from the cache or as they arrive, into memory where
// they lie in one piece. The first batches can be pinned in the cache; what else stays there is up to its policy. One
// thread of the host keeps the next batch coming while the one before is multiplied with.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/source.hpp"
#include "hmatrix/multiply/verifier.hpp"
#include "penstock/device_cache.hpp"

namespace penstock::hmatrix {

struct PageCacheOptions {
    std::int64_t cache_bytes = 0;     // of device memory, the pieces batches are handed out in included
    std::int64_t pinned_batches = 0;  // whole, from the first on
    std::int64_t page_bytes = 32 * kKiB;  // each is a warp's work: enough of them in a batch to fill a GPU
    CachePolicy policy = CachePolicy::sweep_resistant;
    Verify verify = Verify::first;
};

class PageCacheSource final : public BatchSource {
  public:
    // Loads what is pinned. Throws Error{invalid_argument} when the cache cannot hold that and two batches beside.
    PageCacheSource(const Context& context, Workers& workers, const MatrixFile& file, const PageCacheOptions& options);
    ~PageCacheSource() override;

    void begin(const Sweep& sweep) override;
    BatchView take(std::int64_t batch) override;
    std::int64_t room() const noexcept override { return static_cast<std::int64_t>(pieces_.size()); }
    void give_back(std::int64_t batch) override;
    SourceCounts counts() const override;

    std::int64_t pinned_bytes() const noexcept { return pinned_bytes_; }
    std::int64_t pinned_batches() const noexcept { return options_.pinned_batches; }

  private:
    enum class State : std::uint8_t { free, wanted, filling, ready, taken };
    struct Piece {  // all under mutex_ but the memory itself, which belongs to who made the state what it is
        Buffer memory;
        std::int64_t batch = -1;
        int tiers = 0;
        State state = State::free;
        std::exception_ptr failure;
    };

    void pin();
    void serve();
    void fetch(const Piece& piece);
    void want_next();  // under mutex_
    std::int64_t upcoming(std::int64_t steps) const noexcept;
    Piece* find(std::int64_t batch) noexcept;

    Context context_;
    const MatrixFile& file_;
    PageCacheOptions options_;
    std::unique_ptr<DeviceCache> cache_;
    std::int64_t pinned_bytes_ = 0;
    Sweep sweep_;
    std::int64_t position_ = 0;
    SourceCounts counts_;  // of takes
    std::int64_t read_at_opening_ = 0;
    std::atomic<std::int64_t> bytes_asked_{0};
    Verifier verifier_;  // the server's
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stop_ = false;
    std::vector<Piece> pieces_;
    std::thread server_;
};

}  // namespace penstock::hmatrix
