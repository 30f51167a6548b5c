// A user who could not read the old file can never read the new one. Another user's link cannot mislead a writer.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "os/new_file/carry.hpp"
#include "os/new_file/new_file.hpp"

namespace penstock::os {
namespace {

using test::TempDirectory;

constexpr uid_t kStranger = 65534;
constexpr const char* kList = "system.posix_acl_access";
constexpr const char* kInherited = "system.posix_acl_default";

struct stat facts_of(const std::string& name) {
    struct stat facts {};
    EXPECT_EQ(::lstat(name.c_str(), &facts), 0) << name;
    return facts;
}

mode_t mode_of(const std::string& name) { return facts_of(name).st_mode & 07777; }

// An access control list as the kernel stores it: owner rw-, user 1234 r--, owning group `group`, mask rw-, others ---.
std::string list_of(std::uint16_t group) {
    struct Entry {
        std::uint16_t tag, rights;
        std::uint32_t number;
    };
    const std::vector<Entry> entries{{0x01, 6, UINT32_MAX}, {0x02, 4, 1234}, {0x04, group, UINT32_MAX},
                                     {0x10, 6, UINT32_MAX}, {0x20, 0, UINT32_MAX}};
    const std::uint32_t version = 2;
    std::string list(sizeof(version) + entries.size() * sizeof(Entry), '\0');
    std::memcpy(list.data(), &version, sizeof(version));
    std::memcpy(list.data() + sizeof(version), entries.data(), entries.size() * sizeof(Entry));
    return list;
}

std::string attribute(const std::string& name, const char* key) {
    std::string value(4096, '\0');
    const ssize_t length = ::lgetxattr(name.c_str(), key, value.data(), value.size());
    value.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return value;
}

bool set_attribute(const std::string& name, const char* key, const std::string& value) {
    return ::lsetxattr(name.c_str(), key, value.data(), value.size(), 0) == 0;
}

// Runs `work` in a child of that user. Returns its result, or the code of an Error that it threw.
int as_user(uid_t user, const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgid(user) != 0 || ::setuid(user) != 0) ::_exit(100);
        try {
            ::_exit(work());
        } catch (const Error& error) {
            ::_exit(static_cast<int>(error.code()));
        }
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Rights : public testing::TestWithParam<bool> {
  protected:
    void replace(const std::string& name) const {
        NewFile file(real_system(), name, {.unnamed = GetParam()});
        file.publish(true);
    }
    void make(const std::string& name, mode_t mode) const {
        std::ofstream(name) << "old";
        ASSERT_EQ(::chmod(name.c_str(), mode), 0);
    }
    ErrorCode refused(const std::string& name) const {
        try {
            replace(name);
        } catch (const Error& error) {
            return error.code();
        }
        return ErrorCode::ok;
    }
    TempDirectory directory_;
    std::string name_ = directory_.file("data");
};

TEST_P(Rights, the_mode_is_that_of_the_replaced_file_and_never_wider_before) {
    for (const mode_t mode : {0600u, 0640u, 0644u, 0755u, 0666u, 0200u}) {
        make(name_, mode);
        NewFile file(real_system(), name_, {.unnamed = GetParam()});
        struct stat now {};
        ASSERT_EQ(::fstat(file.fd(), &now), 0);
        EXPECT_EQ(now.st_mode & 077, 0u) << std::oct << mode;
        file.publish(false);
        EXPECT_EQ(mode_of(name_), mode);
    }
    make(name_, 04755);
    replace(name_);
    EXPECT_EQ(mode_of(name_), 0755u);  // as after any write
}

TEST_P(Rights, a_new_file_has_what_the_umask_leaves) {
    const mode_t before = ::umask(027);
    replace(name_);
    ::umask(before);
    EXPECT_EQ(mode_of(name_), 0640u);
}

TEST_P(Rights, a_mode_that_changes_meanwhile_counts_and_a_file_that_comes_meanwhile_only_narrows) {
    make(name_, 0644);
    NewFile changed(real_system(), name_, {.unnamed = GetParam()});
    ASSERT_EQ(::chmod(name_.c_str(), 0600), 0);
    changed.publish(false);
    EXPECT_EQ(mode_of(name_), 0600u);

    NewFile gone(real_system(), name_, {.unnamed = GetParam()});
    std::filesystem::remove(name_);
    gone.publish(false);
    EXPECT_EQ(mode_of(name_), 0600u);

    NewFile swapped(real_system(), name_, {.unnamed = GetParam()});
    std::filesystem::rename(name_, directory_.file("kept"));  // keeps the inode, so that its number is not used again
    make(name_, 0666);
    swapped.publish(false);
    EXPECT_EQ(mode_of(name_), 0600u);

    std::filesystem::remove(name_);
    NewFile met(real_system(), name_, {.unnamed = GetParam()});
    make(name_, 0600);
    met.publish(false);
    EXPECT_EQ(mode_of(name_), 0600u);
}

TEST_P(Rights, a_file_of_another_group_or_with_a_list_that_comes_meanwhile_narrows_to_what_all_may) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs a group that the writer is not in";
    const mode_t before = ::umask(0);
    NewFile met_group(real_system(), name_, {.unnamed = GetParam()});
    make(name_, 0664);
    ASSERT_EQ(::chown(name_.c_str(), 0, 1235), 0);
    met_group.publish(false);
    EXPECT_EQ(mode_of(name_), 0644u);

    std::filesystem::remove(name_);
    NewFile met_list(real_system(), name_, {.unnamed = GetParam()});
    ::umask(before);
    make(name_, 0664);
    if (!set_attribute(name_, kList, list_of(4))) GTEST_SKIP() << "this file system has no access control lists";
    met_list.publish(false);
    EXPECT_EQ(mode_of(name_), 0600u);
}

TEST_P(Rights, notes_and_lists_are_kept_and_lists_of_the_folder_are_not_added) {
    make(name_, 0600);
    if (!set_attribute(name_, "user.origin", "a run") || !set_attribute(name_, kList, list_of(6))) {
        GTEST_SKIP() << "no attributes or lists on this file system";
    }
    const std::string list = attribute(name_, kList);
    replace(name_);
    EXPECT_EQ(attribute(name_, "user.origin"), "a run");
    EXPECT_EQ(attribute(name_, kList), list);
    EXPECT_EQ(mode_of(name_), 0660u);

    const std::string plain = directory_.file("plain");
    make(plain, 0640);
    ASSERT_TRUE(set_attribute(directory_.path(), kInherited, list_of(4)));
    replace(plain);
    EXPECT_EQ(attribute(plain, kList), "");
    EXPECT_EQ(mode_of(plain), 0640u);
    const std::string fresh = directory_.file("fresh"), control = directory_.file("control");
    replace(fresh);
    std::ofstream(control) << "made by others";
    EXPECT_NE(attribute(fresh, kList), "");
    EXPECT_EQ(attribute(fresh, kList), attribute(control, kList));
    EXPECT_EQ(mode_of(fresh), mode_of(control));
}

TEST_P(Rights, owner_and_group_are_kept) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    make(name_, 0640);
    ASSERT_EQ(::chown(name_.c_str(), 1234, 1235), 0);
    replace(name_);
    EXPECT_EQ(facts_of(name_).st_uid, 1234u);
    EXPECT_EQ(facts_of(name_).st_gid, 1235u);
    EXPECT_EQ(mode_of(name_), 0640u);
}

TEST_P(Rights, where_the_group_cannot_be_kept_the_other_group_gets_what_all_have) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs another user";
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
    make(name_, 0662);
    EXPECT_EQ(as_user(kStranger, [&] { return replace(name_), 0; }), 0);
    EXPECT_EQ(facts_of(name_).st_uid, kStranger);
    EXPECT_EQ(mode_of(name_), 0622u);

    const std::string listed = directory_.file("listed");
    make(listed, 0600);
    std::string list = list_of(6);
    const std::uint32_t stranger = kStranger;
    std::memcpy(list.data() + 4 + 8 + 4, &stranger, sizeof(stranger));  // user 1234 becomes kStranger, who may write
    list[4 + 8 + 2] = 6;
    if (!set_attribute(listed, kList, list)) GTEST_SKIP() << "no lists on this file system";
    EXPECT_EQ(as_user(kStranger, [&] { return replace(listed), 0; }), 0);
    const std::string now = attribute(listed, kList);
    ASSERT_EQ(now.size(), list.size());
    EXPECT_EQ(now[4 + 2 * 8 + 2], 0) << "the other owning group may more than others may";
}

TEST_P(Rights, who_may_not_write_the_file_may_not_replace_it) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs another user";
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
    const auto code = static_cast<int>(ErrorCode::permission_denied);
    make(name_, 0644);
    EXPECT_EQ(as_user(kStranger, [&] { return replace(name_), 0; }), code);
    const std::string own = directory_.file("own");
    make(own, 0444);
    ASSERT_EQ(::chown(own.c_str(), kStranger, kStranger), 0);
    EXPECT_EQ(as_user(kStranger, [&] { return replace(own), 0; }), code);
    EXPECT_EQ(mode_of(own), 0444u);
    EXPECT_EQ(directory_.entries(), 2u);
    make(name_, 0666);
    EXPECT_EQ(as_user(kStranger, [&] { return replace(name_), 0; }), 0);
}

class Sticky : public Rights {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs another user";
        ASSERT_EQ(::chmod(directory_.path().c_str(), 01777), 0);
        std::ofstream(home_.file("root")) << "precious";
    }
    void plant(const std::string& target) {
        ASSERT_EQ(as_user(kStranger, [&] { return ::symlink(target.c_str(), name_.c_str()); }), 0);
    }
    static bool kernel_protects() {
        int protects = 0;
        std::ifstream("/proc/sys/fs/protected_symlinks") >> protects;
        return protects == 1;
    }
    TempDirectory home_;
};

TEST_P(Sticky, a_strangers_link_to_a_file_is_refused) {
    if (!kernel_protects()) GTEST_SKIP() << "fs.protected_symlinks is off: the kernel follows it";
    plant(home_.file("root"));
    EXPECT_EQ(refused(name_), ErrorCode::permission_denied);
    EXPECT_EQ(std::filesystem::file_size(home_.file("root")), 8u);
    EXPECT_EQ(home_.entries(), 1u);
}

TEST_P(Sticky, a_strangers_link_to_nothing_is_refused) {
    plant(home_.file("made"));
    EXPECT_EQ(refused(name_), ErrorCode::permission_denied);
    EXPECT_EQ(home_.entries(), 1u);
}

TEST_P(Sticky, our_own_link_is_followed) {
    std::filesystem::create_symlink(home_.file("root"), name_);
    EXPECT_EQ(refused(name_), ErrorCode::ok);
    EXPECT_EQ(std::filesystem::file_size(home_.file("root")), 0u);
}

TEST_P(Sticky, a_strangers_file_is_refused) {
    ASSERT_EQ(as_user(kStranger, [&] { return std::ofstream(name_) << "bait", 0; }), 0);
    ASSERT_EQ(::chmod(name_.c_str(), 0666), 0);
    EXPECT_EQ(refused(name_), ErrorCode::permission_denied);
    EXPECT_EQ(std::filesystem::file_size(name_), 4u);
}

TEST_P(Sticky, a_strangers_file_that_comes_meanwhile_is_refused) {
    NewFile file(real_system(), name_, {.unnamed = GetParam()});
    ASSERT_EQ(as_user(kStranger, [&] { return std::ofstream(name_) << "bait", 0; }), 0);
    EXPECT_THROW(file.publish(false), Error);
    EXPECT_EQ(facts_of(name_).st_uid, kStranger);
    EXPECT_EQ(std::filesystem::file_size(name_), 4u);
}

const auto kNames = [](const auto& tested) { return tested.param ? "unnamed" : "named"; };
INSTANTIATE_TEST_SUITE_P(NewFile, Rights, testing::Bool(), kNames);
INSTANTIATE_TEST_SUITE_P(NewFile, Sticky, testing::Bool(), kNames);

}  // namespace
}  // namespace penstock::os
