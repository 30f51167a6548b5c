// Texts of a store, and the folder that it is made in: readers find the old text or the new one, and nothing of theirs
// stays where something fails. Tried with them: spare_descriptors.
#include "history/target/store/store_texts.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "context/test_files.hpp"
#include "history/target/store/new_folder.hpp"

namespace penstock::history {
namespace {

namespace fs = std::filesystem;

class StoreTextsTest : public testing::TestWithParam<bool> {
  protected:
    StoreTextsTest() {
        fs::create_directory(folder_.file("T"));
        write("T/text", "shape 9");
        opened_ = os::UniqueFd(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY));
    }
    void write(const std::string& file, const std::string& text) const { std::ofstream(folder_.file(file)) << text; }
    std::string text(const std::string& file) const {
        std::ifstream in(folder_.file(file), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    ino_t inode(const std::string& file) const {
        struct stat found {};
        EXPECT_EQ(::stat(folder_.file(file).c_str(), &found), 0);
        return found.st_ino;
    }
    void change(const std::string& old_text, const std::string& new_text) const {
        const StoreText one{"T/text", old_text, new_text};
        StoreTexts(folder_.path(), "T/.new", GetParam()).change(opened_, {&one, 1});
    }

    test::TempDirectory folder_;
    os::UniqueFd opened_;
};

TEST_P(StoreTextsTest, of_one_other_byte_change_in_place) {
    const ino_t before = inode("T/text");
    change("shape 9", "shape 8");
    EXPECT_EQ(text("T/text"), "shape 8");
    EXPECT_EQ(inode("T/text"), before) << "no file is made for it";
    EXPECT_EQ(folder_.entries(), 1u);
}

TEST_P(StoreTextsTest, of_more_other_bytes_are_another_file) {
    std::ifstream held(folder_.file("T/text"));
    ino_t before = inode("T/text");
    std::string now = "shape 9";
    for (const char* next : {"shape 10", "shape 29", "shape", "shape!"}) {
        change(now, next);
        EXPECT_EQ(text("T/text"), next);
        EXPECT_NE(inode("T/text"), before) << next << ": a reader could find a part of it";
        before = inode("T/text");
        now = next;
    }
    std::string first;
    std::getline(held, first);
    EXPECT_EQ(first, "shape 9") << "who opened the old text reads it";
    EXPECT_FALSE(fs::exists(folder_.file("T/.new")));
}

// A process that was killed between two calls leaves a file under that name, which a reader may have open.
TEST_P(StoreTextsTest, leave_a_file_alone_that_has_the_name_of_an_unfinished_one) {
    write("T/.new", "older text");
    std::ifstream held(folder_.file("T/.new"));
    change("shape 9", "shape 10");
    std::string found;
    std::getline(held, found);
    EXPECT_EQ(found, "older text");
    EXPECT_EQ(text("T/text"), "shape 10");
    EXPECT_FALSE(fs::exists(folder_.file("T/.new")));
}

TEST_P(StoreTextsTest, are_handed_to_the_disk_once) {
    StoreTexts texts(folder_.path(), "T/.new", GetParam());
    const StoreText one{"T/text", "shape 9", "shape 10"};
    texts.change(opened_, {&one, 1});
    EXPECT_EQ(texts.unsettled(), GetParam() ? 0u : 1u);
    texts.settle(opened_);
    EXPECT_EQ(texts.unsettled(), 0u);
    EXPECT_EQ(text("T/text"), "shape 10");
}

TEST_P(StoreTextsTest, stay_where_the_new_one_cannot_be_written) {
    fs::create_directory(folder_.file("T/.new"));
    EXPECT_THROW(change("shape 9", "shape 10"), Error);
    EXPECT_EQ(text("T/text"), "shape 9");
    try {
        const StoreText one{"T/none", "a", "b"};
        StoreTexts("run.zarr", "T/.new", GetParam()).change(opened_, {&one, 1});
        ADD_FAILURE() << "there is no such text";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().file, "run.zarr/T/none");
        EXPECT_EQ(error.code(), ErrorCode::not_found);
    }
}

INSTANTIATE_TEST_SUITE_P(Durable, StoreTextsTest, testing::Bool());

TEST(NewFolders, take_a_name_or_go) {
    const test::TempDirectory folder;
    const std::string name = folder.file("run");
    { const NewFolder dropped(name); }
    EXPECT_EQ(folder.entries(), 0u);
    {
        NewFolder made(name);
        std::ofstream(made.path() + "/penstock.json") << "first";
        made.take_free_name(name);
        NewFolder late(name);
        EXPECT_THROW(late.take_free_name(name), Error) << "another took it";
    }
    EXPECT_TRUE(fs::exists(name + "/penstock.json"));
    {
        NewFolder next(name);
        const os::UniqueFd older = locked_older(name, true);
        EXPECT_THROW(locked_older(name, true), Error) << "it is being written";
        next.replace(name);
    }
    EXPECT_TRUE(fs::is_empty(name)) << "the newer one";
    EXPECT_EQ(folder.entries(), 1u) << "the older one went";
    EXPECT_THROW(locked_older(name, false), Error) << "it may not be replaced";
}

}  // namespace
}  // namespace penstock::history
