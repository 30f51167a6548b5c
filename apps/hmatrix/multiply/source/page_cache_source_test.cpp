// Batches through the device's page cache: every byte, the counts, and what the constructor refuses.
#include "hmatrix/multiply/source/page_cache_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <thread>

#include "hmatrix/multiply/kernels.hpp"
#include "hmatrix/multiply/stored_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

class PageCacheSourceTest : public testing::Test {
  protected:
    PageCacheOptions options(std::int64_t pages, std::int64_t pinned_batches = 0) const {
        PageCacheOptions how;
        how.page_bytes = 4096;
        how.cache_bytes = 2 * piece_ + pages * how.page_bytes;
        how.pinned_batches = pinned_batches;
        return how;
    }
    PageCacheSource source(const PageCacheOptions& how) { return {rig_.context, rig_.workers, file_, how}; }

    // Checks every byte of every batch in each of `sweeps` sweeps.
    void sweep(PageCacheSource& source, int sweeps, int tiers) {
        for (int i = 0; i < sweeps; ++i) {
            source.begin({order_, order_, tiers});
            for (const std::int64_t batch : order_) {
                const BatchView view = source.take(batch);
                ASSERT_TRUE(rig_.holds(view, file_.tables().batches[batch], tiers)) << batch;
                source.give_back(batch);
            }
        }
    }
    std::int64_t all() const { return file_.prefix_bytes(file_.tiers()); }
    void change_byte(std::int64_t offset, unsigned char by) {
        std::fstream file(rig_.name, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(offset);
        file.put(static_cast<char>(rig_.bytes[offset] ^ by));
    }

    StoredRig rig_{Encoding::tiers, 500, 10};
    MatrixFile file_ = rig_.open();
    const std::int64_t piece_ = file_.largest_batch() + kRowsTogether;
    std::vector<std::int64_t> order_ = [this] {
        std::vector<std::int64_t> order(file_.head().batches);
        std::iota(order.begin(), order.end(), std::int64_t{0});
        return order;
    }();
};

TEST_F(PageCacheSourceTest, gives_out_the_bytes_of_the_file_and_counts_them) {
    PageCacheSource few = source(options(file_.largest_batch() / 4096 + 2));
    sweep(few, 3, file_.tiers());
    EXPECT_EQ(few.counts().batches_taken, 30);
    EXPECT_GE(few.counts().bytes_taken, 3 * all()) << "and what is read ahead";
    EXPECT_LT(few.counts().hit_rate(), 0.3) << "a scan of far more than the cache";
    std::int64_t by_path = 0;
    const SourceCounts counts = few.counts();
    for (const auto& [path, bytes] : counts.bytes_by_path) by_path += bytes;
    EXPECT_EQ(by_path, counts.bytes_read);

    PageCacheSource part = source(options(file_.largest_batch() / 4096 + 2));
    sweep(part, 1, 1);
    EXPECT_LT(part.counts().bytes_read, all()) << "fewer tiers are fewer bytes";
}

// A GPU still works on a batch when the next one is taken.
TEST_F(PageCacheSourceTest, a_batch_may_be_given_back_after_the_next_was_taken) {
    PageCacheSource source = this->source(options(file_.largest_batch() / 4096 + 2));
    EXPECT_EQ(source.room(), 2);
    for (int i = 0; i < 3; ++i) {
        source.begin({order_, order_, file_.tiers()});
        std::int64_t held = -1;
        for (const std::int64_t batch : order_) {
            source.take(batch);
            if (held >= 0) source.give_back(held);
            held = batch;
        }
        source.give_back(held);
    }
    EXPECT_EQ(source.counts().batches_taken, 30);
}

// A source has more than two pieces only if they fit into an eighth of the memory beside the pinned batches.
TEST_F(PageCacheSourceTest, there_are_more_pieces_where_there_is_room) {
    const auto room = [&](std::int64_t cache_bytes, std::int64_t pinned = 0) {
        PageCacheOptions how = options(0, pinned);
        how.cache_bytes = cache_bytes;
        return source(how).room();
    };
    EXPECT_EQ(room(8 * 3 * piece_ - 1), 2);
    EXPECT_EQ(room(8 * 3 * piece_), 3);
    EXPECT_EQ(room(8 * 4 * piece_ - 1), 3);
    EXPECT_EQ(room(8 * 4 * piece_), 4);
    EXPECT_EQ(room(8 * 40 * piece_), 4);
    EXPECT_EQ(room(8 * 4 * piece_, 10), 4) << "all is pinned beside them";
    for (std::int64_t pages = 0;; ++pages) {  // until the smallest size that holds everything
        try {
            EXPECT_EQ(source(options(pages, 10)).room(), 2);
            break;
        } catch (const Error&) {
            ASSERT_LT(pages, 8 * 4 * piece_ / 4096);
        }
    }
}

TEST_F(PageCacheSourceTest, batches_are_fetched_ahead_while_one_is_held) {
    for (const std::int64_t pieces : {2, 3, 4}) {
        PageCacheOptions how = options(0);
        how.cache_bytes = 8 * std::max<std::int64_t>(pieces, 3) * piece_ - (pieces == 2 ? 1 : 0);
        PageCacheSource source = this->source(how);
        ASSERT_EQ(source.room(), pieces);
        source.begin({order_, {}, file_.tiers()});
        source.take(0);
        std::int64_t ahead = 0;
        for (std::int64_t batch = 0; batch < pieces; ++batch) ahead += file_.prefix_bytes(batch, file_.tiers());
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (source.counts().bytes_taken < ahead && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(source.counts().bytes_taken, ahead) << "and no more than there are pieces";
        source.give_back(0);
        for (std::int64_t batch = 1; batch < 10; ++batch) {
            source.take(batch);
            source.give_back(batch);
        }
        EXPECT_EQ(source.counts().bytes_taken, all());
        sweep(source, 2, file_.tiers());
    }
}

// Sweeps with other batches and more tiers than the sweep before announced.
TEST_F(PageCacheSourceTest, sweeps_need_not_be_what_was_said_before) {
    for (const std::int64_t pages : {file_.largest_batch() / 4096 + 2, 40 * file_.largest_batch() / 4096}) {
        PageCacheSource source = this->source(options(pages));
        for (int round = 0; round < 6; ++round) {
            sweep(source, 1, 1);
            sweep(source, 1, file_.tiers());
            source.begin({order_, order_, 1});
            source.take(order_[0]);  // the rest of this sweep is dropped
            std::reverse(order_.begin(), order_.end());
        }
    }
}

TEST_F(PageCacheSourceTest, what_stays_in_the_cache_is_a_hit_though_nothing_is_pinned) {
    PageCacheSource source = this->source(options(2 * rig_.bytes.size() / 4096));
    sweep(source, 4, file_.tiers());
    EXPECT_GT(source.counts().hit_rate(), 0.7);
    EXPECT_LE(source.counts().bytes_read, static_cast<std::int64_t>(rig_.bytes.size()) + 8192);
}

TEST_F(PageCacheSourceTest, pinned_batches_are_read_once_and_told_apart) {
    PageCacheSource source = this->source(options(3 * all() / 4096, 5));
    const std::int64_t at_opening = source.counts().bytes_read;
    EXPECT_GT(at_opening, 0);
    EXPECT_EQ(source.counts().bytes_taken, 0);
    for (int i = 0; i < 3; ++i) {
        source.begin({std::span(order_).first(5), {}, file_.tiers()});
        for (std::int64_t batch = 0; batch < 5; ++batch) {
            source.take(batch);
            source.give_back(batch);
        }
    }
    EXPECT_EQ(source.counts().bytes_read, at_opening);
    EXPECT_EQ(source.counts().hit_rate(), 1);
}

TEST_F(PageCacheSourceTest, a_damaged_batch_is_refused_by_name_unless_nobody_wants_to_know) {
    const BatchRecord& record = file_.tables().batches[3];
    change_byte(record.offset + record.tier_begin[1] + 1, 0x10);
    const auto taken = [&](Verify verify) -> std::string {
        PageCacheOptions how = options(2 * rig_.bytes.size() / 4096);
        how.verify = verify;
        PageCacheSource source = this->source(how);
        source.begin({order_, {}, file_.tiers()});
        for (const std::int64_t batch : order_) {
            try {
                source.take(batch);
            } catch (const Error& error) {
                return std::to_string(batch) + ": " + error.what();
            }
            source.give_back(batch);
        }
        return "";
    };
    for (const Verify verify : {Verify::first, Verify::always}) {
        EXPECT_NE(taken(verify).find("3: "), std::string::npos);
        EXPECT_NE(taken(verify).find("batch 3 is damaged: the checksum of its tier 1"), std::string::npos);
    }
    EXPECT_EQ(taken(Verify::never), "");
}

TEST_F(PageCacheSourceTest, one_that_is_too_small_says_so) {
    EXPECT_THROW(source(options(1)), Error);
    EXPECT_THROW(source(options(file_.largest_batch() / 4096 + 2, 10)), Error);
}

}  // namespace
}  // namespace penstock::hmatrix
