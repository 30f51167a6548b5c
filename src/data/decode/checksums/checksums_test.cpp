// The stage of fletcher32.cpp, against sums that HDF5 stored, and that of crc32c.cpp.
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

}  // namespace
}  // namespace penstock::data
