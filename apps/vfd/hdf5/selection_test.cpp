// Selections as HDF5 hands them over, with iterators of our own in place of HDF5's.
#include "vfd/hdf5/selection.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "vfd/driver_rig.hpp"

namespace penstock::vfd {

// HDF5's iterators, in small: a space is its sequences, of which each call gives two.
struct Sequence {
    std::uint64_t offset;
    std::size_t bytes;
};
struct SpacesOfTest {
    std::vector<std::vector<Sequence>> spaces;
    std::vector<std::pair<std::size_t, std::size_t>> iterators;  // space, place in it
    std::size_t open = 0;
    bool fail = false;
};
SpacesOfTest& spaces_of_test() {
    static SpacesOfTest spaces;
    return spaces;
}

}  // namespace penstock::vfd

extern "C" [[gnu::visibility("default")]] std::int64_t H5Ssel_iter_create(std::int64_t space, std::size_t, unsigned) {
    auto& test = penstock::vfd::spaces_of_test();
    if (space < 0) return -1;
    test.iterators.emplace_back(static_cast<std::size_t>(space), 0);
    ++test.open;
    return static_cast<std::int64_t>(test.iterators.size()) - 1;
}

extern "C" [[gnu::visibility("default")]] int H5Ssel_iter_get_seq_list(  //
    std::int64_t iterator, std::size_t, std::size_t, std::size_t* sequences, std::size_t* elements,
    std::uint64_t* offsets, std::size_t* bytes) {
    auto& test = penstock::vfd::spaces_of_test();
    if (test.fail) return -1;
    auto& [space, at] = test.iterators[static_cast<std::size_t>(iterator)];
    *sequences = *elements = 0;
    for (; *sequences < 2 && at < test.spaces[space].size(); ++at, ++*sequences) {
        offsets[*sequences] = test.spaces[space][at].offset;
        bytes[*sequences] = test.spaces[space][at].bytes;
    }
    return 0;
}

extern "C" [[gnu::visibility("default")]] int H5Sget_select_type(std::int64_t) { return 1; }

extern "C" [[gnu::visibility("default")]] int H5Ssel_iter_close(std::int64_t) {
    --penstock::vfd::spaces_of_test().open;
    return 0;
}

namespace penstock::vfd {
namespace {

// Two buffers of the file: 12 bytes of each 16, from 600 on not at one distance, and a large piece far behind, into
// memory without gaps; then what lies at 1000 in the second, into memory with gaps. The sequences of the two sides end
// at different bytes.
class Selections : public Driver, public testing::WithParamInterface<bool> {
  protected:
    Selections() {
        SpacesOfTest& test = spaces_of_test();
        test = {};
        std::vector<Sequence> columns;
        for (std::size_t i = 0; i < 1001; ++i) columns.push_back({16 * i + (i > 600 ? i % 3 : 0), 12});
        columns.push_back({100'000, 70'000});
        std::vector<Sequence> gaps;
        for (std::size_t i = 0; i < 30; ++i) gaps.push_back({90'000 + 20 * i, 7});
        test.spaces = {columns, {{0, 5000}, {5000, 12 * 1001 + 70'000 - 5000}}, {{1000, 210}}, gaps};
    }
    static constexpr std::size_t kMemory = 90'600;
    // The bytes of the file that each byte of memory stands for, or kBytes.
    std::vector<std::size_t> places() const {
        const auto& spaces = spaces_of_test().spaces;
        std::vector<std::size_t> file, memory, places(kMemory, kBytes);
        const auto spread = [](const std::vector<Sequence>& space, std::size_t base, std::vector<std::size_t>& to) {
            for (const Sequence& one : space) {
                for (std::size_t k = 0; k < one.bytes; ++k) to.push_back(base + one.offset + k);
            }
        };
        spread(spaces[0], 40, file);
        spread(spaces[2], 200'000, file);
        spread(spaces[1], 0, memory);
        spread(spaces[3], 0, memory);
        for (std::size_t i = 0; i < memory.size(); ++i) places[memory[i]] = file[i];
        return places;
    }
    int move(bool write, unsigned char* base) {
        Id memory_spaces[] = {1, 3}, file_spaces[] = {0, 2};
        Address offsets[] = {40, 200'000};
        std::size_t bytes[] = {1, 0};
        void* memory[] = {base, nullptr};
        const void* sources[] = {base, nullptr};
        const Use raw = Use::raw;
        return write ? driver_->write_selection(file_, raw, 0, 2, memory_spaces, file_spaces, offsets, bytes, sources)
                     : driver_->read_selection(file_, raw, 0, 2, memory_spaces, file_spaces, offsets, bytes, memory);
    }
};
INSTANTIATE_TEST_SUITE_P(Memory, Selections, testing::Values(false, true));

TEST_P(Selections, are_read_and_written_sequence_by_sequence_and_nothing_between) {
    open("device=host");
    const auto data = pattern(kBytes);
    driver_->write(file_, Use::raw, 0, 0, kBytes, data.data());
    const DeviceMemory device(kMemory);
    std::vector<unsigned char> host(kMemory, 0xee);
    if (GetParam()) Engines::here().get("host")->copy_to_device(device.data(), host.data(), kMemory);
    unsigned char* base = GetParam() ? device.data() : host.data();
    ASSERT_EQ(move(false, base), 0);
    const auto got = GetParam() ? device.fetched() : host;
    auto expected = data;
    const auto from = places();
    for (std::size_t i = 0; i < kMemory; ++i) {
        ASSERT_EQ(got[i], from[i] == kBytes ? 0xee : data[from[i]]) << i;
        if (from[i] != kBytes) expected[from[i]] = static_cast<unsigned char>(~got[i]);
    }
    for (unsigned char& byte : host = got) byte = static_cast<unsigned char>(~byte);
    if (GetParam()) Engines::here().get("host")->copy_to_device(device.data(), host.data(), kMemory);
    ASSERT_EQ(move(true, base), 0);
    EXPECT_EQ(read(0, kBytes), expected);
    EXPECT_EQ(spaces_of_test().open, 0u);
}

TEST_P(Selections, that_hdf5_cannot_walk_are_errors_and_leave_no_iterator) {
    open("device=host,errors=" + name("errors"));
    std::vector<unsigned char> host(kMemory);
    spaces_of_test().fail = true;
    EXPECT_LT(move(GetParam(), host.data()), 0);
    EXPECT_EQ(spaces_of_test().open, 0u);
    EXPECT_NE(text("errors").find("cannot walk a selection of '" + name()), std::string::npos) << text("errors");
}

// Of what lies over each other the last wins, large pieces and small ones, in the file and in memory.
TEST_P(Selections, that_name_a_place_twice_leave_the_last_there) {
    open("device=host");
    const auto data = pattern(kBytes);
    driver_->write(file_, Use::raw, 0, 0, kBytes, data.data());
    std::vector<unsigned char> host(kMemory);
    const DeviceMemory device(kMemory);
    unsigned char* base = GetParam() ? device.data() : host.data();
    const auto read_into = [&](const std::vector<Sequence>& file, const std::vector<Sequence>& memory) {
        spaces_of_test().spaces = {file, memory};
        Id memory_space = 1, file_space = 0;
        Address offset = 0;
        std::size_t bytes = 1;
        void* to = base;
        ASSERT_EQ(driver_->read_selection(file_, Use::raw, 0, 1, &memory_space, &file_space, &offset, &bytes, &to), 0);
        if (GetParam()) host = device.fetched();
    };
    read_into({{0, 80'000}, {100'000, 10}, {200'000, 80'000}}, {{0, 80'000}, {5, 10}, {100, 80'000}});
    EXPECT_EQ(std::memcmp(host.data() + 5, data.data() + 100'000, 10), 0);
    EXPECT_EQ(std::memcmp(host.data() + 100, data.data() + 200'000, 80'000), 0);
    read_into({{0, 10}, {100, 10}, {200, 80'000}, {290'000, 4}}, {{0, 10}, {0, 10}, {3, 80'000}, {3, 4}});
    EXPECT_EQ(std::memcmp(host.data(), data.data() + 100, 3), 0);
    EXPECT_EQ(std::memcmp(host.data() + 3, data.data() + 290'000, 4), 0);
    EXPECT_EQ(std::memcmp(host.data() + 7, data.data() + 204, 70'000), 0);
}

TEST_P(Selections, behind_the_range_of_file_offsets_are_refused) {
    open("device=host,errors=" + name("errors"));
    spaces_of_test().spaces[0] = {{kLastAddress - 10, 12}};
    std::vector<unsigned char> host(kMemory);
    EXPECT_LT(move(GetParam(), host.data()), 0);
    EXPECT_NE(text("errors").find("the range leaves those of file offsets"), std::string::npos) << text("errors");
    EXPECT_EQ(std::filesystem::file_size(name()), 0u);
}

}  // namespace
}  // namespace penstock::vfd
