// Batches that the device's own threads fetch, through a page cache in device memory (penstock/device_cache.hpp).
//
// Threads of the device ask for the pages of a batch and copy them, from the cache or as they arrive, into memory where
// they lie in one piece. The first batches can be pinned in the cache; what else stays there is up to its policy. One
// thread of the host keeps the next batches coming while the ones before are multiplied with.
//
// There are two pieces at least, and up to four where they take no more than an eighth of the memory and what is to be
// pinned fits beside them: with two, that thread has nothing to do from the end of a fetch until the product has taken
// that batch and given back the one before.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/source/read_ahead.hpp"
#include "hmatrix/multiply/source/source.hpp"
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
    std::int64_t room() const noexcept override { return ahead_.places(); }
    void give_back(std::int64_t batch) override;
    SourceCounts counts() const override;

    std::int64_t pinned_bytes() const noexcept { return pinned_bytes_; }
    std::int64_t pinned_batches() const noexcept { return options_.pinned_batches; }

  private:
    std::int64_t count_pieces(std::int64_t piece_bytes) const;
    void pin();
    void serve();
    void fetch(const ReadAhead::Fetch& wanted);

    Context context_;
    const MatrixFile& file_;
    PageCacheOptions options_;
    std::unique_ptr<DeviceCache> cache_;
    std::int64_t pinned_bytes_ = 0;
    SourceCounts counts_;  // of takes
    std::int64_t read_at_opening_ = 0;
    std::atomic<std::int64_t> bytes_asked_{0};
    Verifier verifier_;  // the server's
    std::mutex mutex_;
    std::condition_variable wanted_, fetched_;  // for the server, for take()
    bool stop_ = false;          // under mutex_, as the next
    ReadAhead ahead_;
    std::vector<Buffer> pieces_;  // by place of ahead_, which says whose each is
    std::thread server_;
};

}  // namespace penstock::hmatrix
