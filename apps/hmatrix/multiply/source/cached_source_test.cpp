// Compares the cache of batches with a model of it: every byte it hands out, what it read, and what it held.
#include "hmatrix/multiply/source/cached_source.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "hmatrix/multiply/stored_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::int64_t page_up(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// The simplest model: replaces the least recently used batch, reads one batch ahead a step, and replaces none that is
// needed soon.
class Model {
  public:
    Model(const MatrixFile& file, const CachedSource& source, int ahead) : file_(file), source_(source), ahead_(ahead) {
        read_ = source.counts().bytes_read;
    }
    void begin(const Sweep& sweep) {
        coming_.assign(sweep.order.begin(), sweep.order.end());
        coming_.insert(coming_.end(), sweep.next.begin(), sweep.next.end());
        tiers_ = sweep.tiers;
        read_ahead();
    }
    void take(std::int64_t batch) {
        ++now_;
        coming_.erase(coming_.begin());
        const std::int64_t whole = file_.prefix_bytes(batch, tiers_);
        if (!passes(batch)) {
            hit_ += whole;
        } else {
            const auto held = held_.find(batch);
            if (held != held_.end() && held->second.seen && held->second.tiers >= tiers_) {
                hit_ += whole;
            } else {
                hit_ += file_.prefix_bytes(batch, std::min(tiers_, source_.pinned_tiers()));
                if (held != held_.end() && !held->second.seen) read_ += bytes(batch, held->second.tiers);
                if (held == held_.end() || held->second.tiers < tiers_) {
                    if (held == held_.end()) make_room({});
                    held_[batch] = {tiers_, 0, true};
                    read_ += bytes(batch, tiers_);
                }
            }
            held_[batch].seen = true;
            held_[batch].used = now_;
            busy_ = batch;
        }
        read_ahead();
    }
    void give_back() {
        busy_ = -1;
        read_ahead();
    }
    std::int64_t bytes_read() const { return read_; }
    std::int64_t bytes_hit() const { return hit_; }

  private:
    struct Held {
        int tiers = 0;
        std::int64_t used = 0;
        bool seen = false;  // whether it was taken since it was read
    };
    bool passes(std::int64_t batch) const {
        return batch >= source_.pinned_batches() &&
               file_.prefix_bytes(batch, tiers_) > file_.prefix_bytes(batch, source_.pinned_tiers());
    }
    std::int64_t bytes(std::int64_t batch, int tiers) const {
        return page_up(file_.prefix_bytes(batch, tiers)) -
               file_.prefix_bytes(batch, source_.pinned_tiers()) / 4096 * 4096;
    }
    bool make_room(const std::vector<std::int64_t>& wanted) {
        if (static_cast<std::int64_t>(held_.size()) < source_.slots()) return true;
        std::int64_t oldest = -1;
        for (const auto& [batch, held] : held_) {
            const bool kept = !held.seen || batch == busy_ || std::count(wanted.begin(), wanted.end(), batch) > 0;
            if (!kept && (oldest < 0 || held.used < held_[oldest].used)) oldest = batch;
        }
        return oldest >= 0 && held_.erase(oldest) == 1;
    }
    void read_ahead() {
        const auto window = std::min<std::size_t>(coming_.size(), ahead_ + 1);
        const std::vector<std::int64_t> wanted(coming_.begin(), coming_.begin() + static_cast<std::ptrdiff_t>(window));
        for (const std::int64_t batch : wanted) {
            if (!passes(batch)) continue;
            const auto held = held_.find(batch);
            if (held != held_.end() && (!held->second.seen || batch == busy_ || held->second.tiers >= tiers_)) continue;
            if (held == held_.end() && !make_room(wanted)) return;
            held_[batch] = {tiers_, 0, false};
        }
    }

    const MatrixFile& file_;
    const CachedSource& source_;
    std::size_t ahead_;
    std::map<std::int64_t, Held> held_;
    std::vector<std::int64_t> coming_;
    int tiers_ = 0;
    std::int64_t busy_ = -1;
    std::int64_t now_ = 0;
    std::int64_t read_ = 0;
    std::int64_t hit_ = 0;
};

class Cache : public testing::Test {
  protected:
    bool right(const BatchView& view, std::int64_t batch, int tiers) const {
        return rig_.holds(view, file_.tables().batches[batch], tiers);
    }
    std::vector<std::int64_t> order(bool backwards) const {
        std::vector<std::int64_t> all(file_.head().batches);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
        if (backwards) std::reverse(all.begin(), all.end());
        return all;
    }
    // Bytes of a cache that has this many slots in addition to its pinned part.
    std::int64_t room_for(std::int64_t slots, int pinned_tiers, std::int64_t pinned_batches) const {
        std::int64_t slot = 0, pinned = 0;
        for (std::int64_t b = 0; b < file_.head().batches; ++b) {
            const std::int64_t prefix = file_.prefix_bytes(b, pinned_tiers), all = file_.tables().batches[b].bytes;
            slot = std::max(slot, page_up(all) - prefix / 4096 * 4096);
            pinned += page_up(b < pinned_batches ? all : prefix);
        }
        return pinned + slots * slot;
    }
    StoredRig rig_{Encoding::tiers, 500, 10};
    MatrixFile file_ = rig_.open();
};

TEST_F(Cache, everything_is_pinned_where_there_is_room) {
    CachedSource source(rig_.context, rig_.workers, file_, {});
    EXPECT_EQ(source.pinned_batches(), 10);
    EXPECT_EQ(source.slots(), 0);
    const std::int64_t read = source.counts().bytes_read;
    EXPECT_EQ(read, source.pinned_bytes());
    const auto all = order(false);
    source.begin({all, all, file_.tiers()});
    for (const std::int64_t batch : all) {
        EXPECT_TRUE(right(source.take(batch), batch, file_.tiers()));
        source.give_back(batch);
    }
    EXPECT_EQ(source.counts().bytes_read, read);
    EXPECT_EQ(source.counts().bytes_hit, file_.prefix_bytes(file_.tiers()));
    EXPECT_EQ(source.counts().hit_rate(), 1);
    std::int64_t by_path = 0;
    const SourceCounts counts = source.counts();
    for (const auto& [path, bytes] : counts.bytes_by_path) by_path += bytes;
    EXPECT_EQ(by_path, read);
}

TEST_F(Cache, gives_out_and_counts_what_the_model_says) {
    std::mt19937_64 random(7);
    const auto below = [&](std::int64_t bound) { return static_cast<std::int64_t>(random() % bound); };
    for (int run = 0; run < 120; ++run) {
        CacheOptions options;
        options.pinned_tiers = static_cast<int>(below(3));
        options.pinned_batches = below(3) == 0 ? below(9) : 0;
        options.read_ahead = below(2) == 0 ? -1 : static_cast<int>(below(5));
        options.memory = below(2) == 0 ? MemoryKind::device : MemoryKind::pinned;
        options.path = below(2) == 0 ? PathKind::buffered : PathKind::automatic;
        options.cache_bytes = room_for(1 + below(10), options.pinned_tiers, options.pinned_batches);
        CachedSource source(rig_.context, rig_.workers, file_, options);
        const auto ahead = options.read_ahead >= 0 ? options.read_ahead : static_cast<int>(source.slots()) - 1;
        Model model(file_, source, ahead);
        // One transfer then reads two batches. It begins later, so more batches may still be in memory, and its bytes
        // are counted together.
        const bool in_pairs = std::min<std::int64_t>(source.slots(), ahead + 1) >= 8;
        const std::int64_t early = page_up(file_.largest_batch());
        const bool zig_zag = below(2) == 0, foreseen = below(4) != 0;
        int tiers = 1 + static_cast<int>(below(file_.tiers()));
        for (int sweep = 0; sweep < 4; ++sweep) {
            const auto now = order(zig_zag && sweep % 2 == 1), next = order(zig_zag && sweep % 2 == 0);
            // Sometimes a sweep uses another number of tiers, as a relaxed solver does.
            if (below(3) == 0) tiers = 1 + static_cast<int>(below(file_.tiers()));
            Sweep asked{now, {}, tiers};
            if (foreseen) asked.next = next;
            source.begin(asked);
            model.begin(asked);
            for (const std::int64_t batch : now) {
                const BatchView view = source.take(batch);
                model.take(batch);
                ASSERT_TRUE(right(view, batch, tiers)) << "run " << run;
                source.give_back(batch);
                model.give_back();
                const SourceCounts counts = source.counts();
                ASSERT_LE(counts.bytes_read, model.bytes_read() + in_pairs * early) << "run " << run;
                ASSERT_GE(counts.bytes_hit, model.bytes_hit()) << "run " << run << " sweep " << sweep;
                if (in_pairs) continue;
                ASSERT_EQ(counts.bytes_read, model.bytes_read()) << "run " << run << " sweep " << sweep;
                ASSERT_EQ(counts.bytes_hit, model.bytes_hit()) << "run " << run << " sweep " << sweep;
            }
        }
        EXPECT_EQ(source.counts().batches_taken, 40);
    }
}

// The known behaviour of caches under cyclic scans, which is why pinning and zig-zag sweeps help.
TEST_F(Cache, a_cyclic_scan_hits_nothing_but_what_is_pinned_and_zig_zag_hits_what_stayed) {
    const auto hits = [&](std::int64_t slots, std::int64_t pinned, bool zig_zag) {
        CacheOptions options;
        options.pinned_batches = pinned;
        options.read_ahead = 0;
        options.cache_bytes = room_for(slots, 0, pinned);
        CachedSource source(rig_.context, rig_.workers, file_, options);
        std::int64_t before = 0;
        for (int sweep = 0; sweep < 6; ++sweep) {
            before = source.counts().bytes_hit;
            const auto now = order(zig_zag && sweep % 2 == 1), next = order(zig_zag && sweep % 2 == 0);
            source.begin({now, next, file_.tiers()});
            for (const std::int64_t batch : now) {
                source.take(batch);
                source.give_back(batch);
            }
        }
        return source.counts().bytes_hit - before;
    };
    const auto first = [&](std::int64_t batches) {
        std::int64_t bytes = 0;
        for (std::int64_t b = 0; b < batches; ++b) bytes += file_.prefix_bytes(b, file_.tiers());
        return bytes;
    };
    EXPECT_EQ(hits(4, 0, false), 0);
    EXPECT_EQ(hits(2, 4, false), first(4));
    EXPECT_GE(hits(4, 0, true), first(10) / 5);
    EXPECT_EQ(hits(10, 0, false), first(10));
}

TEST_F(Cache, orders_nobody_foresaw_are_served_all_the_same) {
    std::mt19937_64 random(8);
    for (int run = 0; run < 60; ++run) {
        CacheOptions options;
        options.cache_bytes = room_for(1 + run % 6, 0, 0);
        CachedSource source(rig_.context, rig_.workers, file_, options);
        for (int sweep = 0; sweep < 5; ++sweep) {
            auto now = order(false), told = order(false);
            std::shuffle(now.begin(), now.end(), random);
            std::shuffle(told.begin(), told.end(), random);
            now.resize(1 + random() % now.size());
            const int tiers = 1 + static_cast<int>(random() % file_.tiers());
            source.begin({now, told, tiers});
            std::vector<std::pair<std::int64_t, BatchView>> kept;
            for (const std::int64_t batch : now) {
                kept.emplace_back(batch, source.take(batch));
                if (static_cast<std::int64_t>(kept.size()) < source.slots() && random() % 2 == 0) continue;
                for (const auto& [held, view] : kept) {  // reads of other batches must not have changed it
                    ASSERT_TRUE(right(view, held, tiers));
                    source.give_back(held);
                }
                kept.clear();
            }
        }
    }
}

TEST_F(Cache, a_sweep_that_ended_early_leaves_nothing_taken) {
    CacheOptions options;
    options.cache_bytes = room_for(1, 0, 0);
    CachedSource source(rig_.context, rig_.workers, file_, options);
    const auto all = order(false);
    for (int sweep = 0; sweep < 3; ++sweep) {
        source.begin({all, {}, file_.tiers()});
        EXPECT_TRUE(right(source.take(0), 0, file_.tiers()));  // the sweep ends without giving it back
    }
}

TEST_F(Cache, one_that_is_too_small_says_by_how_much) {
    const auto cause = [&](std::int64_t bytes, int tiers, std::int64_t batches) {
        CacheOptions options;
        options.cache_bytes = bytes;
        options.pinned_tiers = tiers;
        options.pinned_batches = batches;
        try {
            const CachedSource source(rig_.context, rig_.workers, file_, options);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            EXPECT_NE(error.info().advice.find("more memory"), std::string::npos);
            return error.info().cause;
        }
        return std::string();
    };
    EXPECT_NE(cause(room_for(1, 0, 0) - 1, 0, 0).find("and a batch of"), std::string::npos);
    EXPECT_EQ(cause(room_for(1, 0, 0), 0, 0), "");
    EXPECT_NE(cause(room_for(1, 1, 0) - 1, 1, 0), "");
    EXPECT_EQ(cause(room_for(1, 1, 0), 1, 0), "");
    EXPECT_NE(cause(room_for(1, 0, 5) - 1, 0, 5), "");
    const int all = file_.tiers();
    EXPECT_NE(cause(room_for(0, all, 0) - 1, all, 0), "") << "all tiers pinned";
    EXPECT_EQ(cause(room_for(0, all, 0), all, 0), "");
    EXPECT_EQ(cause(room_for(0, all, 0), 99, 0), "") << "more than there are";
    EXPECT_NE(cause(1, 0, -1), "");
    EXPECT_EQ(cause(room_for(3, 0, 4), 0, -1), "") << "as many as fit";
    EXPECT_NE(cause(-5, 0, 0), "");
}

TEST_F(Cache, as_many_batches_as_fit_are_pinned_and_some_room_is_left_to_pass_through) {
    CacheOptions options;
    options.pinned_batches = -1;
    options.cache_bytes = room_for(3, 0, 4);
    const CachedSource some(rig_.context, rig_.workers, file_, options);
    EXPECT_EQ(some.pinned_batches(), 4);
    EXPECT_EQ(some.slots(), 3);
    options.cache_bytes = room_for(0, 0, 10);
    const CachedSource all(rig_.context, rig_.workers, file_, options);
    EXPECT_EQ(all.pinned_batches(), 10);
}

TEST_F(Cache, memory_of_the_device_holds_the_same) {
    CacheOptions options;
    options.memory = MemoryKind::device;
    options.pinned_tiers = 1;
    options.cache_bytes = room_for(2, 1, 0);
    CachedSource source(rig_.context, rig_.workers, file_, options);
    const auto all = order(false);
    source.begin({all, {}, file_.tiers()});
    for (const std::int64_t batch : all) {
        const BatchView view = source.take(batch);
        const BatchRecord& record = file_.tables().batches[batch];
        for (int tier = 0; tier < file_.tiers(); ++tier) {
            const auto bytes = static_cast<std::uint64_t>(record.tier_bytes[tier]);
            const auto found = test::fetch(rig_.context, view.tiers[tier], bytes);
            const unsigned char* at = rig_.bytes.data() + record.offset + record.tier_begin[tier];
            EXPECT_TRUE(std::equal(found.begin(), found.end(), at));
        }
        source.give_back(batch);
    }
}

}  // namespace
}  // namespace penstock::hmatrix
