// A source of batches that GPU threads fetch through a page cache in device memory (penstock/device_cache.hpp).
//
// GPU threads request the pages of a batch. They copy the pages, from the cache or as they arrive, into contiguous
// memory called a piece. The first batches can be pinned in the cache; the cache's policy decides which other pages
// stay. One host thread, the server, fetches the next batches while the product works on earlier ones.
//
// There are at least two pieces. There are up to four if they take at most an eighth of the memory and the pinned
// batches fit beside them. With only two pieces, the server is idle from the end of a fetch until the product has taken
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
    std::int64_t cache_bytes = 0;         // of device memory, for the page cache and the pieces
    std::int64_t pinned_batches = 0;      // this many first batches, whole
    std::int64_t page_bytes = 32 * kKiB;  // one warp fetches a page: a batch must have enough pages to fill a GPU
    CachePolicy policy = CachePolicy::sweep_resistant;
    Verify verify = Verify::first;
};

class PageCacheSource final : public BatchSource {
  public:
    // Loads the pinned batches. Throws Error{invalid_argument} if the cache cannot hold them and two more batches.
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
    SourceCounts counts_;  // of take(); only the caller's thread writes it
    std::int64_t read_at_opening_ = 0;
    std::atomic<std::int64_t> bytes_asked_{0};
    Verifier verifier_;  // only the server uses it
    std::mutex mutex_;
    std::condition_variable wanted_, fetched_;  // the server waits for wanted_, take() for fetched_
    bool stop_ = false;                         // mutex_ guards it and ahead_
    ReadAhead ahead_;
    std::vector<Buffer> pieces_;  // pieces_[i] is place i of ahead_, which says who may use it
    std::thread server_;
};

}  // namespace penstock::hmatrix
