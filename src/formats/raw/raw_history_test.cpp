// Folders of raw files: steps and boxes of them are read; an index or a file that is wrong is told, and no name leads
// out of the folder. Tried with it: json_document.
#include "formats/raw/raw_history.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "context/test_files.hpp"
#include "formats/data_file.hpp"
#include "formats/move/move_dataset.hpp"
#include "formats/samples_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

namespace fs = std::filesystem;

Context raw_context() {
    ContextOptions options;
    options.device = "host";
    return Context(options);
}

class RawHistories : public ::testing::Test {
  protected:
    struct Index {
        std::string steps = "3", dtype = "<i4", shape = "[2,5]", file = "T.raw", format = "penstock raw history",
                    version = "1", grows = "true";
    };
    RawHistories() {
        std::string elements;
        for (int i = 0; i < 30; ++i) elements += testing::little(static_cast<std::uint64_t>(100 * (i / 5) + i % 5), 4);
        write("T.raw", elements + "part of a step that was not finished");
        write("x.raw", testing::little(7, 2) + testing::little(8, 2));
        write_index({});
    }
    void write(const std::string& name, const std::string& bytes) const {
        test::write_file(folder_.file(name), {bytes.begin(), bytes.end()});
    }
    void write_index(const Index& index) const {
        write("penstock.json",
              R"({"format":")" + index.format + R"(","version":)" + index.version + R"(,"steps":)" + index.steps +
                  R"(,"attributes":{},"variables":{"T":{"file":")" + index.file + R"(","dtype":")" + index.dtype +
                  R"(","grows":)" + index.grows + R"(,"shape":)" + index.shape +
                  R"(,"dimensions":["time","y","x"],"attributes":{}},"x":{"file":"x.raw","dtype":"<u2","grows":false,)"
                  R"("shape":[2],"dimensions":["x"],"attributes":{}}}})");
    }
    DataFile open(const std::string& format = {}, bool writable = false) const {
        return DataFile(context_, folder_.path(), {.format = format, .writable = writable});
    }
    // Columns 1 and 3 of row 1, in two steps from `step` on.
    std::vector<std::int32_t> read(const DataFile& file, std::int64_t step) const {
        const StoredDataset dataset = file.container().dataset("T");
        std::vector<std::int32_t> found(4, -1);
        DatasetMove move;
        move.selection.box.start = {step, 1, 1};
        move.selection.box.count = {2, 1, 2};
        move.selection.box.step = {1, 1, 2};
        move.selection.memory_strides = {8, 8, 4};
        move.memory = {found.data(), 16, MemoryKind::system};
        read_dataset(file, dataset, move).outcome.or_throw();
        return found;
    }
    template <typename Call>
    static std::string told(Call call) {
        try {
            call();
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing";
    }

    test::TempDirectory folder_;
    Context context_ = raw_context();
};

TEST_F(RawHistories, are_datasets_with_the_steps_that_the_index_counts) {
    for (const char* format : {"", "raw-history"}) {
        const DataFile file = open(format);
        EXPECT_STREQ(file.container().format(), "raw-history");
        EXPECT_EQ(file.container().names(), (std::vector<std::string>{"T", "x"}));
        EXPECT_EQ(file.container().dataset("T").grid.shape, (std::vector<std::int64_t>{3, 2, 5}));
        EXPECT_EQ(file.container().dataset("x").grid.shape, (std::vector<std::int64_t>{2}));
        EXPECT_EQ(file.container().dataset("x").type.name, "uint16");
        EXPECT_EQ(read(file, 0), (std::vector<std::int32_t>{101, 103, 301, 303}));
        EXPECT_EQ(read(file, 1), (std::vector<std::int32_t>{301, 303, 501, 503}));
        EXPECT_NE(told([&] { read(file, 2); }), "nothing") << "the file has bytes behind the last step";
        EXPECT_NE(told([&] { file.container().dataset("t"); }).find("no dataset of that name"), std::string::npos);
    }
}

TEST_F(RawHistories, a_step_that_is_published_later_is_there_when_it_is_opened_again) {
    write_index({.steps = "2"});
    const DataFile before = open();
    write_index({});
    EXPECT_EQ(before.container().dataset("T").grid.shape[0], 2);
    EXPECT_EQ(open().container().dataset("T").grid.shape[0], 3);
}

TEST_F(RawHistories, an_index_that_is_wrong_is_told) {
    const std::pair<Index, const char*> cases[] = {
        {{.steps = "-1"}, "steps is no count"},
        {{.steps = "true"}, "steps is no count"},
        {{.steps = "4611686018427387904"}, "variable 'T'"},
        {{.dtype = "<f5"}, "variable 'T'"},
        {{.dtype = "O"}, "variable 'T'"},
        {{.shape = "[0,5]"}, "its shape is no list of lengths"},
        {{.shape = "2"}, "its shape is no list of lengths"},
        {{.file = "../T.raw"}, "no name of a file in the folder"},
        {{.file = ".."}, "no name of a file in the folder"},
        {{.file = ""}, "no name of a file in the folder"},
        {{.format = "other"}, "its format is 'other'"},
        {{.version = "2"}, "version 1 is known"},
        {{.grows = "1"}, "grows is neither true nor false"},
    };
    for (const auto& [index, cause] : cases) {
        write_index(index);
        EXPECT_NE(told([&] { open(); }).find(cause), std::string::npos) << cause << ": " << told([&] { open(); });
    }
    for (const char* text : {"", "[]", "{", "{\"format\":1}", "{\"format\":\"a\",\"format\":\"b\"}"}) {
        write("penstock.json", text);
        EXPECT_NE(told([&] { open(); }), "nothing") << text;
    }
}

TEST_F(RawHistories, a_file_that_lacks_steps_or_is_none_is_told) {
    const DataFile file = open();
    fs::resize_file(folder_.file("T.raw"), 119);
    EXPECT_NE(told([&] { read(file, 0); }).find("are 120 bytes, the file has 119"), std::string::npos);
    fs::remove(folder_.file("T.raw"));
    EXPECT_NE(told([&] { read(file, 0); }).find("No such file"), std::string::npos);
    fs::create_directory(folder_.file("T.raw"));
    fs::create_directory(folder_.file("T.raw") + "/a");
    EXPECT_NE(told([&] { read(file, 0); }).find("not a regular file"), std::string::npos);
}

TEST_F(RawHistories, a_folder_that_took_the_name_is_not_taken_for_the_first) {
    const std::string run = folder_.file("run");
    fs::create_directory(run);
    for (const char* name : {"T.raw", "x.raw", "penstock.json"}) fs::copy(folder_.file(name), run + "/" + name);
    const DataFile file(context_, run, {});
    EXPECT_EQ(read(file, 0).front(), 101);
    fs::rename(run, folder_.file("older"));
    fs::copy(folder_.file("older"), run, fs::copy_options::recursive);
    EXPECT_NE(told([&] { read(file, 0); }).find("was replaced after it was opened here; open it again"),
              std::string::npos);
}

TEST_F(RawHistories, are_not_written_and_are_no_zarr_stores) {
    EXPECT_NE(told([&] { open("", true); }).find("open it without writable"), std::string::npos);
    EXPECT_NE(told([&] { open("zarr"); }).find("nor penstock.json"), std::string::npos);
    fs::remove(folder_.file("penstock.json"));
    EXPECT_NE(told([&] { open(); }).find("nor penstock.json"), std::string::npos);
    EXPECT_NE(told([&] { open("raw-history"); }).find("the folder has no penstock.json"), std::string::npos);
}

}  // namespace
}  // namespace penstock::formats
