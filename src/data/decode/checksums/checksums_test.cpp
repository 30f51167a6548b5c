// The stage of fletcher32.cpp, against sums that HDF5 stored, those of numcodecs_sums.cpp, and that of crc32c.cpp.
#include <gtest/gtest.h>

#include "data/decode/stored_rig.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

// Bytes 1, 2, ... count, and the sum that HDF5 wrote behind them.
Bytes summed(std::size_t count, std::uint32_t sum) {
    Bytes stored;
    for (std::size_t i = 1; i <= count; ++i) stored.push_back(static_cast<std::byte>(i & 0xff));
    testing::put(stored, sum, 4, false);
    return stored;
}

std::string fault_of(const Bytes& stored) {
    const Filter filter{"fletcher32"};
    const Pipeline pipeline({&filter, 1}, stored.size() < 4 ? 1 : stored.size() - 4);
    Bytes out;
    std::string fault = testing::decode(pipeline, stored, out);
    if (fault.empty()) {
        EXPECT_EQ(out, Bytes(stored.begin(), stored.end() - 4));
    }
    return fault;
}

struct Known {
    std::size_t count;
    std::uint32_t sum;
};
constexpr Known kKnown[] = {
    {1, 0x01000100u}, {2, 0x01020102u}, {3, 0x05040402u}, {255, 0xb4d53fc0u}, {719, 0xda32e982u},
    {720, 0xdb02ea52u}, {721, 0x9656bb53u}, {722, 0x9728bc25u}, {100001, 0xf0bad94au}};

TEST(Fletcher32, sums_that_hdf5_stored_are_right) {
    for (const Known& known : kKnown) EXPECT_EQ(fault_of(summed(known.count, known.sum)), "") << known.count;
}

TEST(Fletcher32, sums_with_swapped_halves_of_hdf5_1_6_2_are_right_too) {
    for (const Known& known : kKnown) {
        const std::uint32_t swapped = (known.sum & 0x00ff00ff) << 8 | (known.sum & 0xff00ff00) >> 8;
        EXPECT_EQ(fault_of(summed(known.count, swapped)), "") << known.count;
    }
}

TEST(Fletcher32, any_other_sum_is_a_fault_that_names_both) {
    for (const Known& known : kKnown) {
        const std::string fault = fault_of(summed(known.count, known.sum + 1));
        EXPECT_NE(fault.find("its checksum is 0x"), std::string::npos) << fault;
    }
}

TEST(Fletcher32, fewer_bytes_than_a_sum_are_a_fault) {
    EXPECT_NE(fault_of(Bytes(3)).find("fewer bytes than a checksum"), std::string::npos);
}

TEST(Crc32c, the_check_value_of_the_standard_is_right_and_any_other_a_fault) {
    const Filter filter{"crc32c"};
    const Pipeline pipeline({&filter, 1}, 9);
    Bytes stored;
    for (const char one : {'1', '2', '3', '4', '5', '6', '7', '8', '9'}) stored.push_back(std::byte(one));
    testing::put(stored, 0xe3069283, 4, false);
    Bytes out;
    EXPECT_EQ(testing::decode(pipeline, stored, out), "");
    stored[3] ^= std::byte{1};
    EXPECT_NE(testing::decode(pipeline, stored, out).find("its checksum is 0x"), std::string::npos);
    EXPECT_NE(testing::decode(pipeline, Bytes(3), out), "");
}

// The sum as RFC 1950 writes it down, byte by byte.
std::uint32_t adler32_of(const Bytes& bytes) {
    std::uint32_t low = 1, high = 0;
    for (const std::byte one : bytes) {
        low = (low + std::to_integer<std::uint32_t>(one)) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

// Fault of a sum before the data or behind them.
std::string fault_of(const std::string& name, bool is_before, const Bytes& data, std::uint32_t sum) {
    const Filter filter{name, {is_before}};
    const Pipeline pipeline({&filter, 1}, data.size());
    Bytes stored, out;
    if (is_before) testing::put(stored, sum, 4, false);
    stored.insert(stored.end(), data.begin(), data.end());
    if (!is_before) testing::put(stored, sum, 4, false);
    std::string fault = testing::decode(pipeline, stored, out);
    return fault.empty() && out != data ? "other bytes" : fault;
}

TEST(Adler32, sums_of_any_length_are_right_before_the_data_and_behind_them) {
    for (const std::size_t count : {0, 1, 31, 32, 33, 1000, 8191, 8192, 8193, 100001}) {
        for (const Bytes& data : {testing::some_bytes(count), Bytes(count, std::byte{0xff})}) {
            EXPECT_EQ(fault_of("adler32", true, data, adler32_of(data)), "") << count;
            EXPECT_EQ(fault_of("adler32", false, data, adler32_of(data)), "") << count;
        }
    }
}

TEST(Adler32, the_example_of_the_encyclopaedia_is_right_and_any_other_sum_a_fault_that_names_both) {
    Bytes data;
    for (const char one : std::string("Wikipedia")) data.push_back(std::byte(one));
    for (const bool is_before : {true, false}) {
        EXPECT_EQ(fault_of("adler32", is_before, data, 0x11E60398), "");
        const std::string fault = fault_of("adler32", is_before, data, 0x11E60399);
        EXPECT_EQ(fault, "filter adler32: its checksum is 0x11e60398, it says 0x11e60399");
    }
    EXPECT_NE(fault_of("adler32", true, {}, 0), "") << "the sum of nothing is 1";
}

TEST(Crc32, the_check_value_of_the_standard_is_right_and_any_other_a_fault) {
    Bytes data;
    for (const char one : std::string("123456789")) data.push_back(std::byte(one));
    for (const bool is_before : {true, false}) {
        EXPECT_EQ(fault_of("crc32", is_before, data, 0xcbf43926), "");
        const std::string fault = fault_of("crc32", is_before, data, 0xcbf43927);
        EXPECT_EQ(fault, "filter crc32: its checksum is 0xcbf43926, it says 0xcbf43927");
    }
}

TEST(SumsOfNumcodecs, what_is_cut_short_is_a_fault) {
    const Bytes data = testing::some_bytes(20);
    for (const bool is_before : {true, false}) {
        const Filter filter{"adler32", {is_before}};
        const Pipeline pipeline({&filter, 1}, data.size());
        Bytes stored, out;
        if (is_before) testing::put(stored, adler32_of(data), 4, false);
        stored.insert(stored.end(), data.begin(), data.end());
        if (!is_before) testing::put(stored, adler32_of(data), 4, false);
        while (!stored.empty()) {
            stored.pop_back();
            EXPECT_NE(testing::decode(pipeline, stored, out), "") << stored.size();
        }
    }
}

}  // namespace
}  // namespace penstock::data
