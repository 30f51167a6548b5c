// New files appear whole, under their name, at close, or not at all; old ones are replaced in one step.
#include "context/files/open_file.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>

#include "context/seams.hpp"
#include "context/test_files.hpp"

namespace penstock {
namespace {

using test::stamped;
using test::TempDirectory;
using test::write_file;

Context context_over(os::System* system = nullptr) {
    return context::make_context({.device = "host"}, {.system = system});
}

Buffer stamped_buffer(const Context& context, std::uint64_t bytes) {
    Buffer buffer = context.allocate(bytes);
    context.copy_to_device(buffer.data(), stamped(bytes).data(), bytes);
    return buffer;
}

// No O_TMPFILE, as on NFS and old kernels; optionally a rename that fails.
class OldSystem : public os::System {
  public:
    int openat(int folder, const char* name, int flags, unsigned mode) override {
        if ((flags & O_TMPFILE) == O_TMPFILE) {
            errno = EOPNOTSUPP;
            return -1;
        }
        return System::openat(folder, name, flags, mode);
    }
    int rename(int folder, const char* from, const char* to, unsigned flags) override {
        if (!fail_rename) return System::rename(folder, from, to, flags);
        errno = EIO;
        return -1;
    }
    bool fail_rename = false;
};

class Create : public testing::TestWithParam<bool> {
  protected:
    OldSystem old_;
    os::System* system() { return GetParam() ? &old_ : nullptr; }
    TempDirectory directory_;
};

TEST_P(Create, a_new_file_has_its_name_only_from_close_on) {
    const Context context = context_over(system());
    const Buffer buffer = stamped_buffer(context, 1 * kMiB);
    File file =
        context.open(directory_.file("new"), {.mode = OpenMode::create, .size_bytes = 1 * kMiB, .durable = true});
    file.write(buffer.view()).or_throw();
    EXPECT_FALSE(std::filesystem::exists(directory_.file("new")));
    file.close();
    EXPECT_TRUE(test::read_file(directory_.file("new")) == stamped(1 * kMiB));
    EXPECT_EQ(directory_.entries(), 1u);
    file.close();
}

TEST_P(Create, an_abandoned_file_leaves_nothing_and_the_old_one_alone) {
    const Context context = context_over(system());
    write_file(directory_.file("kept"), stamped(100));
    {
        const File file = context.open(directory_.file("kept"), {.mode = OpenMode::create});
        file.write(stamped_buffer(context, 4096).view()).or_throw();
    }
    EXPECT_TRUE(test::read_file(directory_.file("kept")) == stamped(100));
    EXPECT_EQ(directory_.entries(), 1u);
}

TEST_P(Create, an_existing_file_is_replaced_whole) {
    const Context context = context_over(system());
    write_file(directory_.file("old"), stamped(3 * kMiB));
    File file = context.open(directory_.file("old"), {.mode = OpenMode::create});
    file.write(stamped_buffer(context, 5000).view()).or_throw();
    file.close();
    EXPECT_TRUE(test::read_file(directory_.file("old")) == stamped(5000));
    EXPECT_EQ(directory_.entries(), 1u);
}

// Outputs are linked to where there is room: what comes of a link that is replaced fills the wrong disk.
TEST_P(Create, a_symbolic_link_stays_and_what_it_leads_to_is_made_or_replaced) {
    const Context context = context_over(system());
    std::filesystem::create_directories(directory_.file("far"));
    std::filesystem::create_symlink("hop", directory_.file("link"));
    std::filesystem::create_symlink(directory_.file("far/data"), directory_.file("hop"));
    for (const std::uint64_t bytes : {5000ull, 3000ull}) {
        File file = context.open(directory_.file("link"), {.mode = OpenMode::create, .durable = true});
        file.write(stamped_buffer(context, bytes).view()).or_throw();
        file.close();
        EXPECT_TRUE(std::filesystem::is_symlink(directory_.file("link")));
        EXPECT_TRUE(std::filesystem::is_symlink(directory_.file("hop")));
        EXPECT_TRUE(test::read_file(directory_.file("far/data")) == stamped(bytes));
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.file("far")), {}), 1);
    std::filesystem::create_symlink("loop", directory_.file("loop"));
    EXPECT_THROW(context.open(directory_.file("loop"), {.mode = OpenMode::create}).close(), Error);
    EXPECT_TRUE(std::filesystem::is_symlink(directory_.file("loop")));
}

TEST_P(Create, an_existing_file_is_kept_when_replacing_is_not_allowed) {
    const Context context = context_over(system());
    write_file(directory_.file("old"), stamped(10));
    EXPECT_THROW(context.open(directory_.file("old"), {.mode = OpenMode::create, .replace = false}), Error);
}

INSTANTIATE_TEST_SUITE_P(OpenFile, Create, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "named_temporary" : "unnamed"; });

TEST(OpenFile, a_failed_rename_throws_and_leaves_nothing_new) {
    const TempDirectory directory;
    OldSystem system;
    system.fail_rename = true;
    const Context context = context_over(&system);
    {
        File file = context.open(directory.file("new"), {.mode = OpenMode::create});
        file.write(stamped_buffer(context, 4096).view()).or_throw();
        EXPECT_THROW(file.close(), Error);
    }
    EXPECT_EQ(directory.entries(), 0u);
}

// The kernel tells each of these errors once.
class ForgetfulSystem : public os::System {
  public:
    int fsync(int fd) override { return once(fail_sync) ? -1 : System::fsync(fd); }
    int fdatasync(int fd) override { return once(fail_sync) ? -1 : System::fdatasync(fd); }
    int sync_file_range(int fd, std::uint64_t offset, std::uint64_t bytes, unsigned flags) override {
        return once(fail_late) ? -1 : System::sync_file_range(fd, offset, bytes, flags);
    }
    bool fail_sync = false;
    bool fail_late = false;

  private:
    static bool once(bool& fails) {
        errno = EIO;
        return std::exchange(fails, false);
    }
};

template <typename Call>
ErrorCode code_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return ErrorCode::ok;
}

TEST(OpenFile, a_failed_sync_fails_every_later_sync_and_close) {
    for (const OpenMode mode : {OpenMode::create, OpenMode::read_write}) {
        const TempDirectory directory;
        write_file(directory.file("data"), stamped(100));
        ForgetfulSystem system;
        const Context context = context_over(&system);
        const Buffer buffer = stamped_buffer(context, 4096);
        File file = context.open(directory.file("data"), {.mode = mode, .durable = mode == OpenMode::create});
        file.write(buffer.view()).or_throw();
        file.sync();
        system.fail_sync = true;
        EXPECT_EQ(code_of([&] { file.sync(); }), ErrorCode::io_error);
        EXPECT_EQ(code_of([&] { file.sync(); }), ErrorCode::io_error);
        EXPECT_EQ(code_of([&] { file.close(); }), ErrorCode::io_error);
        EXPECT_EQ(code_of([&] { file.close(); }), ErrorCode::io_error);
        if (mode == OpenMode::create) {
            EXPECT_TRUE(test::read_file(directory.file("data")) == stamped(100));
        }
    }
}

TEST(OpenFile, a_failed_sync_of_a_durable_write_fails_what_follows) {
    const TempDirectory directory;
    write_file(directory.file("data"), stamped(100));
    ForgetfulSystem system;
    const Context context = context_over(&system);
    const Buffer buffer = stamped_buffer(context, 4096);
    File file = context.open(directory.file("data"), {.mode = OpenMode::read_write});
    TransferOptions durable;
    durable.durable = true;
    system.fail_sync = true;
    EXPECT_EQ(file.write(buffer.view(), 0, durable).error.code, ErrorCode::io_error);
    EXPECT_EQ(file.write(buffer.view(), 0, durable).error.code, ErrorCode::io_error);
    EXPECT_EQ(code_of([&] { file.close(); }), ErrorCode::io_error);
}

TEST(OpenFile, errors_that_the_kernel_tells_late_fail_the_close) {
    for (const OpenMode mode : {OpenMode::create, OpenMode::read_write}) {
        const TempDirectory directory;
        write_file(directory.file("data"), stamped(100));
        ForgetfulSystem system;
        const Context context = context_over(&system);
        File file = context.open(directory.file("data"), {.mode = mode});
        file.write(stamped_buffer(context, 4096).view()).or_throw();
        system.fail_late = true;
        EXPECT_EQ(code_of([&] { file.close(); }), ErrorCode::io_error);
        EXPECT_EQ(code_of([&] { file.close(); }), ErrorCode::io_error);
        if (mode == OpenMode::create) {
            EXPECT_TRUE(test::read_file(directory.file("data")) == stamped(100));
        }
        EXPECT_EQ(directory.entries(), 1u);
    }
}

// Where others may write into the folder, what was a writer's temporary may be a link by the time it is opened again.
TEST(OpenFile, a_temporary_that_became_a_link_is_not_followed) {
    const TempDirectory directory;
    write_file(directory.file("precious"), stamped(100));
    std::filesystem::create_symlink("precious", directory.file(".data.penstock-0"));
    const Context context = context_over();
    EXPECT_NE(code_of([&] { context.open(directory.file(".data.penstock-0"), {.mode = OpenMode::read_write}); }),
              ErrorCode::ok);
    std::filesystem::create_symlink("precious", directory.file("link"));
    EXPECT_EQ(code_of([&] { context.open(directory.file("link"), {.mode = OpenMode::read_write}); }), ErrorCode::ok);
}

TEST(OpenFile, a_name_is_that_of_the_working_folder_in_which_it_was_given) {
    const TempDirectory directory, other;
    write_file(other.file("data"), stamped(10));
    const std::filesystem::path before = std::filesystem::current_path();
    const Context context = context_over();
    std::filesystem::current_path(directory.path());
    File file = context.open("data", {.mode = OpenMode::create});
    file.write(stamped_buffer(context, 4096).view()).or_throw();
    std::filesystem::current_path(other.path());
    file.close();
    std::filesystem::current_path(before);
    EXPECT_TRUE(test::read_file(directory.file("data")) == stamped(4096));
    EXPECT_TRUE(test::read_file(other.file("data")) == stamped(10));
}

// libcufile's one driver finds its handles by this number, whichever context the file is of.
TEST(OpenFile, numbers_are_unique_in_the_process_and_not_used_again) {
    const TempDirectory directory;
    write_file(directory.file("data"), stamped(10));
    std::set<std::uint64_t> numbers;
    for (int i = 0; i < 3; ++i) {
        const context::OpenFile one(os::real_system(), directory.file("data"), {});
        const context::OpenFile other(os::real_system(), directory.file("data"), {});
        numbers.insert({one.handle().id, other.handle().id});
    }
    EXPECT_EQ(numbers.size(), 6u);
}

TEST(OpenFile, opening_a_fifo_is_refused_without_waiting_for_a_writer) {
    const TempDirectory directory;
    ASSERT_EQ(::mkfifo(directory.file("fifo").c_str(), 0600), 0);
    const Context context = context_over();
    try {
        context.open(directory.file("fifo"));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_a_regular_file);
        EXPECT_NE(std::string(error.what()).find("fifo"), std::string::npos);
    }
}

TEST(OpenFile, text_that_the_kernel_makes_is_refused_and_a_file_opened_through_proc_is_not) {
    const Context context = context_over();
    for (const char* name : {"/proc/self/maps", "/sys/kernel/mm/transparent_hugepage/enabled"}) {
        if (::access(name, R_OK) != 0) continue;
        try {
            context.open(name);
            FAIL() << name;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::unsupported) << name;
            EXPECT_NE(std::string(error.what()).find("copy it into a file"), std::string::npos) << error.what();
        }
    }
    EXPECT_GT(context.open("/proc/self/exe").size_bytes(), 0u);
}

TEST(OpenFile, a_file_in_place_of_a_folder_is_told_with_advice) {
    const TempDirectory directory;
    write_file(directory.file("file"), stamped(1));
    const Context context = context_over();
    for (const OpenMode mode : {OpenMode::read, OpenMode::create}) {
        try {
            context.open(directory.file("file/a"), {.mode = mode});
            FAIL();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::not_found);
            EXPECT_NE(error.info().advice.find("a file, not a directory"), std::string::npos) << error.what();
        }
    }
}

TEST(OpenFile, a_closed_file_starts_no_transfer) {
    const TempDirectory directory;
    write_file(directory.file("data"), stamped(5000));
    const Context context = context_over();
    File file = context.open(directory.file("data"));
    file.close();
    const Buffer buffer = context.allocate(5000);
    EXPECT_THROW(file.read(buffer.view()), Error);
}

TEST(OpenFile, a_new_file_hears_of_its_own_extents_alone) {
    const TempDirectory directory;
    const auto make = [&](const char* name) {
        const OpenOptions options{.mode = OpenMode::create};
        return std::make_shared<context::OpenFile>(os::real_system(), directory.file(name), options);
    };
    const auto mended = make("mended");
    const auto torn = make("torn");
    const auto extent = [](const auto& file, std::uint64_t offset_bytes, std::uint64_t bytes) {
        return context::Extent{file, offset_bytes, nullptr, bytes, bytes};
    };
    const std::vector<context::Extent> failed{extent(mended, 10, 20), extent(torn, 0, 50), extent(mended, 90, 0)};
    ErrorInfo error;
    error.code = ErrorCode::io_error;
    for (const auto& file : {mended, torn}) file->write_ended(error, failed);
    const std::vector<context::Extent> repaired{extent(mended, 0, 20), extent(mended, 20, 15)};
    for (const auto& file : {mended, torn}) file->write_ended({}, repaired);
    EXPECT_NO_THROW(mended->close());
    EXPECT_THROW(torn->close(), Error) << "a repair of another file is none of this one";
}

TEST(OpenFile, close_waits_for_transfers_under_way) {
    const TempDirectory directory;
    ContextOptions options;
    options.device = "host";
    options.host.bandwidth_bytes_per_s = 100e6;
    const Context context(options);
    const Buffer buffer = context.allocate(16 * kMiB);
    File file = context.open(directory.file("new"), {.mode = OpenMode::create});
    const Transfer transfer = file.start_write(buffer.view());
    file.close();
    EXPECT_TRUE(transfer.done());
    EXPECT_EQ(std::filesystem::file_size(directory.file("new")), 16 * kMiB);
}

}  // namespace
}  // namespace penstock
