// New files appear complete, at the right place, and in an order that survives a power cut. Files left by killed
// writers are removed, and files of living writers stay.
#include "os/new_file/new_file.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "os/new_file/killing_rig.hpp"
#include "os/new_file/temporary.hpp"

namespace penstock::os {
namespace {

using test::TempDirectory;

std::string text_of(const std::string& name) {
    std::ifstream file(name);
    return {std::istreambuf_iterator<char>(file), {}};
}

void put(int fd, const std::string& text) {
    ASSERT_EQ(::pwrite(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
}

// Records the calls that sync and name files, and lets one of them fail once.
class RecordingSystem final : public System {
  public:
    int fsync(int fd) override {
        struct stat facts {};
        ::fstat(fd, &facts);
        return note(S_ISDIR(facts.st_mode) ? "sync folder" : "sync file", [&] { return System::fsync(fd); });
    }
    int fdatasync(int fd) override {
        return note("fdatasync", [&] { return System::fdatasync(fd); });
    }
    int openat(int folder, const char* name, int flags, unsigned mode) override {
        const bool is_the_folder = std::string(name) == "." && (flags & O_TMPFILE) == O_DIRECTORY;
        if (is_the_folder && fails == "open folder") return note("open folder", [] { return -1; });
        return System::openat(folder, name, flags, mode);
    }
    int dup(int fd) override { return flushed_ = System::dup(fd); }
    int close(int fd) override {
        if (fd != flushed_) return System::close(fd);
        flushed_ = -1;
        const int result = System::close(fd);
        return note("flush", [&] { return result; });
    }
    int sync_file_range(int fd, std::uint64_t offset, std::uint64_t bytes, unsigned flags) override {
        asked_flags = flags;
        return note("ask", [&] { return System::sync_file_range(fd, offset, bytes, flags); });
    }
    int rename(int folder, const char* from, const char* to, unsigned flags) override {
        return note("name", [&] { return System::rename(folder, from, to, flags); });
    }
    int link_fd(int fd, int folder, const char* name) override {
        if (is_temporary(name)) return System::link_fd(fd, folder, name);
        if (::faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return System::link_fd(fd, folder, name);
        return note("name", [&] { return System::link_fd(fd, folder, name); });
    }
    std::vector<std::string> done;
    std::string fails;
    int number = EIO;
    unsigned asked_flags = 0;  // those of the last sync_file_range

  private:
    template <typename Call>
    int note(const std::string& what, const Call& call) {
        done.push_back(what);
        if (what != fails) return call();
        fails.clear();
        errno = number;
        return -1;
    }
    int flushed_ = -1;
};

// Whether the file has a name while it is written, and whether it replaces another.
struct Case {
    bool unnamed = false;
    bool replaces = false;
};

class Publish : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        if (GetParam().replaces) std::ofstream(name_) << "old";
    }
    NewFileOptions options() const { return {.unnamed = GetParam().unnamed}; }
    // After a failure there is the old file, or none, and no other file.
    void expect_nothing_happened() const {
        EXPECT_EQ(text_of(name_), GetParam().replaces ? "old" : "");
        EXPECT_EQ(directory_.entries(), GetParam().replaces ? 1u : 0u);
    }
    TempDirectory directory_;
    std::string name_ = directory_.file("data");
    RecordingSystem system_;
};

TEST_P(Publish, a_durable_file_is_synced_before_it_is_named_and_its_folder_after) {
    NewFile file(system_, name_, options());
    put(file.fd(), "new");
    EXPECT_EQ(text_of(name_), GetParam().replaces ? "old" : "");
    file.publish(true);
    EXPECT_EQ(system_.done, (std::vector<std::string>{"sync file", "flush", "ask", "name", "sync folder"}));
    EXPECT_EQ(text_of(name_), "new");
    EXPECT_EQ(directory_.entries(), 1u);
}

TEST_P(Publish, without_durable_nothing_is_synced_but_late_errors_are_asked_for_before_the_name) {
    NewFile file(system_, name_, options());
    put(file.fd(), "new");
    file.publish(false);
    EXPECT_EQ(system_.done, (std::vector<std::string>{"flush", "ask", "name"}));
    EXPECT_EQ(text_of(name_), "new");
}

TEST_P(Publish, any_step_that_fails_before_the_name_leaves_the_old_file_alone_and_stays_failed) {
    for (const char* step : {"sync file", "flush", "ask", "open folder", "name"}) {
        for (const int number : {EIO, ENOSPC, EDQUOT}) {
            NewFile file(system_, name_, options());
            put(file.fd(), "new");
            system_.fails = step;
            system_.number = number;
            for (int attempt = 0; attempt < 2; ++attempt) {  // the kernel reports the error once, publish() every time
                try {
                    file.publish(true);
                    ADD_FAILURE() << step;
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), number == EIO ? ErrorCode::io_error : ErrorCode::no_space) << error.what();
                    EXPECT_EQ(error.info().file, name_);
                }
            }
            expect_nothing_happened();
        }
    }
}

TEST_P(Publish, a_folder_that_cannot_be_synced_is_an_error_that_says_what_stands) {
    NewFile file(system_, name_, options());
    put(file.fd(), "new");
    system_.fails = "sync folder";
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            file.publish(true);
            ADD_FAILURE();
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("the file has its name"), std::string::npos) << error.what();
        }
    }
    EXPECT_EQ(text_of(name_), "new");
    EXPECT_EQ(directory_.entries(), 1u);
}

TEST_P(Publish, what_is_let_go_leaves_nothing) {
    { const NewFile file(system_, name_, options()); }
    expect_nothing_happened();
    NewFile file(system_, name_, options());
    file.abandon();
    expect_nothing_happened();
    EXPECT_THROW(file.publish(false), Error);
}

TEST_P(Publish, a_name_that_came_meanwhile_is_kept_where_replacing_is_not_allowed) {
    const NewFileOptions keeping{.replace = false, .unnamed = GetParam().unnamed};
    if (GetParam().replaces) {
        EXPECT_THROW(NewFile(system_, name_, keeping), Error);
        expect_nothing_happened();
        return;
    }
    NewFile file(system_, name_, keeping);
    std::ofstream(name_) << "theirs";
    EXPECT_THROW(file.publish(false), Error);
    EXPECT_EQ(text_of(name_), "theirs");
    EXPECT_EQ(directory_.entries(), 1u);
}

// The name is resolved once: later changes of the path to it have no effect.
TEST_P(Publish, another_working_folder_or_a_link_in_the_path_leads_nowhere_else) {
    const TempDirectory other;
    std::ofstream(other.file("data")) << "strangers";
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(directory_.path());
    NewFile relative(system_, "data", options());
    put(relative.fd(), "new");
    std::filesystem::current_path(other.path());
    relative.publish(true);
    std::filesystem::current_path(before);
    EXPECT_EQ(text_of(name_), "new");

    std::filesystem::create_directory(directory_.file("way"));
    NewFile through(system_, directory_.file("way/data"), options());
    put(through.fd(), "new");
    std::filesystem::rename(directory_.file("way"), directory_.file("was"));
    std::filesystem::create_directory_symlink(other.path(), directory_.file("way"));
    through.publish(false);
    EXPECT_EQ(text_of(directory_.file("was/data")), "new");
    EXPECT_EQ(text_of(other.file("data")), "strangers");
    EXPECT_EQ(other.entries(), 1u);
}

TEST_P(Publish, a_link_put_in_place_of_the_name_is_replaced_and_not_followed) {
    const TempDirectory other;
    std::ofstream(other.file("precious")) << "precious";
    NewFile file(system_, name_, options());
    put(file.fd(), "new");
    std::filesystem::remove(name_);
    std::filesystem::create_symlink(other.file("precious"), name_);
    file.publish(false);
    EXPECT_FALSE(std::filesystem::is_symlink(name_));
    EXPECT_EQ(text_of(name_), "new");
    EXPECT_EQ(text_of(other.file("precious")), "precious");
}

TEST_P(Publish, links_are_followed_to_what_is_there_or_not) {
    std::filesystem::create_directory(directory_.file("far"));
    std::filesystem::create_symlink("../data", directory_.file("far/hop"));
    std::filesystem::create_symlink("far/hop", directory_.file("link"));
    NewFile file(system_, directory_.file("link"), options());
    put(file.fd(), "new");
    EXPECT_EQ(file.path(), std::filesystem::canonical(directory_.path()).string() + "/data");
    file.publish(false);
    EXPECT_TRUE(std::filesystem::is_symlink(directory_.file("link")));
    EXPECT_TRUE(std::filesystem::is_symlink(directory_.file("far/hop")));
    EXPECT_EQ(text_of(name_), "new");
    std::filesystem::create_symlink("circle", directory_.file("circle"));
    try {
        const NewFile none(system_, directory_.file("circle"), options());
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.info().system_code, ELOOP);
    }
}

INSTANTIATE_TEST_SUITE_P(NewFile, Publish,
                         testing::Values(Case{false, false}, Case{false, true}, Case{true, false}, Case{true, true}),
                         [](const auto& tested) {
                             return std::string(tested.param.unnamed ? "unnamed" : "named") +
                                    (tested.param.replaces ? "_replacing" : "_new");
                         });

// Another writer of the same name comes in between: before a temporary file is locked, it may take the file for a dead
// process's.
class MeetingSystem final : public System {
  public:
    int openat(int folder, const char* name, int flags, unsigned mode) override {
        const int fd = System::openat(folder, name, flags, mode);
        if (fd >= 0 && (flags & O_CREAT) != 0 && removes-- > 0) System::unlink(folder, name);
        return fd;
    }
    int rename(int folder, const char* from, const char* to, unsigned flags) override {
        if (before_rename) before_rename();
        return System::rename(folder, from, to, flags);
    }
    int removes = 0;
    std::function<void()> before_rename;
};

class Temporaries : public testing::Test {
  protected:
    // A child makes temporary files and is killed before it can name them.
    void leave_dead(int how_many = 1) {
        EXPECT_FALSE(child_ends([&] {
            std::vector<std::unique_ptr<NewFile>> files;
            for (int i = 0; i < how_many; ++i) {
                files.push_back(std::make_unique<NewFile>(real_system(), name_, NewFileOptions{}));
            }
            ::kill(::getpid(), SIGKILL);
        }));
    }
    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
            found.push_back(entry.path().filename().string());
        }
        std::sort(found.begin(), found.end());
        return found;
    }
    TempDirectory directory_;
    std::string name_ = directory_.file("data");
};

TEST_F(Temporaries, dead_ones_are_removed_by_the_next_writer_of_the_name) {
    leave_dead(3);
    EXPECT_EQ(names().size(), 3u);
    NewFile file(real_system(), name_, {});
    EXPECT_EQ(names().size(), 1u);
    file.publish(false);
    EXPECT_EQ(names(), (std::vector<std::string>{"data"}));
}

TEST_F(Temporaries, dead_ones_are_removed_where_files_have_no_name_until_they_replace_one) {
    std::ofstream(name_) << "old";
    leave_dead();
    NewFile file(real_system(), name_, {.unnamed = true});
    file.publish(false);
    EXPECT_EQ(names(), (std::vector<std::string>{"data"}));
}

TEST_F(Temporaries, living_ones_stay_also_those_of_this_process_and_of_a_forked_child) {
    NewFile first(real_system(), name_, {});
    NewFile second(real_system(), name_, {});
    put(first.fd(), "first");
    put(second.fd(), "second");
    EXPECT_TRUE(child_ends([&] {
        { NewFile copy(real_system(), name_, {}); }
        if (names().size() != 2) ::_exit(1);
        first.abandon();  // the file belongs to the parent: this only closes it
        if (names().size() != 2) ::_exit(2);
    }));
    EXPECT_EQ(names().size(), 2u);
    first.publish(false);
    EXPECT_EQ(text_of(name_), "first");
    second.publish(false);
    EXPECT_EQ(text_of(name_), "second");
    EXPECT_EQ(names(), (std::vector<std::string>{"data"}));
}

TEST_F(Temporaries, one_that_was_taken_for_dead_before_it_was_locked_is_made_again) {
    MeetingSystem system;
    system.removes = 1;
    NewFile file(system, name_, {});
    put(file.fd(), "new");
    EXPECT_EQ(names().size(), 1u);
    file.publish(false);
    EXPECT_EQ(text_of(name_), "new");
}

TEST_F(Temporaries, a_file_that_gets_a_temporary_name_in_the_end_is_not_taken_for_dead) {
    std::ofstream(name_) << "old";
    MeetingSystem system;
    system.before_rename = [&] { const NewFile other(real_system(), name_, {}); };
    NewFile file(system, name_, {.unnamed = true});
    put(file.fd(), "new");
    file.publish(false);
    EXPECT_EQ(text_of(name_), "new");
}

TEST_F(Temporaries, what_is_no_file_of_ours_stays) {
    const std::string first = directory_.file(temporary_name("data", 0, true));
    const std::string second = directory_.file(temporary_name("data", 1, true));
    const std::string third = directory_.file(temporary_name("data", 2, true));
    std::filesystem::create_directory(first);
    std::filesystem::create_symlink("elsewhere", second);
    ASSERT_EQ(::mkfifo(third.c_str(), 0600), 0);
    std::size_t strange = 3;
    if (::geteuid() == 0) {
        const std::string fourth = directory_.file(temporary_name("data", 3, true));
        std::ofstream(fourth) << "another user's";
        ASSERT_EQ(::chown(fourth.c_str(), 65534, 65534), 0);
        ++strange;
    }
    NewFile file(real_system(), name_, {});
    file.publish(false);
    EXPECT_EQ(names().size(), strange + 1);
}

TEST_F(Temporaries, a_published_file_is_not_locked) {
    NewFile file(real_system(), name_, {});
    file.publish(false);
    const UniqueFd again(::open(name_.c_str(), O_RDWR));
    EXPECT_TRUE(lock_temporary(again.get()));
}

TEST_F(Temporaries, on_file_systems_of_networks_the_name_tells_the_machine) {
    EXPECT_NE(temporary_name("data", 0, true), temporary_name("data", 0, false));
    EXPECT_EQ(temporary_name("data", 0, false), temporary_name("data", 0, false));
    EXPECT_NE(temporary_name("data", 900, true), temporary_name("data", 900, true));
    EXPECT_LE(temporary_name(std::string(255, 'n'), 900, false).size(), 255u);
    EXPECT_TRUE(is_temporary(temporary_name("data", 0, false)));
    EXPECT_FALSE(is_temporary("data.penstock-0"));
}

}  // namespace
}  // namespace penstock::os
