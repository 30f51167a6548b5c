// The conformance kit of the Device contract: every device, emulated or real, passes the same tests.
//
// Include it in one source file of a test program, then
//     INSTANTIATE_TEST_SUITE_P(Host, DeviceSuite, testing::Values(DeviceCase{"host", make}));
// A case is skipped if its `make` returns nullptr and sets `why`. Every guarantee has a negative control: a change that
// the test must notice. In the order of the tests, a device
//   1. knows its memory: kind, extent, alignment, how much there is, and what is not its own;
//   2. brings the same bytes there and back;
//   3. runs the work of a stream in order, and that of two streams where an event or copy_after() says so;
//   4. moves batches of pieces without touching what is beside them;
//   5. stamps patterns, and finds one wrong byte of them;
//   6. pins host memory between register_host() and unregister_host().
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/device.hpp"
#include "penstock/stamp.hpp"
#include "support/sanitized.hpp"

namespace penstock::conformance {

struct DeviceCase {
    std::string name;
    std::function<std::shared_ptr<Device>(std::string& why)> make;
    friend std::ostream& operator<<(std::ostream& out, const DeviceCase& device_case) {
        return out << device_case.name;
    }
};

inline std::string case_name(const testing::TestParamInfo<DeviceCase>& info) { return info.param.name; }

// Device memory for the duration of a test.
class Memory {
  public:
    Memory(std::shared_ptr<Device> device, MemoryKind kind, std::uint64_t bytes)
        : device_(std::move(device)), kind_(kind), bytes_(bytes), data_(device_->allocate(kind, bytes)) {}
    ~Memory() { device_->release(kind_, data_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    unsigned char* data() const { return static_cast<unsigned char*>(data_); }
    std::uint64_t bytes() const { return bytes_; }

  private:
    std::shared_ptr<Device> device_;
    MemoryKind kind_;
    std::uint64_t bytes_;
    void* data_;
};

class DeviceSuite : public testing::TestWithParam<DeviceCase> {
  protected:
    void SetUp() override {
        std::string why = "no reason given";
        device_ = GetParam().make(why);
        if (!device_) GTEST_SKIP() << GetParam().name << ": " << why;
        device_->enter_thread();
        stream_ = device_->make_stream();
    }

    Memory memory(MemoryKind kind, std::uint64_t bytes) { return Memory(device_, kind, bytes); }

    std::vector<unsigned char> to_host(const unsigned char* device_memory, std::uint64_t bytes) {
        const Memory pinned(device_, MemoryKind::pinned, bytes);
        stream_->copy(CopyDirection::to_host, pinned.data(), device_memory, bytes);
        stream_->synchronize();
        return {pinned.data(), pinned.data() + bytes};
    }

    void to_device(unsigned char* device_memory, const std::vector<unsigned char>& bytes) {
        const Memory pinned(device_, MemoryKind::pinned, bytes.size());
        std::memcpy(pinned.data(), bytes.data(), bytes.size());
        stream_->copy(CopyDirection::to_device, device_memory, pinned.data(), bytes.size());
        stream_->synchronize();
    }

    static std::vector<unsigned char> random_bytes(std::uint64_t bytes, std::uint64_t seed) {
        std::vector<unsigned char> out(bytes);
        for (std::uint64_t i = 0; i < bytes; ++i) out[i] = stamp_byte(seed, i);
        return out;
    }

    std::shared_ptr<Device> device_;
    std::unique_ptr<Stream> stream_;
};

TEST_P(DeviceSuite, says_what_it_is) {
    const DeviceInfo info = device_->info();
    EXPECT_EQ(info.name, device_->name());
    EXPECT_FALSE(info.model.empty());
    EXPECT_GT(info.total_bytes, 0u);
    EXPECT_LE(info.free_bytes, info.total_bytes);
}

TEST_P(DeviceSuite, knows_the_kind_and_extent_of_what_it_allocated) {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed}) {
        const Memory block = memory(kind, 3 * 65536 + 17);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 4096, 0u) << to_string(kind);
        for (const std::uint64_t inside : {std::uint64_t{0}, std::uint64_t{70001}, block.bytes() - 1}) {
            const PointerInfo info = device_->pointer_info(block.data() + inside);
            ASSERT_TRUE(info.known) << to_string(kind) << " at " << inside;
            EXPECT_EQ(info.kind, kind);
            if (info.bytes == 0) continue;  // the device does not know the extent of this kind
            const auto* base = static_cast<const unsigned char*>(info.base);
            EXPECT_LE(base, block.data());
            EXPECT_GE(base + info.bytes, block.data() + block.bytes());
        }
    }
}

TEST_P(DeviceSuite, does_not_claim_foreign_or_released_memory) {
    std::vector<unsigned char> foreign(4096);
    const PointerInfo info = device_->pointer_info(foreign.data());
    EXPECT_TRUE(!info.known || info.kind == MemoryKind::system);
    void* released = device_->allocate(MemoryKind::device, 1 << 20);
    device_->release(MemoryKind::device, released);
    EXPECT_FALSE(device_->pointer_info(released).known);
}

TEST_P(DeviceSuite, plain_host_memory_is_aligned_and_usable) {
    const Memory plain = memory(MemoryKind::system, 12345);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(plain.data()) % 4096, 0u);
    std::memset(plain.data(), 7, plain.bytes());
    const PointerInfo info = device_->pointer_info(plain.data());
    EXPECT_TRUE(!info.known || info.kind == MemoryKind::system);
}

TEST_P(DeviceSuite, too_much_memory_is_an_out_of_memory_error_that_names_kind_and_size) {
    const std::uint64_t too_much = device_->info().total_bytes + (1u << 20);
    try {
        device_->release(MemoryKind::device, device_->allocate(MemoryKind::device, too_much));
        FAIL() << "allocated more than there is";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        EXPECT_NE(std::string(error.what()).find("device"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find(std::to_string(too_much)), std::string::npos) << error.what();
    }
    memory(MemoryKind::device, 4096);  // a failed allocation leaves the device usable
}

TEST_P(DeviceSuite, released_memory_comes_back) {
    const std::uint64_t half = device_->info().free_bytes / 2 + (1u << 20);
    for (int i = 0; i < 4; ++i) memory(MemoryKind::device, half);  // twice as much would not fit
}

TEST_P(DeviceSuite, a_round_trip_brings_the_same_bytes) {
    for (const std::uint64_t bytes : {1u, 13u, 4096u, 65536u, 65537u, 1u << 20, (4u << 20) + 3}) {
        const Memory block = memory(MemoryKind::device, bytes);
        const auto expected = random_bytes(bytes, bytes);
        to_device(block.data(), expected);
        EXPECT_EQ(to_host(block.data(), bytes), expected) << bytes;
    }
}

TEST_P(DeviceSuite, work_of_one_stream_runs_in_order) {
    const std::uint64_t bytes = 1 << 20;
    const Memory block = memory(MemoryKind::device, bytes);
    const Memory back = memory(MemoryKind::pinned, bytes);
    for (int round = 0; round < 8; ++round) {
        stream_->fill(block.data(), bytes, round);
        stream_->copy(CopyDirection::to_host, back.data(), block.data(), bytes);
        stream_->fill(block.data(), bytes, 255);  // must not overtake the copy
        stream_->synchronize();
        for (const std::uint64_t at : {std::uint64_t{0}, bytes / 2, bytes - 1}) ASSERT_EQ(back.data()[at], round);
    }
}

// Little work, and so much that the caller has given up looking for its end by itself.
TEST_P(DeviceSuite, what_is_awaited_soon_is_done) {
    for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{4096}, std::uint64_t{64} << 20}) {
        const Memory block = memory(MemoryKind::device, bytes), back = memory(MemoryKind::pinned, bytes);
        std::memset(back.data(), 255, bytes);
        for (int round = 0; round < test::rounds(50); ++round) {
            stream_->fill(block.data(), bytes, round);
            stream_->copy(CopyDirection::to_host, back.data(), block.data(), bytes);
            stream_->synchronize_soon();
            for (const std::uint64_t at : {std::uint64_t{0}, bytes / 2, bytes - 1}) ASSERT_EQ(back.data()[at], round);
        }
    }
}

// A stream of ours stands for one that another library made.
TEST_P(DeviceSuite, a_copy_after_the_work_of_another_stream_overwrites_it_and_is_done) {
    const std::uint64_t bytes = 64 << 20;
    const Memory block = memory(MemoryKind::device, bytes);
    const auto other = device_->make_stream();
    const auto native = reinterpret_cast<std::uintptr_t>(other->native_handle());
    for (const std::uint64_t few : {std::uint64_t{64}, std::uint64_t{4096}, std::uint64_t{65536}}) {
        for (int round = 0; round < 8; ++round) {
            const auto expected = random_bytes(few, few + static_cast<std::uint64_t>(round));
            other->fill(block.data(), bytes, 100 + round);
            stream_->copy_after(native, {block.data() + bytes - few, expected.data(), few});
            ASSERT_EQ(to_host(block.data() + bytes - few, few), expected);
            ASSERT_EQ(to_host(block.data() + bytes - few - 1, 1).at(0), 100 + round);
        }
    }
}

TEST_P(DeviceSuite, an_event_orders_two_streams) {
    const std::uint64_t bytes = 1 << 20;
    const Memory first = memory(MemoryKind::device, bytes), there = memory(MemoryKind::pinned, bytes);
    const Memory back = memory(MemoryKind::pinned, bytes);
    const auto other = device_->make_stream();
    const auto event = device_->make_event();
    for (int round = 0; round < 8; ++round) {
        std::memset(there.data(), round + 1, bytes);
        stream_->copy(CopyDirection::to_device, first.data(), there.data(), bytes);
        stream_->record(*event);
        other->wait(*event);
        other->copy(CopyDirection::to_host, back.data(), first.data(), bytes);
        other->synchronize();
        for (const std::uint64_t at : {std::uint64_t{0}, bytes / 2, bytes - 1}) ASSERT_EQ(back.data()[at], round + 1);
    }
}

TEST_P(DeviceSuite, an_event_never_recorded_is_done) {
    const auto event = device_->make_event();
    EXPECT_TRUE(event->done());
    EXPECT_TRUE(event->wait(Deadline::now()));
    stream_->wait(*event);
    stream_->synchronize();
}

TEST_P(DeviceSuite, an_event_can_be_recorded_again_and_waited_for) {
    const std::uint64_t bytes = 4 << 20;
    const Memory block = memory(MemoryKind::device, bytes), pinned = memory(MemoryKind::pinned, bytes);
    const auto event = device_->make_event();
    for (int round = 0; round < 16; ++round) {
        std::memset(pinned.data(), round, bytes);
        stream_->copy(CopyDirection::to_device, block.data(), pinned.data(), bytes);
        stream_->record(*event);
        EXPECT_TRUE(event->wait(Deadline::never()));
        EXPECT_TRUE(event->done());
    }
    EXPECT_EQ(to_host(block.data(), bytes)[bytes - 1], 15);
}

TEST_P(DeviceSuite, an_event_may_be_destroyed_while_a_stream_waits_for_it) {
    const std::uint64_t bytes = 4 << 20;
    const Memory block = memory(MemoryKind::device, bytes), pinned = memory(MemoryKind::pinned, bytes);
    const auto other = device_->make_stream();
    {
        const auto event = device_->make_event();
        stream_->copy(CopyDirection::to_device, block.data(), pinned.data(), bytes);
        stream_->record(*event);
        other->wait(*event);
    }
    other->synchronize();
    stream_->synchronize();
}

TEST_P(DeviceSuite, a_stream_finishes_its_work_before_it_is_destroyed) {
    const std::uint64_t bytes = 4 << 20;
    const Memory block = memory(MemoryKind::device, bytes), back = memory(MemoryKind::pinned, bytes);
    std::memset(back.data(), 0, bytes);
    {
        const auto other = device_->make_stream();
        other->fill(block.data(), bytes, 90);
        other->copy(CopyDirection::to_host, back.data(), block.data(), bytes);
    }
    EXPECT_EQ(back.data()[bytes - 1], 90);
}

// Random pieces between guard bytes, compared with a reference that the host computes.
struct BatchTrial {
    std::uint64_t largest_piece;
    int pieces;
    bool aligned;  // to 16 bytes, on both sides
    std::uint64_t slot_bytes() const { return align_up(largest_piece + 64, 64); }
};

inline std::vector<CopyPiece> random_pieces(const BatchTrial& trial, std::mt19937_64& random,
                                            unsigned char* destination, const unsigned char* source) {
    std::vector<CopyPiece> pieces;
    for (int i = 0; i < trial.pieces; ++i) {
        const std::uint64_t slot = static_cast<std::uint64_t>(i) * trial.slot_bytes();
        std::uint64_t skip_to = random() % 32, skip_from = random() % 32, bytes = random() % (trial.largest_piece + 1);
        if (trial.aligned) skip_to = skip_from = 16, bytes = align_up(bytes, 16);
        pieces.push_back({destination + slot + skip_to, source + slot + skip_from, bytes});
    }
    return pieces;
}

TEST_P(DeviceSuite, a_batch_moves_every_piece_and_nothing_beside_it) {
    const BatchTrial trials[] = {{64, 300, false},   {4096, 200, false}, {4096, 512, true},
                                 {70000, 20, false}, {600000, 5, false}, {5000, 1, false}};
    std::mt19937_64 random(7);
    for (const BatchTrial& trial : trials) {
        const std::uint64_t bytes = trial.slot_bytes() * static_cast<std::uint64_t>(trial.pieces);
        const Memory device = memory(MemoryKind::device, bytes), pinned = memory(MemoryKind::pinned, bytes);
        for (const CopyDirection direction : {CopyDirection::to_device, CopyDirection::to_host}) {
            const auto source = random_bytes(bytes, random());
            std::vector<unsigned char> expected(bytes, 0xA5);
            const bool up = direction == CopyDirection::to_device;
            to_device(device.data(), up ? expected : source);
            std::memcpy(pinned.data(), up ? source.data() : expected.data(), bytes);
            unsigned char* to = up ? device.data() : pinned.data();
            const unsigned char* from = up ? pinned.data() : device.data();
            auto pieces = random_pieces(trial, random, to, from);
            for (const CopyPiece& piece : pieces) {
                const auto at = static_cast<const unsigned char*>(piece.destination) - to;
                const auto out = static_cast<const unsigned char*>(piece.source) - from;
                std::memcpy(expected.data() + at, source.data() + out, piece.bytes);
            }
            stream_->copy_batch(direction, pieces);
            for (CopyPiece& piece : pieces) piece = {};  // the caller may reuse them after the call
            stream_->synchronize();
            const auto got = up ? to_host(device.data(), bytes) : std::vector(pinned.data(), pinned.data() + bytes);
            ASSERT_EQ(got == expected, true) << trial.largest_piece << (up ? " up" : " down");
        }
    }
}

TEST_P(DeviceSuite, many_batches_in_flight_keep_their_own_pieces) {
    constexpr std::uint64_t kPiece = 512, kPieces = 64, kBatches = 40;
    const std::uint64_t bytes = kPiece * kPieces * kBatches;
    const Memory device = memory(MemoryKind::device, bytes), pinned = memory(MemoryKind::pinned, bytes);
    const auto expected = random_bytes(bytes, 3);
    std::memcpy(pinned.data(), expected.data(), bytes);
    std::vector<CopyPiece> pieces(kPieces);
    for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
        for (std::uint64_t i = 0; i < kPieces; ++i) {
            const std::uint64_t at = (i * kBatches + batch) * kPiece;
            pieces[i] = {device.data() + at, pinned.data() + at, kPiece};
        }
        stream_->copy_batch(CopyDirection::to_device, pieces);
    }
    EXPECT_EQ(to_host(device.data(), bytes), expected);
}

TEST_P(DeviceSuite, an_empty_batch_does_nothing) {
    stream_->copy_batch(CopyDirection::to_device, {});
    stream_->synchronize();
}

struct StampTrial {
    std::uint64_t bytes, file_offset, memory_skew;
};

inline const std::vector<StampTrial>& stamp_trials() {
    static const std::vector<StampTrial> trials = {{1, 0, 0},
                                                   {7, 1, 3},
                                                   {8, 0, 0},
                                                   {8, 4, 1},
                                                   {100, 3, 0},
                                                   {4096, 4096, 0},
                                                   {4099, 12345, 5},
                                                   {65536, 8, 8},
                                                   {1 << 20, 1 << 30, 0},
                                                   {(1 << 20) + 5, 77, 13},
                                                   {3 << 20, (1ull << 40) + 6, 2}};
    return trials;
}

TEST_P(DeviceSuite, stamps_the_pattern_at_any_offset_and_alignment) {
    for (const StampTrial& trial : stamp_trials()) {
        const Memory block = memory(MemoryKind::device, trial.bytes + 64);
        stream_->fill(block.data(), block.bytes(), 0x5A);
        stream_->stamp(block.data() + trial.memory_skew, trial.bytes, trial.file_offset, 42);
        std::vector<unsigned char> expected(block.bytes(), 0x5A);
        for (std::uint64_t i = 0; i < trial.bytes; ++i) {
            expected[trial.memory_skew + i] = stamp_byte(42, trial.file_offset + i);
        }
        EXPECT_EQ(to_host(block.data(), block.bytes()) == expected, true) << trial.bytes << "@" << trial.file_offset;
        const StampCheck check =
            stream_->verify_stamp(block.data() + trial.memory_skew, trial.bytes, trial.file_offset, 42);
        EXPECT_EQ(check.bad_bytes, 0u) << trial.bytes << "@" << trial.file_offset;
    }
}

// The negative control of the check: it finds one wrong byte anywhere, and its offset.
TEST_P(DeviceSuite, one_corrupt_byte_is_found_at_its_offset) {
    for (const StampTrial& trial : stamp_trials()) {
        const Memory block = memory(MemoryKind::device, trial.bytes + 64);
        unsigned char* start = block.data() + trial.memory_skew;
        const std::uint64_t end = trial.file_offset + trial.bytes;
        for (const std::uint64_t at : {std::uint64_t{0}, trial.bytes / 3, trial.bytes / 2, trial.bytes - 1}) {
            stream_->stamp(start, trial.bytes, trial.file_offset, 9);
            stream_->synchronize();
            const std::uint64_t offset = trial.file_offset + at, word = align_down(offset, 8);
            to_device(start + at, {static_cast<unsigned char>(stamp_byte(9, offset) ^ 1)});
            const StampCheck check = stream_->verify_stamp(start, trial.bytes, trial.file_offset, 9);
            const bool whole = word >= trial.file_offset && word + 8 <= end;
            EXPECT_EQ(check.bad_bytes, whole ? 8u : 1u) << trial.bytes << "@" << trial.file_offset << " byte " << at;
            EXPECT_EQ(check.first_bad_offset, whole ? word : offset) << trial.bytes << " byte " << at;
        }
    }
}

TEST_P(DeviceSuite, shifted_stale_or_missing_data_fails_the_check) {
    const std::uint64_t bytes = 1 << 20;
    const Memory block = memory(MemoryKind::device, bytes);
    stream_->stamp(block.data(), bytes, 0, 1);
    EXPECT_EQ(stream_->verify_stamp(block.data(), bytes, 0, 1).bad_bytes, 0u);
    EXPECT_EQ(stream_->verify_stamp(block.data(), bytes, 8, 1).bad_bytes, bytes) << "shifted by one word";
    EXPECT_EQ(stream_->verify_stamp(block.data(), bytes, 0, 2).bad_bytes, bytes) << "of another seed";
    stream_->fill(block.data() + bytes / 2, 4096, 0);
    const StampCheck check = stream_->verify_stamp(block.data(), bytes, 0, 1);
    EXPECT_EQ(check.bad_bytes, 4096u);
    EXPECT_EQ(check.first_bad_offset, bytes / 2);
}

TEST_P(DeviceSuite, registered_host_memory_is_pinned_until_it_is_unregistered) {
    const std::uint64_t bytes = 1 << 20;
    const Memory plain = memory(MemoryKind::system, 2 * bytes), block = memory(MemoryKind::device, bytes);
    std::vector<unsigned char> foreign(2 * bytes);
    unsigned char* start = foreign.data() + (65536 - reinterpret_cast<std::uintptr_t>(foreign.data()) % 65536);
    std::string why;
    if (!device_->register_host(start, bytes, false, why)) {
        EXPECT_FALSE(why.empty());
        EXPECT_FALSE(device_->info().registers_mappings) << why;
        return;
    }
    EXPECT_TRUE(device_->pointer_info(start + 5).known);
    EXPECT_EQ(device_->pointer_info(start + 5).kind, MemoryKind::pinned);
    std::memset(start, 33, bytes);
    stream_->copy(CopyDirection::to_device, block.data(), start, bytes);
    stream_->synchronize();
    EXPECT_EQ(to_host(block.data(), bytes)[bytes - 1], 33);
    std::string again;
    EXPECT_FALSE(device_->register_host(start, bytes, false, again)) << "registered twice";
    EXPECT_FALSE(again.empty());
    device_->unregister_host(start);
    const PointerInfo info = device_->pointer_info(start + 5);
    EXPECT_TRUE(!info.known || info.kind == MemoryKind::system);
    stream_->fill(block.data(), bytes, 1);  // a refusal leaves no error behind
    stream_->synchronize();
}

}  // namespace penstock::conformance
