// The parser of HDF5 on files of the library's own writer: links, places of chunks, fill values, and what it refuses.
// Python's tests compare it with h5py on files of all versions of the format; test_c_datasets_hdf5.py.
//
// Tried with it: describe_dataset, element_types, group_links, metadata_blocks, object_header, structure, superblock,
// chunk_grid, chunk_lookup, lookup3; by the Python tests alone, which have files of newer versions: fractal_heap,
// chunk_arrays, version2_tree.
#include <gtest/gtest.h>

#include "formats/hdf5/hdf5_samples_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

using testing::hdf5_of;
using testing::table_object;

ContainerPtr opened(std::string bytes) { return open_hdf5(std::make_unique<testing::MemorySource>(std::move(bytes))); }

ErrorInfo error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.info();
    }
    return {};
}

Hdf5Link link_to(const std::string& name, Hdf5Link::Leads leads, const std::string& path) {
    Hdf5Link link{.name = name, .leads = leads, .path = path};
    if (leads == Hdf5Link::Leads::to_other_file) link.file = "other.h5";
    return link;
}

TEST(Hdf5File, datasets_are_found_by_links_of_all_kinds) {
    Hdf5Tree tree;
    const ObjectNumber number = add_object(tree, "/a/b/c", table_object(false));
    const ObjectNumber a = add_group(tree, "/a");
    add_link(tree, 0, {.name = "hard", .object = number});
    add_link(tree, 0, link_to("soft", Hdf5Link::Leads::to_path, "/a/b/c"));
    add_link(tree, a, link_to("near", Hdf5Link::Leads::to_path, "./b/c"));
    add_link(tree, a, link_to("around", Hdf5Link::Leads::to_path, "around"));
    add_link(tree, a, link_to("away", Hdf5Link::Leads::to_other_file, "/x"));
    add_link(tree, a, {.name = "itself", .object = a});
    const ContainerPtr file = opened(hdf5_of(tree, {}));
    EXPECT_EQ(file->names(), (std::vector<std::string>{"hard", "a/b/c", "soft", "a/near"}));
    for (const char* name : {"hard", "a/b/c", "/a/b/c", "soft", "a/near", "a/itself/itself/b/c"})
        EXPECT_EQ(file->dataset(name).grid.shape, (std::vector<std::int64_t>{5, 7})) << name;
    EXPECT_EQ(error_of([&] { file->dataset("a/away"); }).code, ErrorCode::unsupported);
    EXPECT_NE(error_of([&] { file->dataset("a/around"); }).cause.find("circle"), std::string::npos);
    for (const char* name : {"a", "a/b", "a/b/d", "", "a/b/c/d"})
        EXPECT_EQ(error_of([&] { file->dataset(name); }).code, ErrorCode::not_found) << name;
}

TEST(Hdf5File, addresses_count_from_behind_a_user_block) {
    for (const std::size_t block : {512U, 1024U, 4096U}) {
        const ContainerPtr file = opened(std::string(block, 'M') + testing::sample_hdf5());
        const StoredDataset dataset = file->dataset("data");
        const ContainerPtr plain = opened(testing::sample_hdf5());
        EXPECT_EQ(dataset.offset_bytes, plain->dataset("data").offset_bytes + block);
    }
    EXPECT_EQ(error_of([] { opened(std::string(600, 'M') + testing::sample_hdf5()); }).code, ErrorCode::unsupported);
}

TEST(Hdf5File, each_chunk_has_its_place_and_those_that_are_not_stored_have_none) {
    Hdf5Tree tree;
    Hdf5Object object = table_object(false);
    object.dataset.shape = {300, 9};
    object.dataset.chunk = {1, 4};
    const ObjectNumber number = add_object(tree, "data", object);
    object.dataset.has_data = false;
    object.dataset.fill = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    add_object(tree, "none", object);
    const Hdf5Image image = lay_out(tree);
    const ContainerPtr file = opened(hdf5_of(tree, {}));
    const StoredDataset dataset = file->dataset("data"), none = file->dataset("none");
    std::size_t chunk = 0;
    for (std::int64_t row = 0; row < 300; ++row) {
        for (std::int64_t column = 0; column < 3; ++column, ++chunk) {
            const auto place = file->place(dataset, std::vector{row, column});
            ASSERT_TRUE(place);
            EXPECT_EQ(place->offset_bytes, image.objects[number].data[chunk].offset_bytes);
            EXPECT_EQ(place->bytes, 16U);
            EXPECT_FALSE(file->place(none, std::vector{row, column}));
        }
    }
    EXPECT_EQ(none.fill, object.dataset.fill);
}

TEST(Hdf5File, damage_names_the_file_and_the_dataset) {
    std::string bytes = testing::sample_hdf5();
    const ErrorInfo whole = error_of([&] { opened(bytes.substr(0, bytes.size() - 1)); });
    EXPECT_EQ(whole.code, ErrorCode::end_of_file);
    EXPECT_EQ(whole.file, "memory");
    const std::string layout{3, 1};  // version and kind of the layout message
    const std::size_t at = bytes.find(std::string("\x08\0", 2) + std::string("\x18\0", 2));
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(bytes.substr(at + 8, 2), layout);
    bytes.replace(at + 10, 8, testing::little(bytes.size() - 100, 8));
    const ErrorInfo error = error_of([&] { opened(bytes)->dataset("data"); });
    EXPECT_EQ(error.code, ErrorCode::io_error);
    EXPECT_NE(error.operation.find("'data'"), std::string::npos) << error.operation;
    EXPECT_NE(error.cause.find("behind the end"), std::string::npos) << error.cause;
}

TEST(Hdf5File, what_is_not_read_is_listed_with_its_reason) {
    Hdf5Tree tree;
    Hdf5Object object = table_object(false);
    object.dataset.chunk = {2, 7};
    object.dataset.filters = {{"zstd", {3}}};
    object.dataset.stored_bytes = {9, 9, 9};
    add_object(tree, "packed", object);
    std::string bytes = hdf5_of(tree, {});
    EXPECT_EQ(opened(bytes)->dataset("packed").filters.at(0).name, "zstd");
    const std::string number = testing::little(32015, 2);
    bytes.replace(bytes.find(number), 2, testing::little(32013, 2));
    EXPECT_NE(opened(bytes)->dataset("packed").refusal.find("filter 32013"), std::string::npos);
}

}  // namespace
}  // namespace penstock::formats
