// Tests of new files of HDF5: what a reader finds after each write of a file that grows, whatever the process or the
// power does in between; and what is refused. What stock readers say of them is tested in python/tests/native.
// Tried with them: virtual_block.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "formats/create/hdf5/chunk_index.hpp"
#include "formats/create/hdf5/encoder.hpp"
#include "formats/create/hdf5/global_heap.hpp"
#include "formats/create/hdf5/growing.hpp"
#include "formats/create/hdf5/layout.hpp"
#include "formats/create/hdf5/virtual/virtual_block.hpp"
#include "formats/create/hdf5/messages.hpp"
#include "formats/create/hdf5/reading_rig.hpp"
#include "formats/create/hdf5/schema_tree.hpp"  // and netcdf4_tree
#include "formats/create/hdf5/tree.hpp"
#include "formats/hdf5/lookup3.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

ElementType type_of(const char* name) {
    ElementType type;
    type_named(name, type);
    return type;
}

FileSchema history(std::size_t fields) {
    FileSchema schema;
    schema.dimensions = {{"time", 0, true}, {"x", 5}};
    schema.variables.push_back({.name = "time", .type = type_of("float64"), .dimensions = {0}});
    for (std::size_t i = 0; i < fields; ++i)
        schema.variables.push_back(
            {.name = "field" + std::to_string(i), .type = type_of("float32"), .dimensions = {0, 1}});
    return schema;
}

std::vector<std::byte> data_of(std::size_t variable, std::uint64_t step, std::uint64_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = static_cast<std::byte>(1 + (variable * 7 + step * 3 + i) % 250);
    return made;
}

// Reserves a step and writes its data.
void add_step(GrowingFile& file, RecordingSink& sink, std::uint64_t step) {
    const std::vector<DataPlace> places = file.reserve({});
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i].bytes != 0) sink.write(places[i].offset_bytes, data_of(i, step, places[i].bytes));
}

struct Growth {
    std::uint64_t steps = 40, at_once = 1;
    NewHdf5Options options{};
};

FileSchema record(const FileSchema& schema, RecordingSink& sink, const Growth& growth) {
    const GrowingFilePtr file = make_hdf5(schema, sink, growth.options);
    for (std::uint64_t step = 0; step < growth.steps; ++step) {
        add_step(*file, sink, step);
        if ((step + 1) % growth.at_once != 0) continue;
        file->publish(step + 1);
        sink.published = step + 1;
    }
    return schema;
}

// A reader sees at least so many steps of each variable, and each that it sees is whole.
void expect_whole(const std::vector<std::byte>& bytes, const FileSchema& schema, std::uint64_t published) {
    const SeenFile seen(bytes);
    for (std::size_t i = 0; i < schema.variables.size(); ++i) {
        const std::string& name = schema.variables[i].name;
        const std::uint64_t steps = seen.steps(name);
        ASSERT_GE(steps, published) << name;
        for (std::uint64_t step = 0; step < steps; ++step) {
            const auto place = seen.chunk(name, step);
            ASSERT_LE(place.first + place.second, bytes.size());
            const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(place.first);
            ASSERT_TRUE(std::equal(begin, begin + static_cast<std::ptrdiff_t>(place.second),
                                   data_of(i, step, place.second).begin()))
                << name << " of step " << step;
        }
    }
}

// The number of the first write after which the file is there.
std::size_t first_whole(const std::vector<RecordingSink::Write>& writes) {
    for (std::size_t i = 0; i < writes.size(); ++i)
        if (!writes[i].is_barrier && writes[i].offset == 0) return i + 1;
    return writes.size();
}

void expect_whole_after_each_write(const FileSchema& schema, const Growth& growth) {
    RecordingSink sink;
    record(schema, sink, growth);
    std::vector<std::byte> bytes;
    const std::size_t begin = first_whole(sink.writes);
    for (std::size_t i = 0; i < sink.writes.size(); ++i) {
        if (!sink.writes[i].is_barrier) replay(bytes, sink.writes[i]);
        if (i + 1 < begin) continue;
        const std::uint64_t published = i + 1 < sink.writes.size() ? sink.writes[i + 1].published : sink.published;
        ASSERT_NO_THROW(expect_whole(bytes, schema, published)) << "after write " << i;
        if (testing::Test::HasFatalFailure()) FAIL() << "after write " << i;
    }
}

TEST(GrowingHdf5File, IsWholeAfterEachWrite) {
    expect_whole_after_each_write(history(3), {.steps = 40, .options = {.half_entries = 1}});
}

TEST(GrowingHdf5File, IsWholeAfterEachWriteWhereStepsArePublishedTogether) {
    expect_whole_after_each_write(history(2), {.steps = 45, .at_once = 9, .options = {.half_entries = 2}});
}

TEST(GrowingHdf5File, IsWholeAfterEachWriteWithNodesOfTheUsualSize) {
    expect_whole_after_each_write(history(2), {.steps = 140, .options = {.is_netcdf4 = false}});
}

TEST(GrowingHdf5File, IsWholeAfterEachWriteWhereLengthsTakeSeveralPages) {
    expect_whole_after_each_write(history(70), {.steps = 6, .options = {.half_entries = 1}});
}

// The disk keeps what was written before the last barrier, and any sectors of what came behind it.
TEST(GrowingHdf5File, IsWholeAfterAPowerCut) {
    constexpr std::uint64_t kSector = 512;
    const FileSchema schema = history(3);
    RecordingSink sink;
    record(schema, sink, {.steps = 30, .options = {.half_entries = 2}});
    std::mt19937 random(7);
    std::vector<std::byte> kept;
    std::size_t epoch = 0, published = 0;
    for (std::size_t i = 0; i < sink.writes.size(); ++i) {
        if (!sink.writes[i].is_barrier) continue;
        for (int repeat = 0; repeat < 20 && epoch > 0 && published + epoch > 0; ++repeat) {
            std::vector<std::byte> bytes = kept;
            for (std::size_t k = epoch; k < i; ++k) {
                const RecordingSink::Write& write = sink.writes[k];
                for (std::uint64_t at = write.offset; at < write.offset + write.bytes.size();) {
                    const std::uint64_t end = std::min((at / kSector + 1) * kSector, write.offset + write.bytes.size());
                    const auto from = write.bytes.begin() + static_cast<std::ptrdiff_t>(at - write.offset);
                    if (random() % 2 == 0) replay(bytes, {at, {from, from + static_cast<std::ptrdiff_t>(end - at)}});
                    at = end;
                }
            }
            if (kept.size() > 8 && kept[0] != std::byte{0}) {
                ASSERT_NO_THROW(expect_whole(bytes, schema, sink.writes[epoch].published)) << "before write " << i;
                if (HasFatalFailure()) FAIL() << "before write " << i;
            }
        }
        for (std::size_t k = epoch; k < i; ++k)
            if (!sink.writes[k].is_barrier) replay(kept, sink.writes[k]);
        epoch = i + 1;
    }
}

TEST(GrowingHdf5File, ShowsAStepByOneWriteOfOnePage) {
    RecordingSink sink;
    const GrowingFilePtr file = make_hdf5(history(20), sink);
    add_step(*file, sink, 0);
    const std::size_t before = sink.writes.size();
    file->publish(1);
    const RecordingSink::Write& last = sink.writes[sink.writes.size() - 2];
    EXPECT_GT(sink.writes.size(), before);
    EXPECT_EQ(last.offset / kFilePageBytes, (last.offset + last.bytes.size() - 1) / kFilePageBytes);
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 2 < sink.writes.size(); ++i)
        if (!sink.writes[i].is_barrier) replay(bytes, sink.writes[i]);
    EXPECT_EQ(SeenFile(bytes).steps("field19"), 0U);
    replay(bytes, last);
    EXPECT_EQ(SeenFile(bytes).steps("field19"), 1U);
    EXPECT_EQ(SeenFile(bytes).steps("time"), 1U);
}

TEST(GrowingHdf5File, IsWholeWhereAPublishFailsAndIsRepeated) {
    const FileSchema schema = history(2);
    for (long fails_after = 0; fails_after < 12; ++fails_after) {
        RecordingSink sink;
        const GrowingFilePtr file = make_hdf5(schema, sink, {.half_entries = 1});
        for (std::uint64_t step = 0; step < 6; ++step) add_step(*file, sink, step);
        file->publish(4);
        sink.fails_after = fails_after;
        try {
            file->publish(5);
        } catch (const std::runtime_error&) {
        }
        sink.fails_after = -1;
        std::vector<std::byte> bytes;
        for (const RecordingSink::Write& write : sink.writes) replay(bytes, write);
        expect_whole(bytes, schema, 4);
        file->publish(6);
        for (const RecordingSink::Write& write : sink.writes) replay(bytes, write);
        expect_whole(bytes, schema, 6);
    }
}

TEST(GrowingHdf5File, HasNoNodeOnTwoPages) {
    FileRoom room(100);
    for (const std::size_t dimensions : {1U, 3U, 4U, 5U, 7U}) {
        const IndexShape shape{dimensions, most_half_entries(dimensions), 1000};
        for (int i = 0; i < 20; ++i) {
            const std::uint64_t at = room.take_within_page(index_node_bytes(shape));
            EXPECT_EQ(at / kFilePageBytes, (at + index_node_bytes(shape) - 1) / kFilePageBytes);
        }
    }
    EXPECT_EQ(most_half_entries(4), kUsualHalfEntries);
    EXPECT_LT(most_half_entries(5), kUsualHalfEntries);
}

TEST(GrowingHdf5File, PlacesFollowFromTheSchemaAndTheNumberOfTheStep) {
    RecordingSink sink, other;
    const FileSchema schema = history(3);
    const GrowingFilePtr seen = make_hdf5(schema, sink, {.half_entries = 1});
    const GrowingFilePtr unseen = make_hdf5(schema, other, {.half_entries = 1});
    for (std::uint64_t step = 0; step < 50; ++step) {
        const std::vector<DataPlace> places = seen->reserve({}), others = unseen->reserve({});
        for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(places[i].offset_bytes, others[i].offset_bytes);
        seen->publish(step);
    }
}

TEST(GrowingHdf5File, PlacesLargeDataOnPages) {
    FileSchema schema = history(2);
    schema.dimensions[1].length = 20001;
    RecordingSink sink;
    const GrowingFilePtr file = make_hdf5(schema, sink);
    for (int step = 0; step < 3; ++step) {
        const std::vector<DataPlace> places = file->reserve({});
        EXPECT_EQ(places[0].bytes, 8U);
        EXPECT_EQ(places[1].bytes, 80004U);
        EXPECT_EQ(places[1].offset_bytes % kFilePageBytes, 0U);
        EXPECT_EQ(places[2].offset_bytes % kFilePageBytes, 0U);
    }
}

TEST(GrowingHdf5File, PlacesDataAtMultiplesThatGrowWithThem) {
    constexpr std::uint64_t kMiB = 1024 * 1024;
    EXPECT_EQ(data_multiple(64 * 1024 - 1), 8U);
    EXPECT_EQ(data_multiple(64 * 1024), kFilePageBytes);
    EXPECT_EQ(data_multiple(4 * kMiB - 1), kFilePageBytes);
    EXPECT_EQ(data_multiple(4 * kMiB), 64 * 1024U);
    EXPECT_EQ(data_multiple(64 * kMiB - 1), kMiB / 2);
    EXPECT_EQ(data_multiple(64 * kMiB), kMiB);
    EXPECT_EQ(data_multiple(300 * kMiB), 4 * kMiB);
    EXPECT_EQ(data_multiple(~std::uint64_t{0}), 16 * kMiB);
    FileSchema schema = history(2);
    schema.dimensions[1].length = 70 * kMiB;  // elements of 4 bytes
    RecordingSink sink;
    const GrowingFilePtr file = make_hdf5(schema, sink);
    for (int step = 0; step < 3; ++step) {
        const std::vector<DataPlace> places = file->reserve({});
        EXPECT_EQ(places[1].bytes, 280 * kMiB);
        for (const std::size_t i : {1, 2}) EXPECT_EQ(places[i].offset_bytes % (4 * kMiB), 0U) << step;
        EXPECT_LE(places[2].offset_bytes - places[1].offset_bytes - places[1].bytes, places[1].bytes / 64);
    }
}

TEST(GrowingHdf5File, TakesStoredSizesOfCompressedSteps) {
    FileSchema schema = history(1);
    schema.variables[1].filters = {{.name = "shuffle"}, {.name = "deflate", .values = {1}}};
    RecordingSink sink;
    const GrowingFilePtr file = make_hdf5(schema, sink);
    EXPECT_THROW(file->reserve({}), Error);
    const StoredChunks sizes[] = {{}, {13}};
    const std::vector<DataPlace> places = file->reserve(sizes);
    EXPECT_EQ(places[1].bytes, 13U);
    for (const DataPlace& place : places) sink.write(place.offset_bytes, std::vector<std::byte>(place.bytes));
    file->publish(1);
    std::vector<std::byte> bytes;
    for (const RecordingSink::Write& write : sink.writes) replay(bytes, write);
    EXPECT_EQ(SeenFile(bytes).chunk("field0", 0), std::make_pair(places[1].offset_bytes, std::uint64_t{13}));
}

// Three chunks of a step, the last of which is as large as others and has one element of the variable.
TEST(GrowingHdf5File, TakesSeveralChunksOfAStepOneBehindTheOther) {
    FileSchema schema = history(1);
    schema.variables[1].filters = {{.name = "deflate", .values = {1}}};
    schema.variables[1].chunk = {2};
    RecordingSink sink;
    const GrowingFilePtr file = make_hdf5(schema, sink, {.half_entries = 2});
    for (std::uint64_t step = 0; step < 5; ++step) {
        const StoredChunks sizes[] = {{}, {10 + step, 20, 30}};
        const std::vector<DataPlace> places = file->reserve(sizes);
        EXPECT_EQ(places[1].bytes, 60U + step);
        for (const DataPlace& place : places) sink.write(place.offset_bytes, std::vector<std::byte>(place.bytes));
        file->publish(step + 1);
        std::vector<std::byte> bytes;
        for (const RecordingSink::Write& write : sink.writes) replay(bytes, write);
        const std::uint64_t behind_two = places[1].offset_bytes + 30 + step;
        EXPECT_EQ(SeenFile(bytes).chunk("field0", step), std::make_pair(behind_two, std::uint64_t{30}));
    }
    const StoredChunks one_is_missing[] = {{}, {10, 20}}, none_is_empty[] = {{}, {10, 0, 30}};
    EXPECT_THROW(file->reserve(one_is_missing), Error);
    EXPECT_THROW(file->reserve(none_is_empty), Error);
}

TEST(GrowingHdf5File, CutsStepsOf4GiB) {
    const std::vector<std::uint64_t> whole{1, 1024, 1024, 512}, large{1, 1024, 1024, 1024}, odd{1, 3, 1 << 20, 1 << 10};
    EXPECT_EQ(step_chunk(whole, 4), whole);
    EXPECT_EQ(step_chunk(large, 4), (std::vector<std::uint64_t>{1, 512, 1024, 1024}));
    EXPECT_EQ(step_chunk(odd, 8), (std::vector<std::uint64_t>{1, 1, 1 << 18, 1 << 10}));
}

TEST(GrowingHdf5File, RefusesWhatWasNotReserved) {
    RecordingSink sink;
    const GrowingFilePtr file = make_hdf5(history(1), sink);
    EXPECT_THROW(file->publish(1), Error);
    const StoredChunks too_few[] = {{8}};
    EXPECT_THROW(file->reserve(too_few), Error);
}

void expect_refused(const FileSchema& schema, const std::string& words) {
    RecordingSink sink;
    try {
        make_hdf5(schema, sink);
        FAIL() << "not refused: " << words;
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
    EXPECT_TRUE(sink.writes.empty());
}

TEST(NewHdf5File, RefusesSchemasThatItCannotHold) {
    FileSchema schema = history(1);
    schema.variables.push_back(schema.variables[1]);
    expect_refused(schema, "'field0' is given twice");
    schema = history(1);
    schema.dimensions[1].grows = true;
    expect_refused(schema, "two dimensions grow");
    schema = history(1);
    schema.variables[1].dimensions = {1, 0};
    expect_refused(schema, "grows along axis 1");
    schema = history(1);
    schema.variables[1].type = type_of("bool");
    expect_refused(schema, "netCDF-4 has no bool");
    schema = history(1);
    schema.variables[1].filters = {{.name = "bzip2"}};
    expect_refused(schema, "no filter bzip2");
    schema = history(1);
    schema.variables[1].chunk = {5};
    expect_refused(schema, "has chunks and no filters");
    schema = history(1);
    schema.attributes.push_back(text_attribute("long", std::string(70000, 'x')));
    expect_refused(schema, "attribute 'long' takes");
    schema = history(1);
    schema.attributes.push_back(text_attribute("_NCProperties", "none"));
    expect_refused(schema, "attribute _NCProperties of the file is one that netCDF-4 keeps");
    schema = history(1);
    schema.variables[1].attributes.push_back(text_attribute("DIMENSION_LIST", "none"));
    expect_refused(schema, "attribute DIMENSION_LIST of variable field0 is one that netCDF-4 keeps");
}

TEST(NewHdf5File, SharesAHeapOfListsAmongDatasets) {
    GlobalHeap heap;
    for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(heap.add({{i % 2, 0}}), i);
    FileRoom room(8);
    heap.place_in(room);
    const std::uint64_t addresses[] = {111, 222};
    const std::vector<FileChange> made = heap.collections(addresses);
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].bytes.size(), 8192U);
    EXPECT_EQ(heap.place(299).index, 300U);
}

TEST(NewHdf5File, FindsPlacesWithoutAFile) {
    Hdf5Tree tree;
    Hdf5Object object;
    object.dataset.type = type_of("float32");
    object.dataset.shape = {100, 1000};
    const ObjectNumber number = add_object(tree, "/a/b/c", object);
    const Hdf5Image image = lay_out(tree);
    ASSERT_EQ(image.objects[number].data.size(), 1U);
    EXPECT_EQ(image.objects[number].data[0].bytes, 400000U);
    EXPECT_EQ(image.objects[number].data[0].offset_bytes % kFilePageBytes, 0U);
    EXPECT_EQ(image.end_bytes, image.objects[number].data[0].offset_bytes + 400000U);
    EXPECT_EQ(encode_messages(std::vector{dataspace_message(object.dataset)}).size(), 8U + 8 + 2 * 8);
}

// By the author's own program.
TEST(Hdf5Lookup3, sums_are_those_of_its_author) {
    const std::string_view text = "Four score and seven years ago";
    EXPECT_EQ(lookup3(std::as_bytes(std::span(text))), 0x17770551U);
    EXPECT_EQ(lookup3({}), 0xdeadbeefU);
}

}  // namespace
}  // namespace penstock::formats
