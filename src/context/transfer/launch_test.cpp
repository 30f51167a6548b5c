// Durability at the end of a write.
#include "context/transfer/launch.hpp"

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

class Launch : public testing::Test {
  protected:
    std::shared_ptr<OpenFile> open_old() {
        test::write_file(directory_.file("old"), test::stamped(100));
        return std::make_shared<OpenFile>(system_, directory_.file("old"), OpenOptions{.mode = OpenMode::read_write});
    }
    CountingSystem system_;
    test::TempDirectory directory_;
};

TEST_F(Launch, every_file_is_synced_until_one_fails_and_that_is_the_outcome) {
    const auto one = open_old();
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

}  // namespace
}  // namespace penstock::context
