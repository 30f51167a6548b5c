// One writer has a name: others are refused while it holds the lock, and go on once it ended or was killed.
#include "os/new_file/name_lock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::os {
namespace {

class NameLockTest : public testing::Test {
  protected:
    NameLockTest() : folder_(testing::TempDir() + "/penstock-name-lock") {
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directory(folder_);
        name_ = folder_ + "/run";
    }
    ~NameLockTest() override { std::filesystem::remove_all(folder_); }

    NameLock taken() { return {real_system(), name_, "write"}; }
    std::string refusal() {
        try {
            return taken().is_held() ? "held" : "not held";
        } catch (const Error& error) {
            return error.what();
        }
    }
    bool is_empty() const { return std::filesystem::is_empty(folder_); }

    std::string folder_, name_;
};

TEST_F(NameLockTest, keeps_others_out_until_it_is_released_and_leaves_nothing) {
    NameLock first = taken();
    EXPECT_TRUE(first.is_held());
    EXPECT_EQ(refusal(), "write " + name_ + ": another writer, of this program or another one, has this name; " +
                             "end that one, or give another name; after a crash of its machine remove " + folder_ +
                             "/.run.penstock-lock");
    EXPECT_TRUE(first.is_held()) << "a refusal takes nothing from the holder";
    NameLock moved = std::move(first);
    EXPECT_FALSE(first.is_held());
    EXPECT_TRUE(moved.is_held());
    moved.release();
    EXPECT_TRUE(is_empty());
    EXPECT_EQ(refusal(), "held");
    EXPECT_TRUE(is_empty());
}

TEST_F(NameLockTest, whose_file_was_removed_is_not_held_and_leaves_that_of_others) {
    NameLock first = taken();
    std::filesystem::remove(lock_file_of(name_));
    EXPECT_FALSE(first.is_held());
    const NameLock second = taken();
    EXPECT_TRUE(second.is_held());
    first.release();
    EXPECT_TRUE(second.is_held());
}

// A child of the holder that lives on has no part of the lock.
TEST_F(NameLockTest, ends_with_a_process_that_is_killed_and_not_with_its_children) {
    int ready[2], stay[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(stay), 0);
    const pid_t holder = ::fork();
    if (holder == 0) {
        const NameLock mine = taken();
        const pid_t child = ::fork();
        if (child == 0) {
            char end = 0;
            ::close(stay[1]);
            static_cast<void>(!::write(ready[1], "c", 1));
            static_cast<void>(!::read(stay[0], &end, 1));  // until the test ends
            ::_exit(0);
        }
        ::pause();
        ::_exit(1);
    }
    char told = 0;
    ASSERT_EQ(::read(ready[0], &told, 1), 1);
    EXPECT_NE(refusal().find("another writer"), std::string::npos);
    ASSERT_EQ(::kill(holder, SIGKILL), 0);
    ASSERT_EQ(::waitpid(holder, nullptr, 0), holder);
    EXPECT_EQ(refusal(), "held");
    EXPECT_TRUE(is_empty());
    for (const int fd : {ready[0], ready[1], stay[0], stay[1]}) ::close(fd);
}

class NoLocks final : public System {
  public:
    explicit NoLocks(int number) : number_(number) {}
    int lock(int, int, struct flock*) override {
        errno = number_;
        return -1;
    }

  private:
    int number_;
};

TEST_F(NameLockTest, is_not_held_where_the_file_system_has_no_locks_or_no_file_can_be) {
    for (const int number : {ENOSYS, EOPNOTSUPP, ENOLCK}) {
        NoLocks system(number);
        EXPECT_FALSE(NameLock(system, name_, "write").is_held()) << number;
        EXPECT_EQ(is_empty(), number != ENOLCK) << "where there may be locks of others the file stays";
    }
    EXPECT_EQ(refusal(), "held");
    EXPECT_FALSE(NameLock(real_system(), folder_ + "/none/run", "write").is_held());
    std::filesystem::create_directory(lock_file_of(name_));
    EXPECT_EQ(refusal(), "not held");
}

// The holder before ends between the open and the lock, and removes its file.
class Ending final : public System {
  public:
    explicit Ending(std::string file) : file_(std::move(file)) {}
    int lock(int fd, int command, struct flock* range) override {
        if (!file_.empty()) ::unlink(std::exchange(file_, {}).c_str());
        return System::lock(fd, command, range);
    }

  private:
    std::string file_;
};

TEST_F(NameLockTest, is_of_the_file_that_has_the_name_after_it_was_locked) {
    Ending system(lock_file_of(name_));
    const NameLock lock(system, name_, "write");
    EXPECT_TRUE(lock.is_held());
    EXPECT_NE(refusal().find("another writer"), std::string::npos);
}

TEST_F(NameLockTest, leaves_what_is_not_its_own) {
    const UniqueFd other(::open(lock_file_of(name_).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::write(other.get(), "x", 1), 1);
    EXPECT_EQ(refusal(), "held");
    EXPECT_FALSE(is_empty());
}

TEST_F(NameLockTest, has_a_file_whose_name_fits_any_folder) {
    name_ = folder_ + "/" + std::string(255, 'n');
    EXPECT_EQ(refusal(), "held");
    EXPECT_EQ(lock_file_of("run"), ".run.penstock-lock");
}

}  // namespace
}  // namespace penstock::os
