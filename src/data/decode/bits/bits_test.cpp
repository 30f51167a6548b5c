// The stages of nbit.cpp, odd_integers.cpp and scale_offset.cpp, against rows of bits that are made here bit by bit.
#include <gtest/gtest.h>

#include "data/decode/bits/bit_row.hpp"
#include "data/decode/stored_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

// Numbers of so many bits, the highest bit of each first.
class BitWriter {
  public:
    void put(std::uint64_t number, unsigned bits) {
        for (unsigned bit = bits; bit-- > 0; ++count_) {
            if (count_ % 8 == 0) bytes_.push_back(std::byte{0});
            if ((number >> bit & 1) != 0) bytes_.back() |= std::byte{0x80} >> count_ % 8;
        }
    }
    const Bytes& bytes() const { return bytes_; }

  private:
    Bytes bytes_{};
    std::size_t count_ = 0;
};

std::uint64_t some_number(std::uint64_t i, unsigned bits) {
    const std::uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u;
    return bits == 64 ? mixed : mixed & ((std::uint64_t{1} << bits) - 1);
}

Bytes number_bytes(std::uint64_t number, int bytes, bool big_endian) {
    Bytes made;
    testing::put(made, number, bytes, big_endian);
    return made;
}

void append(Bytes& all, const Bytes& more) { all.insert(all.end(), more.begin(), more.end()); }

Pipeline of(const char* name, const Values& values, std::uint64_t bytes) {
    const Filter filter{name, values};
    return Pipeline({&filter, 1}, bytes);
}

struct Scaled {
    std::uint32_t bytes = 4;
    unsigned bits = 5;
    bool big_endian = false, has_fill = true;
};
constexpr std::uint64_t kLeast = 0xfffffffffffffff0u, kFill = 0x8877665544332211u;
constexpr std::uint32_t kCount = 37;

Values values_of(const Scaled& scaled) {
    Values values{2, 0, kCount, 0, scaled.bytes, 1, scaled.big_endian, scaled.has_fill, 0x44332211, 0x88776655};
    values.resize(20);
    return values;
}

Bytes header_of(unsigned bits, std::uint64_t least) {
    Bytes header;
    testing::put(header, bits, 4, false);
    testing::put(header, 8, 1, false);
    testing::put(header, least, 8, false);
    header.resize(21);
    return header;
}

// (stored, plain)
std::pair<Bytes, Bytes> chunk_of(const Scaled& scaled) {
    const auto width = static_cast<int>(scaled.bytes);
    BitWriter row;
    Bytes plain, raw;
    for (std::uint64_t i = 0; i < kCount; ++i) {
        const bool is_whole = scaled.bits == 8 * scaled.bytes, is_filled = scaled.has_fill && i % 5 == 0 && !is_whole;
        const std::uint64_t all_set = (std::uint64_t{1} << scaled.bits % 64) - 1;
        std::uint64_t more = scaled.bits == 0 ? 0 : some_number(i, scaled.bits);
        if (!is_whole && more == all_set) --more;
        row.put(is_filled ? all_set : more, is_whole ? 0 : scaled.bits);
        append(raw, number_bytes(more, width, false));
        append(plain, number_bytes(is_whole ? more : is_filled ? kFill : more + kLeast, width, scaled.big_endian));
    }
    Bytes stored = header_of(scaled.bits, kLeast);
    append(stored, scaled.bits == 8 * scaled.bytes ? raw : row.bytes());
    return {stored, plain};
}

TEST(ScaleOffset, numbers_of_any_bits_and_both_orders_are_what_they_were) {
    for (const std::uint32_t bytes : {1u, 2u, 4u, 8u}) {
        for (unsigned bits = 1; bits <= 8 * bytes; ++bits) {
            for (const bool big_endian : {false, true}) {
                for (const bool has_fill : {false, true}) {
                    const Scaled scaled{bytes, bits, big_endian, has_fill};
                    const auto [stored, plain] = chunk_of(scaled);
                    Bytes out;
                    EXPECT_EQ(testing::decode(of("scaleoffset", values_of(scaled), plain.size()), stored, out), "");
                    EXPECT_EQ(out, plain) << bytes << " " << bits << " " << big_endian << " " << has_fill;
                }
            }
        }
    }
}

TEST(ScaleOffset, equal_numbers_take_no_bits) {
    const Scaled scaled{2, 0, false, false};
    const auto [stored, plain] = chunk_of({2, 0, false, false});
    Bytes out;
    EXPECT_EQ(testing::decode(of("scaleoffset", values_of(scaled), plain.size()), header_of(0, kLeast), out), "");
    EXPECT_EQ(out[0], std::byte{0xf0});
    EXPECT_EQ(out[2 * kCount - 1], std::byte{0xff});
}

TEST(ScaleOffset, floats_are_divided_by_the_power_of_ten_in_their_own_type) {
    Values values{0, 2, 3, 1, 4, 0, 0, 0};
    values.resize(20);
    BitWriter row;
    for (const unsigned steps : {0u, 1u, 1234u}) row.put(steps, 11);
    Bytes stored = header_of(11, std::bit_cast<std::uint32_t>(-1.5f)), out;
    append(stored, row.bytes());
    ASSERT_EQ(testing::decode(of("scaleoffset", values, 12), stored, out), "");
    const float expected[] = {-1.5f, 1.0f / 100.0f - 1.5f, 1234.0f / 100.0f - 1.5f};
    EXPECT_EQ(std::memcmp(out.data(), expected, sizeof expected), 0);
}

TEST(ScaleOffset, every_cut_and_every_size_that_is_not_its_own_is_a_fault) {
    for (const Scaled& scaled : {Scaled{}, Scaled{2, 16}}) {
        const auto [stored, plain] = chunk_of(scaled);
        const Values values = values_of(scaled);
        Bytes out;
        for (std::size_t size = 0; size < stored.size(); ++size) {
            const Bytes cut(stored.begin(), stored.begin() + static_cast<long>(size));
            EXPECT_NE(testing::decode(of("scaleoffset", values, plain.size()), cut, out), "") << size;
        }
        for (const std::size_t size : {plain.size() - 1, plain.size() + 1, std::size_t{0}}) {
            EXPECT_NE(testing::decode(of("scaleoffset", values, size), stored, out), "");
        }
    }
}

TEST(ScaleOffset, more_bits_than_the_type_has_are_a_fault) {
    Bytes stored = header_of(33, 0), out;
    stored.resize(1000);
    EXPECT_NE(testing::decode(of("scaleoffset", values_of({}), 4 * kCount), stored, out).find("33 bits"),
              std::string::npos);
}

TEST(ScaleOffset, a_few_bytes_do_not_become_a_chunk_of_any_size) {
    Values values = values_of({});
    values[2] = 1u << 31;
    Bytes stored = header_of(0, 0), out;
    Scratch scratch;
    const Pipeline pipeline = of("scaleoffset", values, std::uint64_t{4} << 31);
    EXPECT_NE(pipeline.decode({stored}, {}, scratch).find("cannot become"), std::string::npos);
}

TEST(ScaleOffset, values_that_are_not_known_are_refused) {
    for (const auto& [at, value] : {std::pair{0u, 1u}, {1u, 33u}, {3u, 2u}, {4u, 3u}, {6u, 2u}, {7u, 2u}}) {
        Values values = values_of({});
        values[at] = value;
        EXPECT_THROW(of("scaleoffset", values, 4), Error) << at;
    }
    EXPECT_THROW(of("scaleoffset", {2, 0, 1, 0, 4, 1, 0, 0}, 4), Error);
}

TEST(Nbit, numbers_of_any_bits_lie_where_their_type_has_them) {
    for (const std::uint32_t bytes : {1u, 2u, 3u, 4u, 8u, 16u}) {
        for (const std::uint32_t bits : {1u, 3u, 8u, 13u, 24u, 31u, 57u, 60u, 64u}) {
            for (const std::uint32_t offset : {0u, 2u, 9u}) {
                for (const std::uint32_t big_endian : {0u, 1u}) {
                    if (bits + offset > 8 * bytes || (bytes == 16 && offset != 0 && bits == 64)) continue;
                    BitWriter row;
                    Bytes plain, out;
                    for (std::uint64_t i = 0; i < kCount; ++i) {
                        const std::uint64_t number = some_number(i, bits);
                        row.put(number, bits);
                        Bytes all;
                        for (std::uint32_t k = 0; k < bytes; ++k) {
                            const int up = static_cast<int>(offset) - static_cast<int>(8 * k);
                            const std::uint64_t part = up >= 0 ? number << up : up > -64 ? number >> -up : 0;
                            all.insert(big_endian != 0 ? all.begin() : all.end(), static_cast<std::byte>(part & 0xff));
                        }
                        append(plain, all);
                    }
                    const Values values{8, 0, kCount, 1, bytes, big_endian, bits, offset};
                    EXPECT_EQ(testing::decode(of("nbit", values, plain.size()), row.bytes(), out), "");
                    EXPECT_EQ(out, plain) << bytes << " " << bits << " " << offset << " " << big_endian;
                }
            }
        }
    }
}

// A compound of 16 bytes: 5 bits in 2 bytes at 1, bytes that are kept at 4, an array of two compounds at 7.
const Values kNested{35, 0, 2, 3, 16, 3, 1, 1, 2, 0, 5, 3, 4, 4, 3, 7, 2, 8, 3, 4, 2, 0, 1, 1, 0, 4, 0, 2,
                     2,  2, 1, 1, 0, 2, 1};

TEST(Nbit, compounds_arrays_and_kept_bytes_are_put_together) {
    BitWriter row;
    for (int item = 0; item < 2; ++item) {
        row.put(0x15, 5);
        row.put(0xabcdef, 24);
        for (int i = 0; i < 2; ++i) {
            row.put(0x9, 4);
            row.put(0x3, 2);
            row.put(0x2, 2);
        }
    }
    const Bytes item = {std::byte{0}, std::byte{0xa8}, std::byte{0}, std::byte{0}, std::byte{0xab}, std::byte{0xcd},
                        std::byte{0xef}, std::byte{9}, std::byte{0}, std::byte{6}, std::byte{4}, std::byte{9},
                        std::byte{0}, std::byte{6}, std::byte{4}, std::byte{0}};
    Bytes plain = item, out;
    append(plain, item);
    ASSERT_EQ(testing::decode(of("nbit", kNested, 32), row.bytes(), out), "");
    EXPECT_EQ(out, plain);
    for (std::size_t size = 0; size < row.bytes().size(); ++size) {
        const Bytes cut(row.bytes().begin(), row.bytes().begin() + static_cast<long>(size));
        EXPECT_NE(testing::decode(of("nbit", kNested, 32), cut, out), "") << size;
    }
    EXPECT_NE(testing::decode(of("nbit", kNested, 31), row.bytes(), out), "");
    EXPECT_NE(testing::decode(of("nbit", kNested, 48), row.bytes(), out), "");
}

TEST(Nbit, values_that_describe_no_type_are_refused) {
    for (std::size_t size = 0; size < kNested.size(); ++size) {
        Values cut(kNested.begin(), kNested.begin() + static_cast<long>(size));
        EXPECT_THROW(of("nbit", cut, 32), Error) << size;
        if (size == 0) continue;
        cut[0] = static_cast<std::uint32_t>(size);
        EXPECT_THROW(of("nbit", cut, 32), Error) << size;
    }
    EXPECT_THROW(of("nbit", {8, 0, 1, 1, 4, 0, 30, 3}, 4), Error) << "more bits than bytes";
    EXPECT_THROW(of("nbit", {8, 0, 1, 1, 4, 0, 0, 0}, 4), Error) << "no bits";
    EXPECT_THROW(of("nbit", {10, 0, 1, 2, 0x7fffffff, 3, 1, 0, 4, 1}, 4), Error) << "too many parts";
}

TEST(Nbit, elements_whose_types_use_all_bits_were_left_as_they_are) {
    const Bytes plain = testing::some_bytes(8);
    Bytes out;
    EXPECT_EQ(testing::decode(of("nbit", {8, 1, 2, 1, 4, 0, 32, 0}, 8), plain, out), "");
    EXPECT_EQ(out, plain);
}

TEST(OddIntegers, bits_become_numbers_with_their_signs) {
    for (const std::uint32_t bytes : {1u, 2u, 4u, 8u}) {
        for (const std::uint32_t bits : {1u, 5u, 7u, 12u, 31u, 50u}) {
            for (const std::uint32_t offset : {0u, 1u, 4u}) {
                for (unsigned kind = 0; kind < 4; ++kind) {
                    if (bits + offset > 8 * bytes) continue;
                    const bool big_endian = (kind & 1) != 0, is_signed = (kind & 2) != 0;
                    const auto width = static_cast<int>(bytes);
                    Bytes stored, plain, out;
                    for (std::uint64_t i = 0; i < kCount; ++i) {
                        const std::uint64_t number = some_number(i, bits), sign = number >> (bits - 1);
                        append(stored, number_bytes(number << offset | ~(~std::uint64_t{0} << offset), width,
                                                    big_endian));
                        const std::uint64_t above = is_signed && sign != 0 ? ~std::uint64_t{0} << bits : 0;
                        append(plain, number_bytes(number | above, width, big_endian));
                    }
                    const Values values{bytes, big_endian, bits, offset, is_signed};
                    EXPECT_EQ(testing::decode(of("odd-integers", values, plain.size()), stored, out), "");
                    EXPECT_EQ(out, plain) << bytes << " " << bits << " " << offset << " " << kind;
                }
            }
        }
    }
    Bytes out;
    EXPECT_NE(testing::decode(of("odd-integers", {2, 0, 12, 0, 1}, 3), Bytes(3), out), "");
    EXPECT_THROW(of("odd-integers", {2, 0, 12, 5, 1}, 4), Error);
    EXPECT_THROW(of("odd-integers", {2, 0, 12, 0}, 4), Error);
}

}  // namespace
}  // namespace penstock::data
