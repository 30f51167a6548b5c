// Durability at the end of a write, and what new files hear of it.
#include "context/transfer/settle.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "context/test_files.hpp"

namespace penstock::context {
namespace {

class CountingSystem : public os::System {
  public:
    int fdatasync(int fd) override { return sync(fd); }
    int fsync(int fd) override { return sync(fd); }
    int syncs = 0;
    bool fails = false;

  private:
    int sync(int) {
        ++syncs;
        errno = EIO;
        return fails ? -1 : 0;
    }
};

class Settle : public testing::Test {
  protected:
    std::shared_ptr<OpenFile> make(const std::string& name, OpenMode mode) {
        test::write_file(directory_.file("old"), test::stamped(100));
        OpenOptions options;
        options.mode = mode;
        return std::make_shared<OpenFile>(system_, directory_.file(name), options);
    }
    CountingSystem system_;
    test::TempDirectory directory_;
};

TEST_F(Settle, every_file_is_synced_until_one_fails_and_that_is_the_outcome) {
    const auto one = make("old", OpenMode::read_write);
    Outcome outcome;
    sync_files({one, one}, outcome);
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(system_.syncs, 2);
    EXPECT_GT(outcome.seconds, 0);
    system_.fails = true;
    sync_files({one, one}, outcome);
    EXPECT_EQ(outcome.error.code, ErrorCode::io_error);
    EXPECT_EQ(outcome.error.file, directory_.file("old"));
    EXPECT_EQ(system_.syncs, 3) << "what failed once is not tried with the next file";
}

TEST_F(Settle, new_files_hear_of_their_ranges_alone) {
    const auto old = make("old", OpenMode::read_write);
    const auto fresh = make("fresh", OpenMode::create);
    ASSERT_TRUE(fresh->is_new());
    const std::vector<FileRange> ranges{{fresh, 0, nullptr, 10, {}},
                                        {old, 0, nullptr, 20, {}},
                                        {fresh, 50, nullptr, 0, {}},
                                        {fresh, 60, nullptr, 5, {}}};
    const std::vector<NewBytes> found = bytes_of_new_files({old, fresh}, ranges);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].file, fresh);
    ASSERT_EQ(found[0].extents.size(), 2u);
    EXPECT_EQ(found[0].extents[1].offset_bytes, 60u);
    EXPECT_EQ(found[0].extents[1].bytes, 5u);
}

}  // namespace
}  // namespace penstock::context
