// Storage that fails, returns wrong bytes or shrinks while the cache reads it: each gives an error that names the
// damage, and the next sweep is right again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <random>

#include "hmatrix/multiply/host_product.hpp"
#include "hmatrix/multiply/source/cached_source.hpp"
#include "hmatrix/multiply/stored_matrix.hpp"
#include "hmatrix/multiply/stored_rig.hpp"
#include "os/system.hpp"
#include "penstock/error.hpp"
#include "support/decorators/fault.hpp"

namespace penstock::hmatrix {
namespace {

// While `bad` is set, reads that touch bytes `from` to `to` of the file fail.
class BadReads final : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (bad && offset + bytes > from && offset < to) return errno = EIO, -1;
        return System::pread(fd, memory, bytes, offset);
    }
    std::atomic<bool> bad{false};
    std::atomic<std::uint64_t> from{0}, to{UINT64_MAX};  // atomic: the test sets them while reads ahead run
};

class SourceFaults : public testing::Test {
  protected:
    static Context context_with(os::System* system) {
        return host_context({}, {.system = system});
    }
    CacheOptions small_cache() const {
        CacheOptions options;
        options.cache_bytes = 3 * (file_.largest_batch() + 8192);
        options.path = PathKind::buffered;
        return options;
    }
    void change_byte(std::int64_t offset) {
        std::fstream file(rig_.name, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(offset);
        file.put(static_cast<char>(rig_.bytes[offset] ^ 0x20));
    }
    void restore() {
        // Written in place, because the file is open elsewhere.
        std::ofstream file(rig_.name, std::ios::binary | std::ios::in);
        file.write(reinterpret_cast<const char*>(rig_.bytes.data()), static_cast<std::streamsize>(rig_.bytes.size()));
    }
    // Returns the error of a product; its code is ok if the product succeeds.
    ErrorInfo product(StoredMatrix& matrix) {
        try {
            matrix.apply(x_.data(), y_.data(), 1, 0);
        } catch (const Error& error) {
            return error.info();
        }
        return {};
    }
    StoredRig rig_{Encoding::tiers, 400, 10};
    MatrixFile file_ = rig_.open();
    std::vector<double> x_ = random_vector(400, 1);
    std::vector<double> y_ = std::vector<double>(400);
};

TEST_F(SourceFaults, a_read_that_fails_is_the_error_of_its_product_and_the_next_one_is_right) {
    BadReads system;
    const Context context = context_with(&system);
    const MatrixFile file = MatrixFile::open(context, rig_.workers, rig_.name);
    for (const std::int64_t batch : {0, 3, 7}) {
        for (const int kind : {0, 1, 2}) {
            const bool zig_zag = kind == 1;
            CacheOptions options = small_cache();
            // Two batches a transfer.
            if (kind == 2) options.cache_bytes = 8 * ((file_.largest_batch() + 4095) / 4096 * 4096);
            CachedSource source(context, rig_.workers, file, options);
            ASSERT_EQ(source.slots() >= 8, kind == 2);
            HostProduct matrix_product(file, rig_.workers);
            StoredMatrix matrix(file, source, matrix_product, {0, zig_zag});
            ASSERT_TRUE(product(matrix).ok());
            const std::vector<double> right = y_;
            system.from = static_cast<std::uint64_t>(file.tables().batches[batch].offset);
            system.to = system.from + static_cast<std::uint64_t>(file.tables().batches[batch].bytes);
            system.bad = true;
            ErrorInfo error = product(matrix);
            const int tries = kind == 2 ? 4 : 1;  // the damaged batch may still be in the cache
            for (int i = 0; error.ok() && i < tries; ++i) error = product(matrix);
            EXPECT_EQ(error.code, ErrorCode::io_error) << error.message();
            EXPECT_EQ(error.file, rig_.name);
            system.bad = false;
            // The source repeats reads ahead that failed in the meantime.
            ErrorInfo next = product(matrix);
            if (!next.ok()) next = product(matrix);
            EXPECT_TRUE(next.ok()) << next.message();
            EXPECT_LE(difference(y_, right), 1e-14);
        }
    }
}

TEST_F(SourceFaults, what_is_pinned_and_cannot_be_read_fails_at_opening) {
    BadReads system;
    const Context context = context_with(&system);
    const MatrixFile file = MatrixFile::open(context, rig_.workers, rig_.name);
    system.from = static_cast<std::uint64_t>(file.tables().batches[2].offset);
    system.bad = true;
    EXPECT_THROW(CachedSource(context, rig_.workers, file, {.path = PathKind::buffered}), Error);
}

TEST_F(SourceFaults, short_counts_and_interruptions_do_not_show) {
    path::FaultOptions faults;
    faults.short_count = faults.interrupted = faults.again = 0.2;
    const auto failing = [&](std::unique_ptr<Path> path) { return path::faulty(std::move(path), faults); };
    const Context context = host_context({}, {.wrap_path = failing});
    const MatrixFile file = MatrixFile::open(context, rig_.workers, rig_.name);
    CachedSource source(context, rig_.workers, file, small_cache());
    HostProduct matrix_product(file, rig_.workers);
    StoredMatrix matrix(file, source, matrix_product, {});
    for (int sweep = 0; sweep < 3; ++sweep) ASSERT_TRUE(product(matrix).ok());
    EXPECT_LE(difference(y_, rig_.product(file, x_, file.tiers())), 1e-6);
}

TEST_F(SourceFaults, a_damaged_batch_is_named_with_its_tier_each_time_and_not_otherwise) {
    for (const bool pinned : {false, true}) {
        for (const int tier : {0, 2}) {
            const BatchRecord& record = file_.tables().batches[5];
            const std::int64_t at = record.offset + record.tier_begin[tier] + record.tier_bytes[tier] / 2;
            change_byte(at);
            const std::string wanted = "batch 5 is damaged: the checksum of its tier " + std::to_string(tier);
            if (pinned) {
                try {
                    const CachedSource source(rig_.context, rig_.workers, file_, {});
                    FAIL() << "a damaged batch was pinned";
                } catch (const Error& error) {
                    EXPECT_NE(error.info().cause.find(wanted), std::string::npos) << error.what();
                }
            } else {
                CachedSource source(rig_.context, rig_.workers, file_, small_cache());
                HostProduct matrix_product(file_, rig_.workers);
                StoredMatrix matrix(file_, source, matrix_product, {});
                for (int sweep = 0; sweep < 3; ++sweep) {  // the cache must not keep a batch that failed its check
                    const ErrorInfo error = product(matrix);
                    EXPECT_EQ(error.code, ErrorCode::io_error);
                    EXPECT_NE(error.cause.find(wanted), std::string::npos) << error.message();
                    EXPECT_EQ(error.file, rig_.name);
                    EXPECT_EQ(static_cast<std::int64_t>(error.offset_bytes), record.offset + record.tier_begin[tier]);
                }
                CachedSource careless(rig_.context, rig_.workers, file_, [&] {
                    CacheOptions options = small_cache();
                    options.verify = Verify::never;
                    return options;
                }());
                HostProduct wrong_product(file_, rig_.workers);
                StoredMatrix wrong(file_, careless, wrong_product, {});
                EXPECT_TRUE(product(wrong).ok());
                EXPECT_GT(difference(y_, rig_.product(file_, x_, file_.tiers())), 0) << "the damage is real";
                restore();
                EXPECT_TRUE(product(matrix).ok()) << "mended, and read again";
            }
            restore();
        }
    }
}

TEST_F(SourceFaults, what_is_damaged_after_its_first_read_is_seen_by_those_who_always_look) {
    for (const Verify verify : {Verify::first, Verify::always}) {
        CacheOptions options = small_cache();
        options.verify = verify;
        CachedSource source(rig_.context, rig_.workers, file_, options);
        HostProduct matrix_product(file_, rig_.workers);
        StoredMatrix matrix(file_, source, matrix_product, {});
        ASSERT_TRUE(product(matrix).ok());
        change_byte(file_.tables().batches[4].offset + 5);
        const ErrorInfo error = product(matrix);
        EXPECT_EQ(error.code, verify == Verify::always ? ErrorCode::io_error : ErrorCode::ok) << error.message();
        restore();
    }
}

TEST_F(SourceFaults, a_file_cut_short_while_it_is_open_is_an_error_not_old_bytes) {
    CachedSource source(rig_.context, rig_.workers, file_, small_cache());
    HostProduct matrix_product(file_, rig_.workers);
    StoredMatrix matrix(file_, source, matrix_product, {});
    ASSERT_TRUE(product(matrix).ok());
    std::filesystem::resize_file(rig_.name, file_.tables().batches[7].offset + 100);
    const ErrorInfo error = product(matrix);
    EXPECT_EQ(error.code, ErrorCode::end_of_file) << error.message();
    EXPECT_EQ(error.file, rig_.name);
}

// One transfer reads several batches. The caller takes them as announced, in part, or in another order, and reads fail
// in between. Every batch handed out must be right.
TEST_F(SourceFaults, whatever_order_comes_and_whatever_fails_batches_hold_their_own_bytes) {
    const StoredRig rig(Encoding::tiers, 900, 60);
    BadReads system;
    const Context context = context_with(&system);
    const MatrixFile file = MatrixFile::open(context, rig_.workers, rig.name);
    const std::int64_t batches = file.head().batches;
    std::mt19937_64 random(5);
    const auto below = [&](std::int64_t bound) { return static_cast<std::int64_t>(random() % bound); };
    std::int64_t errors = 0, taken = 0;
    for (int run = 0; run < 40; ++run) {
        CacheOptions options;
        options.path = PathKind::buffered;
        options.read_ahead = below(2) == 0 ? -1 : static_cast<int>(below(70));
        options.cache_bytes = (2 + below(50)) * (file.largest_batch() + 4096);
        system.bad = false;
        CachedSource source(context, rig_.workers, file, options);
        for (int sweep = 0; sweep < 6; ++sweep) {
            std::vector<std::int64_t> now(batches);
            std::iota(now.begin(), now.end(), 0);
            std::vector<std::int64_t> next = now;
            if (below(3) == 0) std::reverse(next.begin(), next.end());
            if (below(3) == 0) std::shuffle(now.begin(), now.end(), random);
            if (below(3) == 0) next.resize(below(batches));
            const BatchRecord& broken = file.tables().batches[below(batches)];
            system.from = static_cast<std::uint64_t>(broken.offset);
            system.to = static_cast<std::uint64_t>(broken.offset + broken.bytes);
            system.bad = below(3) == 0;
            const bool foreseen = below(4) != 0;
            const int tiers = 1 + static_cast<int>(below(file.tiers()));
            try {
                source.begin({now, next, tiers});
                for (std::int64_t left = 1 + below(2 * batches); const std::int64_t one : now) {
                    if (left-- == 0) break;  // this sweep ends early
                    const std::int64_t batch = foreseen ? one : below(batches);
                    ASSERT_TRUE(rig.holds(source.take(batch), file.tables().batches[batch], tiers)) << "run " << run;
                    source.give_back(batch);
                    ++taken;
                }
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::io_error) << error.what();
                ++errors;
            }
        }
    }
    EXPECT_GT(errors, 10);
    EXPECT_GT(taken, 5000);
}

}  // namespace
}  // namespace penstock::hmatrix
