// Tests of what is asked for early: of moves in order, back and forth, and at random.
#include "preload/ask/sequence.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace preload {
namespace {

constexpr Limits kLimits{.least_bytes = 8 * kMiB, .step_bytes = 4 * kMiB, .window_bytes = 32 * kMiB};

// A file in memory of which a Sequence says what to do: bytes in the page cache, or written back.
class ModelFile {
public:
    explicit ModelFile(Direction direction) : sequence_(direction), asked_(256) {}

    void move(std::int64_t offset, std::int64_t bytes) {
        const bool looks = is_placed(moved_, bytes);
        moved_ += static_cast<std::uint64_t>(bytes);
        if (looks) take(sequence_.moved(span_to(offset + bytes, bytes), kLimits), offset + bytes);
    }
    // As read() and write() do, which tell no offset.
    void go_on(std::int64_t bytes) {
        move(position_, bytes);
        position_ += bytes;
    }
    void seek(std::int64_t by) { position_ += by; }
    std::int64_t asked_mib() const {
        std::int64_t sum = 0;
        for (const int times : asked_) sum += times != 0;
        return sum;
    }
    int times(std::int64_t mib) const { return asked_[static_cast<std::size_t>(mib)]; }
    std::int64_t farthest = 0;  // asked for beyond a move's end
    const Sequence& sequence() const { return sequence_; }

private:
    void take(Span span, std::int64_t end) {
        EXPECT_EQ(span.empty() ? 0 : span.offset % kMiB, 0);
        EXPECT_EQ(span.empty() ? 0 : span.bytes % kMiB, 0);
        for (std::int64_t at = span.offset; at < span.end(); at += kMiB) ++asked_[static_cast<std::size_t>(at / kMiB)];
        if (!span.empty()) farthest = std::max(farthest, span.end() - end);
    }

    Sequence sequence_;
    std::vector<int> asked_;
    std::int64_t position_ = 0;
    std::uint64_t moved_ = 0;
};

TEST(Sequence, writes_in_order_are_asked_for_once_and_never_before_they_are_made) {
    for (const std::int64_t record : {4096L, 65536L, 524288L, 8L * kMiB, 3L * kMiB + 17}) {
        ModelFile file(Direction::write);
        std::int64_t moved = 0;
        for (; moved + record <= 64 * kMiB; moved += record) file.go_on(record);
        EXPECT_GE(file.asked_mib(), (moved - record - kGatheredBytes) / kMiB / 4 * 4) << record;
        EXPECT_LE(file.farthest, 0) << record;
        for (int mib = 0; mib < 64; ++mib) EXPECT_LE(file.times(mib), 1) << record;
    }
}

TEST(Sequence, little_is_not_asked_for) {
    ModelFile file(Direction::write);
    file.move(0, 8 * kMiB - 65536);
    EXPECT_EQ(file.asked_mib(), 0);
    file.move(8 * kMiB - 65536, 65536);
    EXPECT_EQ(file.asked_mib(), 8);
}

TEST(Sequence, reads_are_asked_for_ahead_of_the_program_and_no_farther_than_the_window) {
    ModelFile file(Direction::read);
    for (int i = 0; i < 128; ++i) file.go_on(524288);
    EXPECT_GT(file.farthest, 24 * kMiB);
    EXPECT_LE(file.farthest, kLimits.window_bytes);
    EXPECT_GE(file.asked_mib(), 64 + 28 - 8);
    for (int mib = 0; mib < 96; ++mib) EXPECT_LE(file.times(mib), 1);
}

// gfortran writes a record's length before it, behind it, and seeks back to correct the first.
TEST(Sequence, records_of_fortran_are_in_order) {
    ModelFile file(Direction::write);
    for (int record = 0; record < 8; ++record) {
        file.go_on(4);
        file.go_on(8 * kMiB);
        file.seek(-8 * kMiB - 4);
        file.go_on(4);
        file.seek(8 * kMiB);
        file.go_on(8);
    }
    EXPECT_EQ(file.asked_mib(), 64);
    EXPECT_EQ(file.sequence().breaks(), 0u);
}

TEST(Sequence, small_calls_elsewhere_do_not_end_a_run) {
    ModelFile file(Direction::write);
    for (int i = 0; i < 32; ++i) {
        file.move(100 * kMiB + i * kMiB, kMiB);
        file.move(0, 512);  // a header that is kept up to date
    }
    EXPECT_EQ(file.asked_mib(), 32);
}

TEST(Sequence, large_calls_at_random_ask_for_nothing) {
    ModelFile file(Direction::read);
    std::mt19937_64 random(7);
    for (int i = 0; i < 1000; ++i) file.move(static_cast<std::int64_t>(random() % 200) * 9 * kMiB, 524288);
    EXPECT_EQ(file.asked_mib(), 0);
}

TEST(Sequence, a_jump_begins_a_run_at_its_new_place) {
    ModelFile file(Direction::write);
    for (int i = 0; i < 16; ++i) file.move(i * kMiB, kMiB);
    for (int i = 0; i < 16; ++i) file.move(128 * kMiB + i * kMiB, kMiB);
    EXPECT_EQ(file.asked_mib(), 32);
    EXPECT_EQ(file.times(127), 0);
}

// The offset may be another process's or another descriptor's to move: no answer is out of the file's numbers.
TEST(Sequence, places_that_make_no_sense_are_borne) {
    for (const Direction direction : {Direction::read, Direction::write}) {
        std::mt19937_64 random(11);
        Sequence sequence(direction);
        for (int i = 0; i < 100'000; ++i) {
            const auto bytes = static_cast<std::int64_t>(random() % (12 * kMiB));
            const std::int64_t end = static_cast<std::int64_t>(random() >> (random() % 2 == 0 ? 20 : 45));
            const Span span = sequence.moved(span_to(end, bytes), kLimits);
            ASSERT_GE(span.offset, 0);
            ASSERT_GE(span.bytes, 0);
        }
    }
}

}  // namespace
}  // namespace preload
