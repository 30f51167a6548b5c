// A source of batches with memory of a given size. Part of the memory is pinned; the rest is a cache that reads ahead.
//
// The pinned part holds either the first tiers of every batch (the most significant few percent) or the first batches
// whole. The rest is divided into slots for whole batches, and the least recently used batch is replaced first. If many
// slots fit, one transfer reads several batches. With 32 transfers of one batch under way, an H200 reads 43 GB/s from
// the page cache; with eight batches a transfer it reads 52 GB/s. The source runs on any device: its memory is device
// memory if products run on a GPU, and page-locked host memory otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/source/sweep_order.hpp"
#include "hmatrix/multiply/verifier.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

struct CacheOptions {
    std::int64_t cache_bytes = 0;     // memory for matrix bytes; 0: as much as the whole matrix needs
    int pinned_tiers = 0;             // this many first tiers of every batch
    std::int64_t pinned_batches = 0;  // this many first batches, whole; -1: as many as fit
    int read_ahead = -1;              // batches to read before the sweep takes them; -1: as many as there are slots for
    PathKind path = PathKind::automatic;
    Verify verify = Verify::first;
    MemoryKind memory = MemoryKind::pinned;
};

class CachedSource final : public BatchSource {
  public:
    // Reads the pinned part. Throws Error{invalid_argument} if the cache cannot hold the pinned part and one batch.
    CachedSource(const Context& context, Workers& workers, const MatrixFile& file, const CacheOptions& options);
    ~CachedSource() override;

    void begin(const Sweep& sweep) override;
    BatchView take(std::int64_t batch) override;
    std::int64_t room() const noexcept override { return slots_.empty() ? file_.head().batches : slots(); }
    void give_back(std::int64_t batch) override;
    SourceCounts counts() const override { return counts_; }

    std::int64_t pinned_bytes() const noexcept;
    int pinned_tiers() const noexcept { return options_.pinned_tiers; }
    std::int64_t pinned_batches() const noexcept { return pinned_batches_; }
    std::int64_t slots() const noexcept { return static_cast<std::int64_t>(slots_.size()); }

  private:
    struct Region {  // bytes of a batch in memory, from byte `begin` of the batch on
        std::byte* memory = nullptr;
        std::int64_t begin = 0;
    };
    struct Read {  // one transfer, for one slot or several
        Transfer transfer;
        std::int64_t bytes = 0;
        bool counted = false;
    };
    struct Slot {
        Region region;
        std::int64_t batch = -1;
        int tiers = 0;
        bool reading = false;
        bool in_use = false;
        std::uint64_t used = 0;  // the value of takes_ at the last take
        std::shared_ptr<Read> read;
    };
    struct Wanted {
        Slot* slot;
        std::int64_t batch;
    };

    std::int64_t pinned_prefix(std::int64_t batch) const noexcept;  // in bytes
    std::int64_t slot_begin(std::int64_t batch) const noexcept;
    void choose_pinned(std::int64_t slot_bytes);
    void load_pinned();
    void make_slots(std::int64_t slot_bytes);
    bool needs_slot(std::int64_t batch) const noexcept;
    int steps_ahead() const noexcept;
    bool wanted_soon(std::int64_t batch) const noexcept;
    static bool is_replaced_after(const Slot* one, const Slot* other) noexcept;
    Slot* victim() noexcept;
    std::vector<Slot*> victims_ahead();
    Slot& slot_for_now();
    Slot& fetch(std::int64_t batch);
    void drop_batch(Slot& slot) noexcept;
    std::int64_t slot_part(std::int64_t batch, int tiers) const noexcept;  // in bytes
    void start_read(std::span<const Wanted> wanted);
    void end_read(Read& read);
    void finish_read(Slot& slot);
    std::vector<Wanted> choose_ahead();
    void read_ahead();
    Error ends_early() const;
    void count(const Outcome& outcome);

    Context context_;
    const MatrixFile& file_;
    CacheOptions options_;
    std::int64_t pinned_batches_ = 0;
    Buffer pinned_memory_;
    std::vector<Region> pinned_;  // for each batch; `memory` is null if nothing of it is pinned
    Buffer slot_memory_;
    std::vector<Slot> slots_;
    std::size_t batches_per_read_ = 1;
    std::vector<Slot*> slot_of_;  // for each batch; null: no slot holds it
    Verifier verifier_;
    SweepOrder order_;
    std::uint64_t takes_ = 0;
    SourceCounts counts_;
};

}  // namespace penstock::hmatrix
