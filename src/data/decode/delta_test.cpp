// The stage of delta.cpp, against sums that are written out here.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "data/decode/stored_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;
using Numbers = std::vector<std::uint64_t>;

Bytes bytes_of(const Numbers& numbers, int bytes, bool big_endian) {
    Bytes found;
    for (const std::uint64_t number : numbers) testing::put(found, number, bytes, big_endian);
    return found;
}

// Fault of decoding `differences` that are not the differences of `wanted`; empty: they are.
std::string fault_of_delta(const Values& values, const Bytes& differences, const Bytes& wanted) {
    const Filter filter{"delta", values};
    const Pipeline pipeline({&filter, 1}, wanted.size());
    Bytes out;
    std::string fault = testing::decode(pipeline, differences, out);
    if (fault.empty() && out != wanted) return "other numbers";
    return fault;
}

TEST(Delta, integers_of_every_size_and_order_wrap_around) {
    for (const int bytes : {1, 2, 4, 8}) {
        for (const bool big : {false, true}) {
            const std::uint64_t least = std::uint64_t{1} << (8 * bytes - 1);  // of signed ones
            const Bytes stored = bytes_of({5, 3, ~std::uint64_t{0}, least, least, 2}, bytes, big);
            const Bytes wanted = bytes_of({5, 8, 7, least + 7, 7, 9}, bytes, big);
            EXPECT_EQ(fault_of_delta({static_cast<std::uint32_t>(bytes), big, 0}, stored, wanted), "") << bytes << big;
        }
    }
}

TEST(Delta, floating_point_is_added_one_after_the_other_in_its_own_type) {
    const float few[] = {-0.0F, 1e8F, 1.0F, -1e8F, 0.25F}, sums[] = {-0.0F, 1e8F, 1e8F, 0.0F, 0.25F};
    const double many[] = {-0.0, 1e17, 1.0, -1e17, std::numeric_limits<double>::infinity()};
    const double added[] = {-0.0, 1e17, 1e17, 0.0, std::numeric_limits<double>::infinity()};
    for (const bool big : {false, true}) {
        Numbers stored, wanted, stored_8, wanted_8;
        for (std::size_t i = 0; i < 5; ++i) {
            stored.push_back(std::bit_cast<std::uint32_t>(few[i]));
            wanted.push_back(std::bit_cast<std::uint32_t>(sums[i]));
            stored_8.push_back(std::bit_cast<std::uint64_t>(many[i]));
            wanted_8.push_back(std::bit_cast<std::uint64_t>(added[i]));
        }
        EXPECT_EQ(fault_of_delta({4, big, 1}, bytes_of(stored, 4, big), bytes_of(wanted, 4, big)), "");
        EXPECT_EQ(fault_of_delta({8, big, 1}, bytes_of(stored_8, 8, big), bytes_of(wanted_8, 8, big)), "");
    }
}

TEST(Delta, what_is_cut_short_is_a_fault) {
    const Bytes whole = bytes_of({1, 2, 3}, 4, false);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
        EXPECT_NE(fault_of_delta({4, 0, 0}, cut, whole), "") << bytes;
    }
    EXPECT_NE(fault_of_delta({4, 0, 0}, Bytes(16), whole), "") << "longer than its shape";
    EXPECT_EQ(fault_of_delta({4, 0, 0}, {}, {}), "") << "a chunk of nothing";
}

TEST(Delta, other_numbers_are_unsupported) {
    const std::vector<Values> unknown{{}, {4}, {3, 0, 0}, {0, 0, 0}, {2, 0, 1}, {16, 0, 1}};
    for (const Values& values : unknown) {
        EXPECT_THROW(fault_of_delta(values, {}, {}), Error);
    }
}

}  // namespace
}  // namespace penstock::data
