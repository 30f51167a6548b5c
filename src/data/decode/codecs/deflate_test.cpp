// The stages of deflate.cpp and deflate_absent.cpp.
#include <gtest/gtest.h>

#include "data/decode/stored_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

std::string fault_of(const std::string& name, const Bytes& stored, const Bytes& plain) {
    const Filter filter{name};
    const Pipeline pipeline({&filter, 1}, plain.size());
    Bytes out;
    std::string fault = testing::decode(pipeline, stored, out);
    if (fault.empty()) {
        EXPECT_EQ(out, plain);
    }
    return fault;
}

Bytes joined(const Bytes& one, const Bytes& other) {
    Bytes both = one;
    both.insert(both.end(), other.begin(), other.end());
    return both;
}

TEST(Deflate, a_build_without_the_library_says_which_one_it_lacks) {
    if (testing::has_deflate()) GTEST_SKIP() << "built with libdeflate";
    try {
        fault_of("deflate", {}, Bytes(1));
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(error.info().cause.find("libdeflate"), std::string::npos);
    }
}

class WithDeflate : public ::testing::Test {
    void SetUp() override {
        if (!testing::has_deflate()) GTEST_SKIP() << "built without libdeflate";
    }
};

TEST_F(WithDeflate, what_follows_the_stream_does_not_count_for_hdf5) {
    const Bytes plain = testing::some_bytes(200000);
    EXPECT_EQ(fault_of("deflate", joined(testing::zlib_of(plain), Bytes(5)), plain), "");
}

TEST_F(WithDeflate, streams_in_a_row_are_one_chunk_for_zarr_and_nothing_else_may_follow) {
    const Bytes one = testing::some_bytes(70000), other = testing::some_bytes(300, 9);
    const Bytes both = joined(testing::zlib_of(one), testing::zlib_of(other));
    EXPECT_EQ(fault_of("zlib", both, joined(one, other)), "");
    EXPECT_NE(fault_of("zlib", joined(both, Bytes(5)), joined(one, other)), "");
    Bytes many, plain;
    for (int i = 0; i < 65; ++i) {
        many = joined(many, testing::zlib_of(Bytes(1)));
        plain.push_back({});
    }
    EXPECT_NE(fault_of("zlib", many, plain).find("more than 64"), std::string::npos);
}

TEST_F(WithDeflate, a_wrong_checksum_a_wrong_byte_and_every_cut_are_faults) {
    const Bytes plain = testing::some_bytes(100), stored = testing::zlib_of(plain);
    Bytes wrong = stored;
    wrong.back() ^= std::byte{1};
    EXPECT_NE(fault_of("deflate", wrong, plain), "");
    wrong = stored;
    wrong[50] ^= std::byte{1};
    EXPECT_NE(fault_of("deflate", wrong, plain), "");
    for (std::size_t size = 0; size < stored.size(); ++size) {
        EXPECT_NE(fault_of("deflate", Bytes(stored.begin(), stored.begin() + static_cast<long>(size)), plain), "");
    }
}

// Fault of bytes with others behind that may be read.
std::string padded_fault_of(const std::string& name, Bytes stored, Bytes behind, const Bytes& plain) {
    const Filter filter{name};
    const Pipeline pipeline({&filter, 1}, plain.size());
    Scratch scratch;
    Bytes out(plain.size(), std::byte{0xa5});
    behind.resize(kStreamPadding);
    const Bytes all = joined(stored, behind);
    const std::string fault = pipeline.decode({std::span(all).first(stored.size()), 0, true}, out, scratch);
    if (fault.empty()) {
        EXPECT_EQ(out, plain);
    }
    return fault;
}

TEST_F(WithDeflate, what_may_be_read_behind_a_stream_changes_nothing) {
    const Bytes plain = testing::some_bytes(500), stored = testing::zlib_of(plain);
    for (const std::string name : {"deflate", "zlib"}) {
        for (const Bytes& behind : {Bytes(kStreamPadding), Bytes(kStreamPadding, std::byte{0xff}), stored}) {
            EXPECT_EQ(padded_fault_of(name, stored, behind, plain), "");
            EXPECT_EQ(padded_fault_of(name, joined(stored, stored), behind, joined(plain, plain)),
                      fault_of(name, joined(stored, stored), joined(plain, plain)));
            EXPECT_EQ(padded_fault_of(name, stored, behind, Bytes(499)), fault_of(name, stored, Bytes(499)));
            Bytes wrong = stored;
            wrong[50] ^= std::byte{1};
            EXPECT_EQ(padded_fault_of(name, wrong, behind, plain), fault_of(name, wrong, plain));
        }
    }
}

TEST_F(WithDeflate, a_stream_that_was_cut_is_a_fault_also_where_the_rest_may_be_read) {
    const Bytes plain = testing::some_bytes(500), stored = testing::zlib_of(plain);
    for (const std::string name : {"deflate", "zlib"}) {
        for (std::size_t size = 0; size < stored.size(); ++size) {
            const auto cut = stored.begin() + static_cast<std::ptrdiff_t>(size);
            const Bytes there(stored.begin(), cut), rest(cut, stored.end());
            const std::string fault = padded_fault_of(name, there, rest, plain);
            EXPECT_NE(fault, "") << size;
            EXPECT_EQ(fault, fault_of(name, there, plain)) << size;
        }
    }
}

}  // namespace
}  // namespace penstock::data
