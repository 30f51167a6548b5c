// The codecs of bitshuffle.cpp, blosc.cpp, blosc2.cpp, blosclz.cpp, bz2.cpp, lz4.cpp, lzf.cpp, szip.cpp and zstd.cpp,
// and what bz2_absent.cpp, deflate_absent.cpp, lz4_absent.cpp and zstd_absent.cpp say: on chunks that stock writers
// stored, whole, cut, and with each byte changed.
#include "data/decode/codecs/samples.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "data/decode/shuffles/bitshuffle.hpp"
#include "data/decode/stored_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;
using testing::kStoredBytes;
using testing::StoredSample;

Bytes bytes_of(const char* digits) {
    Bytes bytes;
    for (; *digits != 0; digits += 2) {
        const char two[] = {digits[0], digits[1], 0};
        bytes.push_back(static_cast<std::byte>(std::strtoul(two, nullptr, 16)));
    }
    return bytes;
}

// None in a build without the library; then the refusal names it.
std::optional<Pipeline> pipeline_of(const StoredSample& sample, std::uint64_t chunk_bytes = kStoredBytes) {
    const Filter filter{sample.filter, sample.values};
    try {
        return Pipeline({&filter, 1}, chunk_bytes);
    } catch (const Error& error) {
        EXPECT_NE(error.info().cause.find("this build of Penstock has no lib"), std::string::npos);
        return std::nullopt;
    }
}

TEST(Samples, what_stock_writers_stored_is_decoded) {
    for (const StoredSample& sample : testing::kSamples) {
        const auto pipeline = pipeline_of(sample);
        if (!pipeline) continue;
        Bytes out;
        EXPECT_EQ(testing::decode(*pipeline, bytes_of(sample.stored), out), "") << sample.name;
        EXPECT_EQ(out, testing::smooth_bytes(kStoredBytes)) << sample.name;
    }
}

TEST(Samples, a_chunk_of_another_size_is_a_fault_and_nothing_behind_it_is_written) {
    constexpr std::size_t kGuard = 64;
    for (const StoredSample& sample : testing::kSamples) {
        for (const std::size_t size : {kStoredBytes - 1, kStoredBytes + 1, std::size_t{0}}) {
            const auto pipeline = pipeline_of(sample, size);
            if (!pipeline) continue;
            Bytes out(size + kGuard, std::byte{0xa5});
            Scratch scratch;
            EXPECT_NE(pipeline->decode({bytes_of(sample.stored)}, out, scratch), "") << sample.name << size;
            EXPECT_EQ(Bytes(out.begin() + static_cast<long>(size), out.end()), Bytes(kGuard, std::byte{0xa5}));
        }
    }
}

TEST(Samples, every_cut_is_a_fault) {
    for (const StoredSample& sample : testing::kSamples) {
        const auto pipeline = pipeline_of(sample);
        if (!pipeline) continue;
        const Bytes stored = bytes_of(sample.stored);
        Bytes out;
        for (std::size_t size = 0; size < stored.size(); ++size) {
            const Bytes cut(stored.begin(), stored.begin() + static_cast<long>(size));
            EXPECT_NE(testing::decode(*pipeline, cut, out), "") << sample.name << " of " << size;
        }
    }
}

TEST(Samples, a_changed_byte_is_a_fault_or_a_chunk_and_never_more) {
    for (const StoredSample& sample : testing::kSamples) {
        const auto pipeline = pipeline_of(sample);
        if (!pipeline) continue;
        const Bytes stored = bytes_of(sample.stored);
        Bytes out;
        for (std::size_t at = 0; at < stored.size(); ++at) {
            for (const int bits : {0x01, 0x80, 0xff}) {
                Bytes changed = stored;
                changed[at] ^= static_cast<std::byte>(bits);
                testing::decode(*pipeline, changed, out);
            }
        }
    }
}

TEST(Bitshuffle, bits_become_elements_of_any_size_and_number) {
    for (const std::size_t item : {1, 2, 3, 4, 8, 12, 16}) {
        for (const std::size_t items : {8, 128, 136, 1000}) {
            const Bytes plain = testing::some_bytes(item * items);
            Bytes rows(plain.size()), out(plain.size());
            for (std::size_t bit = 0; bit < plain.size() * 8; ++bit) {
                const std::size_t i = bit / 8 / item, place = (bit / 8 % item * 8 + bit % 8) * items + i;
                if ((plain[bit / 8] >> (bit % 8) & std::byte{1}) == std::byte{0}) continue;
                rows[place / 8] |= std::byte{1} << (place % 8);
            }
            std::vector<std::byte> planes;
            bit_unshuffle(rows, out, item, planes);
            EXPECT_EQ(out, plain) << item << " " << items;
        }
    }
}

TEST(Blosc2, blocks_that_are_larger_than_the_chunk_are_a_fault_and_take_no_memory) {
    for (const StoredSample& sample : testing::kSamples) {
        if (std::string(sample.name) != "blosc2_grid") continue;
        const auto pipeline = pipeline_of(sample);
        if (!pipeline) continue;
        constexpr std::size_t kBlockShape = 107 + 8 + 1 + 2 * 9 + 1 + 2 * 5 + 1;
        for (const std::size_t at : {kBlockShape, kBlockShape + 5}) {
            Bytes stored = bytes_of(sample.stored), out;
            ASSERT_EQ(stored[at], std::byte{0xd2});
            stored[at + 1] = std::byte{0x7f};
            EXPECT_NE(testing::decode(*pipeline, stored, out).find("b2nd is damaged"), std::string::npos) << at;
        }
    }
}

TEST(Blosc2, filters_and_codecs_that_are_not_known_are_refused) {
    for (const Values& values : {Values{}, Values{1, 0, 4, 100, 5, 3, 5}, Values{1, 0, 4, 100, 5, 1, 3},
                                 Values{1, 0, 4, 100, 5, 1, 6}, Values{1, 0, 4, 100, 5, 35, 5}}) {
        const Filter filter{"blosc2", values};
        EXPECT_THROW(Pipeline({&filter, 1}, 100), Error);
    }
}

TEST(Szip, values_that_are_not_known_are_refused) {
    for (const Values& values : {Values{}, Values{32, 8, 8}, Values{32, 7, 8, 64}, Values{32, 34, 8, 64},
                                 Values{32, 8, 0, 64}, Values{32, 8, 25, 64}, Values{32, 8, 8, 0},
                                 Values{32, 8, 8, 4097}}) {
        const Filter filter{"szip", values};
        EXPECT_THROW(Pipeline({&filter, 1}, 100), Error);
    }
}

TEST(Bitshuffle, values_that_are_not_known_are_refused) {
    for (const Values& values : {Values{}, Values{0, 3, 0}, Values{0, 3, 4, 7}, Values{0, 3, 4, 0, 1}}) {
        const Filter filter{"bitshuffle", values};
        EXPECT_THROW(Pipeline({&filter, 1}, 100), Error);
    }
}

}  // namespace
}  // namespace penstock::data
