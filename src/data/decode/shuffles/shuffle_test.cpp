// Shuffling, both ways, against the definition, in elements of all sizes that have code of their own and of some that
// have not.
#include "data/decode/shuffles/shuffle.hpp"

#include <gtest/gtest.h>

#include "data/decode/stored_rig.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

TEST(Shuffle, planes_become_elements_of_any_size_and_rest_and_back) {
    for (const std::size_t item : {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 300}) {
        for (const std::size_t count : {0, 1, 15, 16, 17, 1000}) {
            for (const std::size_t rest : {std::size_t{0}, item - 1}) {
                const Bytes plain = testing::some_bytes(item * count + rest);
                Bytes out(plain.size());
                unshuffle(testing::shuffled(plain, item), out, item);
                EXPECT_EQ(out, plain) << item << " " << count << " " << rest;
                data::shuffle(plain, out, item);
                EXPECT_EQ(out, testing::shuffled(plain, item)) << item << " " << count << " " << rest;
            }
        }
    }
}

TEST(Shuffle, one_that_does_not_say_how_long_an_element_is_is_refused) {
    const Filter none{"shuffle"}, zero{"shuffle", {0}};
    EXPECT_ANY_THROW(Pipeline({&none, 1}, 8));
    EXPECT_ANY_THROW(Pipeline({&zero, 1}, 8));
}

}  // namespace
}  // namespace penstock::data
