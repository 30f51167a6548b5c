// A file that a writer changes in place, or that a history writes, is not replaced.
#include "os/new_file/writer_locks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <string>

#include "os/fd.hpp"
#include "penstock/error.hpp"

namespace penstock::os {
namespace {

std::string refusal_of(const std::string& name) {
    try {
        need_no_writer(name);
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

TEST(WriterLocks, of_writers_and_histories_are_seen_and_those_of_readers_are_not) {
    const std::string name = testing::TempDir() + "/penstock-writer-locks";
    const UniqueFd file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_TRUE(file);
    EXPECT_EQ(refusal_of(name), "none");
    ASSERT_EQ(::flock(file.get(), LOCK_SH), 0);
    EXPECT_EQ(refusal_of(name), "none") << "a reader";
    EXPECT_FALSE(is_of_history(file.get()));
    ASSERT_EQ(::flock(file.get(), LOCK_EX), 0);
    EXPECT_NE(refusal_of(name).find("has it open for writing"), std::string::npos);
    ASSERT_EQ(::flock(file.get(), LOCK_UN), 0);
    struct flock held {};
    held.l_type = F_WRLCK;
    held.l_whence = SEEK_SET;
    held.l_start = kHistoryLockAt;
    held.l_len = 1;
    ASSERT_EQ(::fcntl(file.get(), F_OFD_SETLK, &held), 0);
    EXPECT_NE(refusal_of(name).find("a history"), std::string::npos);
    ASSERT_EQ(::unlink(name.c_str()), 0);
    EXPECT_EQ(refusal_of(name), "none") << "there is no file";
}

}  // namespace
}  // namespace penstock::os
