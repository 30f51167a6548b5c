// The part of the Device kit for packs: numbers that are cut out, transposed, converted and combined, compared with a
// reference of plain loops. Bytes between and around the items are compared too. Include it beside device_suite.hpp.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>

#include "conformance/device_suite.hpp"
#include "conformance/pack_reference.hpp"
#include "support/sanitized.hpp"

namespace penstock::conformance {

class PackSuite : public DeviceSuite {
  protected:
    // Packs on the device and by the reference, and compares all bytes.
    void expect_same(const PackSet& set, const std::string& what) {
        Bytes expected = set.destination;
        const Memory to = memory(MemoryKind::device, expected.size() + 1);
        const Memory from = memory(MemoryKind::device, set.source.size() + 1);
        to_device(to.data(), expected);
        to_device(from.data(), set.source);
        std::vector<Pack> placed;
        for (const ReferencePack& one : set.packs) {
            placed.push_back(one.at(to.data(), from.data()));
            one.run(expected, set.source);
        }
        stream_->pack(placed);
        std::fill(placed.begin(), placed.end(), Pack{});  // the caller may reuse them after the call
        const auto got = to_host(to.data(), expected.size());
        if (got != expected) {
            const auto differs = std::mismatch(got.begin(), got.end(), expected.begin());
            FAIL() << what << ": byte " << differs.first - got.begin() << " of " << got.size() << " is "
                   << int{*differs.first} << ", not " << int{*differs.second};
        }
        ASSERT_EQ(to_host(from.data(), set.source.size()) == set.source, true) << what << ": the source changed";
    }

    void expect_same(std::mt19937_64& random, const PackTrial& trial) {
        if (!HasFatalFailure()) expect_same(random_packs(random, trial), testing::PrintToString(trial));
    }

    // What one pack of contiguous numbers leaves in memory that held `old`.
    template <class From, class To>
    std::vector<To> packed(Pack pack, const std::vector<From>& numbers, std::vector<To> old) {
        const Memory to = memory(MemoryKind::device, old.size() * sizeof(To));
        const Memory from = memory(MemoryKind::device, numbers.size() * sizeof(From));
        to_device(to.data(), bytes_of_all(old));
        to_device(from.data(), bytes_of_all(numbers));
        pack.destination = to.data();
        pack.source = from.data();
        pack.dimensions = 1;
        pack.extents[0] = old.size();
        pack.destination_strides[0] = sizeof(To);
        pack.source_strides[0] = sizeof(From);
        stream_->pack(std::vector<Pack>{pack});
        const Bytes got = to_host(to.data(), old.size() * sizeof(To));
        std::memcpy(old.data(), got.data(), got.size());
        return old;
    }

    template <class Number>
    static Bytes bytes_of_all(const std::vector<Number>& numbers) {
        Bytes bytes(numbers.size() * sizeof(Number));
        std::memcpy(bytes.data(), numbers.data(), bytes.size());
        return bytes;
    }

    template <class To, class From>
    static std::vector<To> bits(const std::vector<From>& numbers) {
        std::vector<To> all;
        for (const From number : numbers) all.push_back(std::bit_cast<To>(number));
        return all;
    }
};

// A sanitizer sees a third of them on each kind of device, and others on each.
TEST_P(PackSuite, random_packs_are_what_plain_loops_make_of_them) {
    const std::string name = GetParam().name;
    std::mt19937_64 random(test::kSanitized ? std::accumulate(name.begin(), name.end(), 3u) : 3);
    const int part = test::kSanitized ? 3 : 1;
    for (const std::uint64_t alignment : {1u, 4u, 8u, 16u}) {
        for (const auto& [extent, dimensions, packs] :
             {std::tuple{4u, 6u, 12}, {9u, 4u, 6}, {70u, 2u, 6}, {5000u, 1u, 4}}) {
            each_conversion({.largest_extent = extent, .most_dimensions = dimensions, .alignment = alignment,
                             .packs = (packs + part - 1) / part},
                            [&](const PackTrial& trial) { expect_same(random, trial); });
            if (HasFatalFailure()) return;
        }
    }
}

// Sizes around the edges of tiles and blocks, in each order of three dimensions.
TEST_P(PackSuite, every_order_of_dimensions_is_transposed) {
    std::mt19937_64 random(5);
    for (const std::uint64_t extent : {2u, 3u, 31u, 33u, 65u}) {
        std::array<std::uint64_t, 3> order{0, 1, 2};
        do {
            PackSet set;
            ReferencePack one{.pack = {.to = PackNumber::float32, .dimensions = 3}};
            one.pack.extents = {extent, 5, 70 - extent};
            std::int64_t to = 4, from = 8;
            for (std::size_t d = 3; d-- > 0;) {
                one.pack.destination_strides[d] = to;
                to *= static_cast<std::int64_t>(one.pack.extents[d]);
                one.pack.source_strides[order[d]] = from;
                from *= static_cast<std::int64_t>(one.pack.extents[order[d]]) + 2;  // a halo
            }
            set.packs.push_back(one);
            set.destination.resize(static_cast<std::size_t>(to));
            set.source.resize(static_cast<std::size_t>(from));
            fill_numbers(random, set);
            expect_same(set, testing::PrintToString(order) + " of " + std::to_string(extent));
            if (HasFatalFailure()) return;
        } while (std::next_permutation(order.begin(), order.end()));
    }
}

TEST_P(PackSuite, dropped_bits_round_to_nearest_and_ties_to_even) {
    const auto kept = [](std::uint32_t bits) { return Pack{.to = PackNumber::float32, .from = PackNumber::float32,
                                                           .keep_bits = bits}; };
    const std::vector<std::uint32_t> numbers = {0x3F800000, 0x3F900000, 0x3FB00000, 0x3FB00001, 0x3FAFFFFF, 0x3FF00000,
                                                0xBF900000, 0x7F7FFFFF, 0x00000000, 0x80000000, 0x7F800000, 0x7F800001,
                                                0xFFFFFFFF, 0x00100000, 0x00300000};
    const std::vector<std::uint32_t> expected = {0x3F800000, 0x3F800000, 0x3FC00000, 0x3FC00000, 0x3FA00000, 0x40000000,
                                                 0xBF800000, 0x7F800000, 0x00000000, 0x80000000, 0x7F800000, 0x7F800001,
                                                 0xFFFFFFFF, 0x00000000, 0x00400000};
    EXPECT_EQ(packed(kept(2), numbers, std::vector<std::uint32_t>(numbers.size())), expected);
    EXPECT_EQ(packed(kept(23), numbers, std::vector<std::uint32_t>(numbers.size())), numbers) << "all bits";
    std::mt19937_64 random(7);
    for (std::uint32_t bits = 1; bits <= 52; ++bits) {
        for (const PackNumber to : {PackNumber::float32, PackNumber::float64}) {
            if (bits > mantissa_bits(to)) continue;
            PackSet set;
            place(random, {.alignment = 8}, set,
                  {.to = to, .keep_bits = bits, .dimensions = 1, .extents = {997, 0, 0, 0, 0, 0}});
            fill_numbers(random, set);
            expect_same(set, std::to_string(bits) + " bits");
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(PackSuite, doubles_become_floats_as_by_a_cast_on_the_cpu) {
    const std::vector<double> numbers = bits<double>(std::vector<std::uint64_t>{
        0x3FF0000010000000, 0x3FF0000030000000, 0x3FF0000010000001, 0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000,
        0x36A0000000000000, 0x3690000000000000, 0x3690000000000001, 0x8000000000000000, 0x7FF0000000000000,
        0x7FF0000000000001, 0xFFFC123456789ABC, 0xFFF4000020000000});
    const std::vector<std::uint32_t> expected = {0x3F800000, 0x3F800002, 0x3F800001, 0x7F7FFFFF, 0x7F800000,
                                                 0x00000001, 0x00000000, 0x00000001, 0x80000000, 0x7F800000,
                                                 0x7FC00000, 0xFFE091A2, 0xFFE00001};
    const Pack pack{.to = PackNumber::float32, .from = PackNumber::float64};
    EXPECT_EQ(packed(pack, numbers, std::vector<std::uint32_t>(numbers.size())), expected);
}

TEST_P(PackSuite, minimum_and_maximum_leave_out_nan_and_keep_what_is_equal) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
    const std::vector<double> numbers = {1, kNan, 3, kNan, -0.0, 0.0, -kInf, kInf};
    const std::vector<double> old = {2, 2, kNan, kNan, 0.0, -0.0, 5, 5};
    const auto combine = [&](PackOperation operation) {
        const Pack pack{.operation = operation};
        return bits<std::uint64_t>(packed(pack, numbers, old));
    };
    EXPECT_EQ(combine(PackOperation::minimum),
              bits<std::uint64_t>(std::vector<double>{1, 2, 3, kNan, 0.0, -0.0, -kInf, 5}));
    EXPECT_EQ(combine(PackOperation::maximum),
              bits<std::uint64_t>(std::vector<double>{2, 2, 3, kNan, 0.0, -0.0, 5, kInf}));
}

TEST_P(PackSuite, sums_are_rounded_once_more_and_every_nan_is_the_same) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double odd = std::bit_cast<double>(0xFFF0000000000007u), third = 1.0 / 3;
    const std::vector<double> numbers = {third, odd, -kInf, 1, 0.1};
    const std::vector<double> old = {1, 1, kInf, odd, 1e17};
    const Pack pack{.operation = PackOperation::add, .divisor = 0.1};
    volatile double quotient = third / 0.1;  // rounded before it is added
    const double none = std::bit_cast<double>(0x7FF8000000000000u);
    EXPECT_EQ(bits<std::uint64_t>(packed(pack, numbers, old)),
              bits<std::uint64_t>(std::vector<double>{1 + quotient, none, none, none, 1e17}));
    std::vector<double> exact, started;
    std::mt19937_64 random(11);
    for (int i = 0; i < 5000; ++i) {
        exact.push_back(static_cast<double>(random()) / 7);
        started.push_back(static_cast<double>(random()) / 3);
    }
    const std::vector<double> got = packed(pack, exact, started);
    for (std::size_t i = 0; i < got.size(); ++i) {
        quotient = exact[i] / 0.1;
        ASSERT_EQ(got[i], started[i] + quotient) << "number " << i << " has a quotient that was not rounded";
    }
}

TEST_P(PackSuite, integers_stay_exact_and_wrap) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::vector<std::int64_t> numbers = {kMost, -1, (1ll << 53) + 1, 16777217};
    const auto with = [](PackNumber to, PackOperation operation) {
        return Pack{.to = to, .from = PackNumber::int64, .operation = operation};
    };
    EXPECT_EQ(packed(with(PackNumber::int64, PackOperation::set), numbers, std::vector<std::int64_t>(4)), numbers);
    EXPECT_EQ(packed(with(PackNumber::int64, PackOperation::add), numbers, std::vector<std::int64_t>{1, 1, 1, 1}),
              (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), 0, (1ll << 53) + 2, 16777218}));
    EXPECT_EQ(packed(with(PackNumber::float32, PackOperation::set), numbers, std::vector<float>(4)),
              (std::vector<float>{9223372036854775808.0f, -1, 9007199254740992.0f, 16777216}));
}

// What a history writer does: sums in double over the steps, then the mean in the order of bytes of a classic file.
TEST_P(PackSuite, a_mean_over_steps_is_summed_in_place_and_written_once) {
    constexpr std::uint64_t kRows = 37, kColumns = 53, kHalo = 2, kSteps = 5;
    constexpr std::uint64_t kPitch = kColumns + 2 * kHalo, kField = (kRows + 2 * kHalo) * kPitch;
    const Memory field = memory(MemoryKind::device, 8 * kField);
    const Memory slot = memory(MemoryKind::device, 4 * kRows * kColumns);
    const Memory sums = memory(MemoryKind::device, 8 * kRows * kColumns);
    std::vector<double> expected(kRows * kColumns);
    std::mt19937_64 random(13);
    Pack in{.destination = sums.data(), .source = field.data() + 8 * (kHalo * kPitch + kHalo), .dimensions = 2};
    in.extents = {kRows, kColumns};
    in.destination_strides = {8, 8 * kRows};  // transposed
    in.source_strides = {8 * kPitch, 8};
    for (std::uint64_t step = 0; step < kSteps; ++step) {
        std::vector<double> numbers(kField);
        for (double& number : numbers) number = static_cast<double>(random() % 1000) / 8;
        to_device(field.data(), bytes_of_all(numbers));
        in.operation = step == 0 ? PackOperation::set : PackOperation::add;
        stream_->pack(std::vector<Pack>{in});
        for (std::uint64_t i = 0; i < kRows * kColumns; ++i) {
            expected[i] += numbers[(kHalo + i % kRows) * kPitch + kHalo + i / kRows];
        }
    }
    Pack out{.destination = slot.data(), .source = sums.data(), .to = PackNumber::float32, .swap = true,
             .dimensions = 1, .divisor = kSteps};
    out.extents[0] = kRows * kColumns;
    out.destination_strides[0] = 4;
    out.source_strides[0] = 8;
    stream_->pack(std::vector<Pack>{out});
    const Bytes got = to_host(slot.data(), slot.bytes());
    for (std::uint64_t i = 0; i < kRows * kColumns; ++i) {
        const auto mean = std::bit_cast<std::uint32_t>(static_cast<float>(expected[i] / kSteps));
        ASSERT_EQ(number_at<std::uint32_t>(got, static_cast<std::int64_t>(4 * i)), __builtin_bswap32(mean)) << i;
    }
}

TEST_P(PackSuite, numbers_are_packed_in_place) {
    const std::uint64_t count = 100'003;
    const Memory block = memory(MemoryKind::device, 8 * count + 64);
    for (const std::uint64_t skew : {0u, 1u, 8u}) {
        Bytes expected = random_bytes(block.bytes(), skew + 1);
        to_device(block.data(), expected);
        ReferencePack one{.pack = {.swap = true, .dimensions = 1, .divisor = 3}, .to = skew, .from = skew};
        one.pack.extents[0] = count;
        one.pack.destination_strides[0] = one.pack.source_strides[0] = 8;
        const Bytes source = expected;
        one.run(expected, source);
        stream_->pack(std::vector<Pack>{one.at(block.data(), block.data())});
        EXPECT_EQ(to_host(block.data(), block.bytes()) == expected, true) << skew;
    }
}

TEST_P(PackSuite, work_before_and_after_packs_keeps_its_order) {
    const std::uint64_t count = 1 << 18;
    const Memory from = memory(MemoryKind::device, 8 * count), to = memory(MemoryKind::device, 4 * count);
    Pack pack{.destination = to.data(), .source = from.data(), .to = PackNumber::int64, .from = PackNumber::int32,
              .dimensions = 1};
    pack.extents[0] = count / 2;
    pack.destination_strides[0] = 8;
    pack.source_strides[0] = 4;
    for (int round = 0; round < 20; ++round) {
        stream_->fill(from.data(), from.bytes(), round);
        stream_->pack(std::vector<Pack>{pack});
        stream_->fill(from.data(), from.bytes(), 255);  // must not overtake the pack
        const Bytes got = to_host(to.data(), to.bytes());
        ASSERT_EQ(number_at<std::int64_t>(got, 0), round * 0x01010101ll);
        ASSERT_EQ(number_at<std::int64_t>(got, 4 * count - 8), round * 0x01010101ll);
    }
}

TEST_P(PackSuite, pinned_memory_is_a_side_too) {
    const Memory block = memory(MemoryKind::device, 8 * 300), pinned = memory(MemoryKind::pinned, 4 * 300);
    std::vector<double> numbers(300, 2.5);
    to_device(block.data(), bytes_of_all(numbers));
    Pack pack{.destination = pinned.data(), .source = block.data(), .to = PackNumber::float32, .dimensions = 1};
    pack.extents[0] = 300;
    pack.destination_strides[0] = 4;
    pack.source_strides[0] = 8;
    stream_->pack(std::vector<Pack>{pack});
    stream_->synchronize();
    for (std::uint64_t i = 0; i < 300; ++i) {
        float got = 0;
        std::memcpy(&got, pinned.data() + 4 * i, 4);
        ASSERT_EQ(got, 2.5f);
    }
}

TEST_P(PackSuite, five_thousand_small_packs_of_every_kind_arrive) {
    std::mt19937_64 random(17);
    PackSet all;
    each_conversion({.largest_extent = 4, .most_dimensions = 3, .alignment = 4, .packs = 0}, [&](PackTrial trial) {
        for (int i = 0; i < 120; ++i) place(random, trial, all, random_pack(random, trial));
    });
    for (unsigned char& byte : all.source) byte = static_cast<unsigned char>(random());
    for (unsigned char& byte : all.destination) byte = static_cast<unsigned char>(random());
    expect_same(all, "many packs");
}

// More calls than a device keeps tables for, behind work that delays them all: no table is rewritten too early.
TEST_P(PackSuite, calls_in_a_row_keep_their_tables) {
    constexpr std::uint64_t kCalls = 400, kNumbers = 64;
    const std::uint64_t delay_bytes = (device_->info().emulated ? 1 : 512) * kMiB;
    std::vector<float> numbers(kCalls * kNumbers);
    std::iota(numbers.begin(), numbers.end(), 1.0F);
    const Memory from = memory(MemoryKind::device, numbers.size() * sizeof(float));
    const Memory to = memory(MemoryKind::device, numbers.size() * sizeof(float));
    const Memory delay = memory(MemoryKind::device, delay_bytes);
    to_device(from.data(), bytes_of_all(numbers));
    for (int i = 0; i < 40; ++i) stream_->stamp(delay.data(), delay_bytes, 0, 1);
    for (std::uint64_t call = 0; call < kCalls; ++call) {
        const std::uint64_t at = call * kNumbers * sizeof(float);
        Pack pack{.destination = to.data() + at, .source = from.data() + at, .dimensions = 1};
        pack.to = pack.from = PackNumber::float32;
        pack.extents[0] = kNumbers;
        pack.destination_strides[0] = pack.source_strides[0] = sizeof(float);
        stream_->pack({&pack, 1});
    }
    EXPECT_TRUE(to_host(to.data(), numbers.size() * sizeof(float)) == bytes_of_all(numbers));
}

TEST_P(PackSuite, nothing_to_pack_does_nothing) {
    const Memory block = memory(MemoryKind::device, 4096);
    stream_->pack({});
    Pack pack{.destination = block.data(), .source = block.data(), .dimensions = 2};
    pack.extents = {1ull << 40, 0};
    stream_->pack(std::vector<Pack>(3, pack));
    stream_->synchronize();
}

TEST_P(PackSuite, packs_that_make_no_sense_are_refused_before_anything_moves) {
    const Memory block = memory(MemoryKind::device, 4096);
    stream_->fill(block.data(), 4096, 3);
    const Pack good{.destination = block.data(), .source = block.data() + 2048, .to = PackNumber::float32};
    std::vector<Pack> wrong(8, good);
    wrong[0].dimensions = 7;
    wrong[1].to = PackNumber::int64;
    wrong[2].divisor = 0;
    wrong[3].keep_bits = 24;
    wrong[4].swap = true, wrong[4].operation = PackOperation::add;
    wrong[5].keep_bits = 3, wrong[5].operation = PackOperation::minimum;
    wrong[6].source = nullptr;
    wrong[7].dimensions = 1;
    wrong[7].extents[0] = 2;
    wrong[7].destination_strides[0] = 3;  // overlaps itself
    for (const Pack& pack : wrong) EXPECT_THROW(stream_->pack(std::vector<Pack>{good, pack}), Error);
    const auto got = to_host(block.data(), 4096);
    EXPECT_EQ(std::count(got.begin(), got.end(), 3), 4096);
}

// A large field in many units of work, if there is room: 1 GiB on a GPU, less on the host. It is transposed twice.
TEST_P(PackSuite, a_large_field_arrives_whole) {
    const DeviceInfo info = device_->info();
    const std::uint64_t bytes = info.emulated ? 8 * kMiB : kGiB;
    if (info.free_bytes < 3 * bytes) GTEST_SKIP() << info.free_bytes << " bytes are free";
    const Memory from = memory(MemoryKind::device, bytes), to = memory(MemoryKind::device, bytes);
    stream_->stamp(from.data(), bytes, 0, 1);
    const auto rows = static_cast<std::int64_t>(bytes / 8 / 2048);
    Pack pack{.destination = to.data(), .source = from.data(), .to = PackNumber::int64, .from = PackNumber::int64,
              .dimensions = 2};
    pack.extents = {static_cast<std::uint64_t>(rows), 2048};
    pack.source_strides = {8 * 2048, 8};
    pack.destination_strides = {8, 8 * rows};
    stream_->pack(std::vector<Pack>{pack});
    EXPECT_GT(stream_->verify_stamp(to.data(), bytes, 0, 1).bad_bytes, bytes / 2) << "transposed nothing";
    std::swap(pack.source_strides, pack.destination_strides);
    pack.destination = from.data();
    pack.source = to.data();
    stream_->fill(from.data(), bytes, 0);
    stream_->pack(std::vector<Pack>{pack});
    EXPECT_EQ(stream_->verify_stamp(from.data(), bytes, 0, 1).bad_bytes, 0u);
}

}  // namespace penstock::conformance
