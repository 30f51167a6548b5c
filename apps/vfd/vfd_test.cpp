// The driver as HDF5 calls it, without HDF5: through the struct of functions, on memory of the host and of an emulated
// GPU. With HDF5 it is tested by python/tests/vfd. Tried with them: caller, engines, file, mover, pieces, plain, tally.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "vfd/driver_rig.hpp"
#include "vfd/fault.hpp"
#include "vfd/settings.hpp"

namespace penstock::vfd {
namespace {

TEST_F(Driver, is_one_of_version_1_by_the_name_penstock) {
    EXPECT_EQ(H5PLget_plugin_type(), 2);
    open("");
    ASSERT_NE(file_, nullptr);
    EXPECT_EQ(driver_->version, 1u);
    EXPECT_STREQ(driver_->name, "penstock");
    unsigned long features = 0;
    EXPECT_EQ(driver_->query(file_, &features), 0);
    EXPECT_NE(features & kLikeDefault, 0u);
}

TEST_F(Driver, lets_hdf5_gather_small_pieces_where_no_memory_of_a_device_comes) {
    for (const bool host : {true, false}) {
        open(host ? "memory=host" : "memory=device");
        unsigned long features = 0;
        driver_->query(file_, &features);
        EXPECT_EQ((features & kSieve) != 0, host);
        EXPECT_EQ((features & kCopiesMemory) != 0, !host);
        EXPECT_EQ(driver_->read_vector == nullptr, host);
        EXPECT_EQ(driver_->read_selection == nullptr, host);
        close();
    }
}

TEST_F(Driver, gives_zeros_behind_the_end_and_takes_the_size_of_what_is_allocated) {
    open("memory=host");
    const auto data = pattern(kBytes);
    EXPECT_EQ(driver_->write(file_, Use::raw, 0, 0, kBytes, data.data()), 0);
    EXPECT_EQ(driver_->get_end_of_file(file_, Use::any), kBytes);
    auto expected = data;
    expected.resize(kBytes + 100, 0);
    EXPECT_EQ(read(0, kBytes + 100), expected);
    EXPECT_EQ(read(kBytes + 5000, 8), std::vector<unsigned char>(8, 0));
    driver_->set_end_of_allocation(file_, Use::any, 1000);
    EXPECT_EQ(driver_->truncate(file_, 0, false), 0);
    close();
    EXPECT_EQ(std::filesystem::file_size(name()), 1000u);
}

TEST_F(Driver, moves_device_memory_of_small_and_large_requests) {
    for (const char* config : {"device=host", "device=host,large=64KiB"}) {
        open(std::string(config) + ",evidence=" + name("told"));
        const DeviceMemory out(kBytes), in(kBytes + 5000);
        const auto data = pattern(kBytes);
        Engines::here().get("host")->copy_to_device(out.data(), data.data(), kBytes);
        EXPECT_EQ(driver_->write(file_, Use::raw, 0, 77, kBytes, out.data()), 0);
        EXPECT_EQ(driver_->read(file_, Use::raw, 0, 77, kBytes + 5000, in.data()), 0);
        auto expected = data;
        expected.resize(kBytes + 5000, 0);
        EXPECT_EQ(in.fetched(), expected);
        EXPECT_EQ(read(77, kBytes), data) << "memory of the host";
        close();
    }
    const std::string told = text("told");
    EXPECT_NE(told.find("\"staged\": {\"requests\": 1, \"bytes\": 300000}"), std::string::npos) << told;
    EXPECT_NE(told.find("\"bytes\": 300000}}}, \"fallbacks\""), std::string::npos) << "a transfer: " << told;
}

TEST_F(Driver, moves_metadata_by_system_calls_however_large) {
    open("device=host,large=64KiB,path=buffered,evidence=" + name("told"));
    const auto data = pattern(kBytes);
    std::vector<unsigned char> back(kBytes);
    EXPECT_EQ(driver_->write(file_, Use::btree, 0, 0, kBytes, data.data()), 0);
    EXPECT_EQ(driver_->read(file_, Use::header, 0, 0, kBytes, back.data()), 0);
    EXPECT_EQ(back, data);
    close();
    const std::string told = text("told"), plain = "\"plain\": {\"requests\": 1, \"bytes\": 300000}";
    EXPECT_NE(told.find("\"read\": {" + plain), std::string::npos) << told;
    EXPECT_NE(told.find("\"write\": {" + plain), std::string::npos) << told;
    EXPECT_EQ(told.find("buffered"), std::string::npos) << told;
}

// Pieces of 12 bytes, every 16 in the file and one after the other in memory; then some far away and a large one.
struct Pieces {
    std::vector<Use> uses;
    std::vector<Address> offsets;
    std::vector<std::size_t> bytes;
    std::vector<std::size_t> places;  // in memory
    std::size_t total = 0;
    void add(Address offset, std::size_t length) {
        uses.push_back(Use::raw);
        offsets.push_back(offset);
        bytes.push_back(length);
        places.push_back(total);
        total += length;
    }
};

Pieces scattered() {
    Pieces pieces;
    for (Address i = 0; i < 1000; ++i) pieces.add(40 + 16 * i, 12);
    pieces.add(150'000, 1);
    pieces.add(160'001, 70'000);
    pieces.add(20'000, 500);  // backwards
    return pieces;
}

std::vector<void*> memory_of(const Pieces& pieces, unsigned char* base) {
    std::vector<void*> memory;
    for (const std::size_t place : pieces.places) memory.push_back(base + place);
    return memory;
}

class Vectors : public Driver, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, Vectors, testing::Values(false, true));

TEST_P(Vectors, are_read_and_written_piece_by_piece_and_nothing_between) {
    open("device=host");
    const auto data = pattern(kBytes);
    driver_->write(file_, Use::raw, 0, 0, kBytes, data.data());
    Pieces pieces = scattered();
    const DeviceMemory device(pieces.total);
    std::vector<unsigned char> host(pieces.total);
    auto memory = memory_of(pieces, GetParam() ? device.data() : host.data());
    const auto count = static_cast<std::uint32_t>(memory.size());
    ASSERT_EQ(driver_->read_vector(file_, 0, count, pieces.uses.data(), pieces.offsets.data(), pieces.bytes.data(),
                                   memory.data()), 0);
    const auto got = GetParam() ? device.fetched() : host;
    auto expected = data;
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::memcmp(got.data() + pieces.places[i], data.data() + pieces.offsets[i], pieces.bytes[i]), 0) << i;
        for (std::size_t k = 0; k < pieces.bytes[i]; ++k) expected[pieces.offsets[i] + k] = 0x5a;
    }
    const std::vector<unsigned char> same(pieces.total, 0x5a);
    host = same;
    if (GetParam()) Engines::here().get("host")->copy_to_device(device.data(), same.data(), pieces.total);
    const std::vector<const void*> sources(memory.begin(), memory.end());
    ASSERT_EQ(driver_->write_vector(file_, 0, count, pieces.uses.data(), pieces.offsets.data(), pieces.bytes.data(),
                                    const_cast<const void**>(sources.data())), 0);
    EXPECT_EQ(read(0, kBytes), expected);
}

TEST_P(Vectors, may_be_shortened_to_what_differs) {
    open("device=host");
    const auto data = pattern(kBytes);
    driver_->write(file_, Use::raw, 0, 0, kBytes, data.data());
    const DeviceMemory device(400);
    std::vector<unsigned char> host(400);
    unsigned char* base = GetParam() ? device.data() : host.data();
    Use uses[] = {Use::raw, Use::same_as_before};
    std::size_t bytes[] = {100, 0};
    Address offsets[] = {0, 1000, 2000, 90'000};
    void* memory[] = {base, base + 100, base + 200, base + 300};
    ASSERT_EQ(driver_->read_vector(file_, 0, 4, uses, offsets, bytes, memory), 0);
    const auto got = GetParam() ? device.fetched() : host;
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::memcmp(got.data() + 100 * i, data.data() + offsets[i], 100), 0);
}

TEST_F(Driver, copies_memory_for_hdf5_where_a_side_is_of_a_device) {
    open("device=host,evidence=" + name("told"));
    const auto data = pattern(100);
    const DeviceMemory device(100);
    std::vector<unsigned char> back(100);
    const MemoryCopy there{device.data(), 10, data.data(), 10, 90}, here{back.data(), 0, device.data(), 10, 90};
    EXPECT_EQ(driver_->control(file_, kCopyMemory, kMustBeKnown, &there, nullptr), 0);
    EXPECT_EQ(driver_->control(file_, kCopyMemory, kMustBeKnown, &here, nullptr), 0);
    EXPECT_EQ(std::memcmp(back.data(), data.data() + 10, 90), 0);
    EXPECT_LT(driver_->control(file_, 4711, kMustBeKnown, &here, nullptr), 0);
    EXPECT_EQ(driver_->control(file_, 4711, 0, &here, nullptr), 0);
    const MemoryCopy within{back.data(), 0, data.data(), 50, 50};
    EXPECT_EQ(driver_->control(file_, kCopyMemory, kMustBeKnown, &within, nullptr), 0);
    EXPECT_EQ(std::memcmp(back.data(), data.data() + 50, 50), 0);
    close();
    const std::string told = text("told"), read = told.substr(0, told.find("\"write\""));
    EXPECT_NE(read.find("\"rows\": {\"requests\": 1, \"bytes\": 90}"), std::string::npos) << told;
    EXPECT_NE(told.find("\"rows\": {\"requests\": 1, \"bytes\": 90}", read.size()), std::string::npos) << told;
}

TEST_F(Driver, knows_a_file_by_two_names) {
    open("");
    std::filesystem::create_hard_link(name(), name("other.h5"));
    FileHead* same = driver_->open(name("other.h5").c_str(), 0, 0, kLastAddress);
    FileHead* another = driver_->open(name("more.h5").c_str(), kWritable | kCreate, 0, kLastAddress);
    ASSERT_TRUE(same != nullptr && another != nullptr);
    EXPECT_EQ(driver_->compare(file_, same), 0);
    EXPECT_NE(driver_->compare(file_, another), 0);
    EXPECT_EQ(driver_->compare(file_, another), -driver_->compare(another, file_));
    driver_->close(same);
    driver_->close(another);
}

TEST_F(Driver, tells_causes_where_it_was_asked_to) {
    open("errors=" + name("errors"), kWritable);
    EXPECT_EQ(file_, nullptr);
    EXPECT_NE(text("errors").find("cannot open '" + name() + "': errno = 2"), std::string::npos) << text("errors");
}

// The test has no HDF5 whose access list could be changed.
TEST_F(Driver, makes_no_file_whose_chunk_cache_it_cannot_turn_off) {
    open("memory=device,chunk_cache=off,errors=" + name("errors"));
    EXPECT_EQ(file_, nullptr);
    EXPECT_FALSE(std::filesystem::exists(name()));
    EXPECT_NE(text("errors").find("does not let the driver turn its chunk cache off"), std::string::npos);
}

TEST(DriverSettings, that_make_no_sense_are_refused_with_those_there_are) {
    for (const char* wrong :
         {"evidence", "evidence=", "colour=red", "memory=some", "large=0", "large=4kb", "chunk_cache=no"}) {
        try {
            parse_settings(wrong);
            ADD_FAILURE() << wrong;
        } catch (const Fault& fault) {
            EXPECT_NE(fault.advice.find("device=, path=, large= and chunk_cache="), std::string::npos);
        }
    }
    EXPECT_FALSE(parse_settings("chunk_cache=on,chunk_cache=off").chunk_cache);
    const Settings settings = parse_settings("large=8MiB,path=buffered,,memory=host");
    EXPECT_EQ(settings.large_bytes, 8u << 20);
    EXPECT_EQ(settings.path, "buffered");
    EXPECT_EQ(settings.memory, MemoryUse::host);
}

}  // namespace
}  // namespace penstock::vfd
