// See decode_chunks.hpp.
#include "data/decode/decode_chunks.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "device/host/box_host.hpp"
#include "os/limits.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kBytesOfThread = 256 * kKiB;  // decoded; a thread takes about 50 us to begin

class ChunkWork {
  public:
    ChunkWork(const Pipeline& pipeline, std::span<const StoredChunk> chunks, std::span<const PlacedBox> boxes,
              const DecodeOptions& options)
        : pipeline_(pipeline), chunks_(chunks), boxes_(boxes), options_(options) {}

    // Decodes chunks until none is left. Any number of threads may be in here.
    void run() noexcept {
        try {
            Scratch scratch;
            std::unique_ptr<std::byte[]> own;
            for (std::size_t at = next(); at < chunks_.size(); at = next()) {
                std::string fault = decode(chunks_[at], own, scratch);
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
    DecodeResult result() {
        if (error_) std::rethrow_exception(error_);
        return {done_.load(std::memory_order_relaxed), std::move(fault_)};
    }

  private:
    std::size_t next() {
        const bool stopped = options_.stopped != nullptr && options_.stopped->load(std::memory_order_relaxed);
        if (stopped || ended_.load(std::memory_order_relaxed) || options_.deadline.passed()) return chunks_.size();
        return next_.fetch_add(1, std::memory_order_relaxed);
    }

    // Of several damaged chunks the first is told, as far as it was looked at.
    void end(std::size_t at, std::string fault) {
        const std::lock_guard lock(mutex_);
        if (!fault_ || at < fault_->first) fault_.emplace(at, std::move(fault));
        ended_.store(true, std::memory_order_relaxed);
    }

    std::string decode(const StoredChunk& chunk, std::unique_ptr<std::byte[]>& own, Scratch& scratch) const {
        const std::span<const PlacedBox> boxes = boxes_.subspan(chunk.first_box, chunk.boxes);
        const std::uint64_t size = pipeline_.chunk_bytes();
        if (boxes.size() == 1 && is_whole(boxes.front())) {
            const std::span<std::byte> place(static_cast<std::byte*>(boxes.front().box.destination), size);
            return pipeline_.decode(chunk.bytes, chunk.skipped, place, scratch);
        }
        if (own == nullptr) own = std::make_unique_for_overwrite<std::byte[]>(size);
        std::string fault = pipeline_.decode(chunk.bytes, chunk.skipped, {own.get(), size}, scratch);
        if (!fault.empty()) return fault;
        for (const PlacedBox& placed : boxes) {
            Box box = placed.box;
            box.source = own.get() + placed.source_bytes;
            device::copy_box_on_host(box);
        }
        return {};
    }

    bool is_whole(const PlacedBox& placed) const noexcept {
        const Box& box = placed.box;
        return box.dimensions == 0 && box.swap_bytes == 0 && box.item_bytes == pipeline_.chunk_bytes();
    }

    const Pipeline& pipeline_;
    std::span<const StoredChunk> chunks_;
    std::span<const PlacedBox> boxes_;
    const DecodeOptions& options_;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::size_t> done_{0};
    std::atomic<bool> ended_{false};
    std::mutex mutex_;
    std::optional<std::pair<std::size_t, std::string>> fault_;  // guarded by mutex_, as the next one is
    std::exception_ptr error_;
};

std::size_t threads_for(std::size_t chunks, std::uint64_t chunk_bytes, unsigned wanted) {
    const std::uint64_t all = std::max<unsigned>(1, wanted != 0 ? wanted : os::allowed_cpus());
    const std::uint64_t worth = chunks * std::max<std::uint64_t>(1, chunk_bytes) / kBytesOfThread;
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(std::min<std::uint64_t>(worth, chunks), 1, all));
}

// Threads that run the work beside the caller, and end with this object.
class Helpers {
  public:
    Helpers(std::size_t count, ChunkWork& work) {
        threads_.reserve(count);
        try {
            for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([&work] { work.run(); });
        } catch (const std::system_error&) {  // the system has no more threads: those that are there do the work
        }
    }
    ~Helpers() {
        for (std::thread& thread : threads_) thread.join();
    }
    Helpers(const Helpers&) = delete;
    Helpers& operator=(const Helpers&) = delete;

  private:
    std::vector<std::thread> threads_;
};

}  // namespace

DecodeResult decode_chunks(const Pipeline& pipeline, std::span<const StoredChunk> chunks,
                           std::span<const PlacedBox> boxes, const DecodeOptions& options) {
    ChunkWork work(pipeline, chunks, boxes, options);
    {
        const Helpers helpers(threads_for(chunks.size(), pipeline.chunk_bytes(), options.threads) - 1, work);
        work.run();
    }
    return work.result();
}

}  // namespace penstock::data
