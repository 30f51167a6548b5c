// For tests: memory for a page cache on the host, and a store whose pages are patterns, with faults, delays and counts.
//
// Every word of a page tells its key, its place and a version, so that tests see wrong, torn and lost bytes. Loads
// write plain bytes, so ThreadSanitizer judges the order between a load and every use of the page. Write-backs read
// words one by one, because users may store meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "penstock/ondevice/cache_memory.hpp"

namespace penstock::ondevice {

inline constexpr u64 kEver = ~u64{0};  // a deadline that does not come

inline u64 word_of(u64 key, u64 place, u64 version) { return key << 40 | place << 32 | version; }
inline u64 soon(u64 ms = 20'000) { return Native::now_ns() + ms * 1'000'000; }

class Disk {
  public:
    Disk(u64 pages, u32 page_bytes) : pages_(pages), words_(page_bytes / 8), bytes_(words_ == 0 ? 0 : pages * words_) {
        for (u64 key = 0; key < pages && words_ != 0; ++key)
            for (u64 place = 0; place < words_; ++place) bytes_[key * words_ + place] = word_of(key, place, 0);
    }

    u64 pages() const { return pages_; }
    u64 words() const { return words_; }
    u64 word(u64 key, u64 place) const { return bytes_[key * words_ + place]; }

    std::atomic<u32> loads{0}, puts{0}, commits{0};
    std::atomic<u32> fail_load_each{0};  // the n-th, 2n-th... load fails; 0: none
    std::atomic<u32> fail_put_each{0};
    std::atomic<u32> fail_commit{0};
    std::atomic<u32> pending_tests{0};  // a load is pending this many times before it is done
    std::atomic<u32> stalled{0};        // no load ends
    std::atomic<u32> full{0};           // no load begins
    std::atomic<u32> slow{0};           // other threads go on in the middle of a page
    std::atomic<u32> misused{0};        // two callers polled one load at once, or one polled a load that was over

    struct Flight {
        std::atomic<u32> live{0}, testers{0};
        u32 left = 0;
        bool fails = false;
    };
    static constexpr u32 kFlights = 64;
    Flight flights[kFlights];

    Status begin(u64 key, u32& ticket) {
        if (key >= pages_) return Status::out_of_range;
        if (full) return Status::busy;
        for (ticket = 0; ticket < kFlights; ++ticket) {
            u32 idle = 0;
            if (!flights[ticket].live.compare_exchange_strong(idle, 1)) continue;
            const u32 turn = ++loads;
            flights[ticket].left = pending_tests;
            flights[ticket].fails = fail_load_each != 0 && turn % fail_load_each == 0;
            return Status::ok;
        }
        return Status::busy;
    }
    Status test(u32 ticket, u64 key, void* page) {
        Flight& flight = flights[ticket];
        if (flight.testers.exchange(1) != 0 || flight.live == 0) ++misused;
        Status status = Status::pending;
        if (!stalled && flight.left-- == 0) {
            status = flight.fails ? Status::io_error : Status::ok;
            if (status == Status::ok && words_ != 0) copy(key, static_cast<u64*>(page));
        }
        flight.testers = 0;
        if (status != Status::pending) flight.live = 0;
        return status;
    }
    Status put(u64 key, const void* page) {
        const u32 turn = ++puts;
        if (fail_put_each != 0 && turn % fail_put_each == 0) return Status::io_error;
        for (u64 place = 0; place < words_; ++place)
            bytes_[key * words_ + place] = unsettled(static_cast<const u64*>(page) + place);
        return Status::ok;
    }
    Status commit() {
        ++commits;
        return fail_commit ? Status::io_error : Status::ok;
    }

  private:
    void copy(u64 key, u64* page) const {
        const u64* const from = &bytes_[key * words_];
        std::memcpy(page, from, words_ / 2 * 8);
        if (slow) std::this_thread::sleep_for(std::chrono::microseconds(20));
        std::memcpy(page + words_ / 2, from + words_ / 2, (words_ - words_ / 2) * 8);
    }

    // Users may store to a page while it is written back, and then make it dirty again. This race is intended.
#if defined(__SANITIZE_THREAD__)
    __attribute__((no_sanitize_thread, noinline))
#endif
    static u64
    unsettled(const volatile u64* word) {
        return *word;
    }

    u64 pages_;
    u64 words_;
    std::vector<u64> bytes_;
};

struct DiskStore {
    Disk* disk;
    Status begin(Lanes, u64 key, void*, u64, u32& ticket) const { return disk->begin(key, ticket); }
    Status test(Lanes, u32 ticket, u64 key, void* page) const { return disk->test(ticket, key, page); }
    Status prepare(Lanes, u64 key, const void* page, u64, u32&) const { return disk->put(key, page); }
    Status send(u64, u32, u64) const { return Status::ok; }
    Status commit(Lanes, u64) const { return disk->commit(); }
};

template <class Policy = SweepResistant, class P = Native, class Store = DiskStore>
class CacheRig {
  public:
    using Cache = PageCacheRef<P, Store, Policy>;

    CacheRig(const CacheShape& shape, const Store& store, u32 callers = 1)
        : shape_(shape),
          states_(allocate(shape.state_bytes())),
          data_(allocate(shape.data_bytes())),
          tallies_(callers),
          store_(store),
          quota_(shape.frames - shape.frames / 4) {
        format(pool(), 0, 1);
    }

    Pool<P> pool() { return pool_of<P>(shape_, states_.get()); }
    // Requires: no caller uses the cache. Looking at it this way is no step of a platform of tests.
    Pool<Native> still() { return pool_of<Native>(shape_, states_.get()); }
    const u8* page(u32 frame) const { return static_cast<const u8*>(data_.get()) + u64{frame} * shape_.page_bytes; }
    Cache cache(u32 caller = 0) {
        Cache made;
        made.hits() = {pool(), static_cast<u8*>(data_.get()), shape_.page_bytes, &tallies_[caller]};
        made.store() = store_;
        made.quota = quota_;
        made.together = together_of(shape_.frames, quota_);
        return made;
    }
    Tally total() const {
        Tally sum{};
        for (const CacheCounts& counts : tallies_) merge<Native>(sum, counts.tally);
        return sum;
    }
    // The references of all pages. Without users these are pins alone.
    u64 references() {
        u64 sum = 0;
        for (u32 frame = 0; frame < shape_.frames; ++frame) sum += still().frame(frame).state & kReferences;
        return sum;
    }
    // Whether each frame is exactly once on a stack or in a chain.
    bool every_frame_is_somewhere_once() {
        std::vector<u32> seen(shape_.frames, 0);
        const auto directory = still().directory;
        for (u64 frame = *directory.unused; frame < shape_.frames; ++frame) ++seen[frame];
        for (u32 stack = 0; stack <= directory.free_mask; ++stack)
            for (u32 frame = static_cast<u32>(directory.free[stack]); frame != kNoFrame; frame = directory.next(frame))
                if (seen[frame]++ != 0) return false;
        for (u32 bucket = 0; bucket <= directory.bucket_mask; ++bucket)
            for (u32 frame = directory.first(bucket); frame != kNoFrame; frame = directory.next(frame))
                if (seen[frame]++ != 0) return false;
        std::vector<u32> slots(shape_.frames, 0);
        for (u32 slot = 0; slot < shape_.frames; ++slot) {
            const u32 frame = still().slots[slot];
            const bool probation = still().frame(frame).state & kProbation;
            if (slots[frame]++ != 0 || probation != still().on_trial(slot)) return false;
        }
        for (const u32 count : seen)
            if (count != 1) return false;
        return true;
    }

  private:
    struct Aligned {
        void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{4096}); }
    };
    using Memory = std::unique_ptr<void, Aligned>;
    static Memory allocate(u64 bytes) { return Memory(::operator new (bytes, std::align_val_t{4096})); }

    CacheShape shape_;
    Memory states_;
    Memory data_;
    std::vector<CacheCounts> tallies_;
    Store store_;
    u32 quota_;
};

inline u64 word_in(const void* page, u64 place) {
    return __atomic_load_n(static_cast<const u64*>(page) + place, __ATOMIC_RELAXED);
}
inline void set_word(void* page, u64 place, u64 word) {
    __atomic_store_n(static_cast<u64*>(page) + place, word, __ATOMIC_RELAXED);
}

}  // namespace penstock::ondevice
