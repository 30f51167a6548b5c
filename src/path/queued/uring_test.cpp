// Registered files of the io_uring paths: used when worth it, released before a file may be closed, and not used if the
// kernel refuses. For each guarantee a System that withholds calls from the kernel breaks it on purpose.
#include <gtest/gtest.h>
#include <liburing.h>
#include <sys/inotify.h>

#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "conformance/path_suite.hpp"
#include "context/seams.hpp"
#include "path/file_rig.hpp"
#include "path/make.hpp"
#include "path/queued/uring_files.hpp"
#include "penstock/context.hpp"

namespace penstock::conformance {
namespace {

using path::kRegisterFrom;
using path::make_uring_registering;
using path::RingFiles;

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kSize = kRegisterFrom * kBlock;

// Counts the registrations of files, and may change or refuse them.
class Table : public os::System {
  public:
    int io_uring_register(int ring_fd, unsigned opcode, const void* argument, unsigned count) override {
        if (opcode == IORING_REGISTER_FILES && refuse_table != 0) return fail(refuse_table);
        if (opcode != IORING_REGISTER_FILES_UPDATE) {
            return System::io_uring_register(ring_fd, opcode, argument, count);
        }
        const auto& change = *static_cast<const io_uring_files_update*>(argument);
        const int fd = *reinterpret_cast<const std::int32_t*>(change.fds);
        fd < 0 ? ++emptied : ++filled;
        if (fd < 0 ? refuse_emptying != 0 : refuse_filling != 0) return fail(fd < 0 ? refuse_emptying : refuse_filling);
        if (!keeps_first) return System::io_uring_register(ring_fd, opcode, argument, count);
        return kept_[change.offset]++ == 0 ? System::io_uring_register(ring_fd, opcode, argument, count) : 1;
    }
    std::atomic<int> filled = 0, emptied = 0;
    int refuse_table = 0, refuse_filling = 0, refuse_emptying = 0;  // errno
    bool keeps_first = false;                                       // ignores all later changes of a slot's file

  private:
    static int fail(int error) {
        errno = error;
        return -1;
    }
    std::map<std::uint32_t, int> kept_;
};

class UringFiles : public testing::Test {
  protected:
    void SetUp() override {
        try {
            make_path(PathKind::uring_buffered, {});
        } catch (const Error& error) {
            GTEST_SKIP() << error.what();
        }
    }
    std::unique_ptr<Path> make_ring(std::uint32_t depth = kRegisterFrom) {
        PathOptions options;
        options.depth = depth;
        options.system = &table;
        return make_path(PathKind::uring_buffered, options);
    }
    // Submits one operation for each block, all at once, and reaps none.
    void submit_all(Path& on, const FileHandle& file, Bytes& memory) {
        std::vector<Operation> reads;
        for (std::uint64_t at = 0; at < memory.size(); at += kBlock) {
            reads.push_back({Direction::read, &file, at, memory.data() + at, kBlock, at / kBlock});
        }
        EXPECT_EQ(on.submit(reads), reads.size());
    }
    std::vector<Completion> reap(Path& on, std::size_t count) {
        std::vector<Completion> done(count);
        std::size_t got = 0;
        while (got < count) {
            const std::size_t more = on.reap(std::span(done).subspan(got), Deadline::after(std::chrono::seconds(10)));
            if (more == 0) break;
            got += more;
        }
        EXPECT_EQ(got, count);
        return done;
    }
    Bytes read_all(Path& on, const FileHandle& file, std::uint64_t bytes = kSize) {
        Bytes memory(bytes);
        submit_all(on, file, memory);
        for (const Completion& done : reap(on, bytes / kBlock)) EXPECT_EQ(done.bytes, kBlock) << done.system_code;
        return memory;
    }
    Table table;
    const Bytes old_bytes = pattern(kSize, 1), new_bytes = pattern(kSize, 2);
};

TEST_F(UringFiles, a_file_with_many_operations_is_registered_until_the_last_is_given_back) {
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const auto ring = make_ring();
    Bytes memory(kSize);
    submit_all(*ring, file.handle, memory);
    EXPECT_EQ(table.filled, 1);
    for (std::uint64_t left = kRegisterFrom; left > 0; --left) {
        EXPECT_EQ(table.emptied, 0);
        reap(*ring, 1);
    }
    EXPECT_EQ(table.emptied, 1);
    EXPECT_EQ(memory, old_bytes);
    EXPECT_EQ(ring->capabilities().notes, "");
}

TEST_F(UringFiles, operations_that_come_one_by_one_count_as_long_as_some_are_in_flight) {
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const auto ring = make_ring(2);
    Bytes memory(2 * kBlock);
    const Operation read{Direction::read, &file.handle, 0, memory.data(), kBlock, 1};
    ring->submit({&read, 1});
    for (std::uint32_t begun = 1; begun < kRegisterFrom; ++begun) {
        EXPECT_EQ(table.filled, 0) << begun;
        ring->submit({&read, 1});
        reap(*ring, 1);
    }
    EXPECT_EQ(table.filled, 1);
    reap(*ring, 1);
    EXPECT_EQ(table.emptied, 1);
}

TEST_F(UringFiles, a_file_with_few_operations_goes_by_its_descriptor) {
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const auto ring = make_ring();
    for (int round = 0; round < 3; ++round) read_all(*ring, file.handle, kSize - kBlock);
    EXPECT_EQ(table.filled, 0);
}

// A descriptor that was closed and opened again means another file, and so does a FileHandle with the same id.
TEST_F(UringFiles, a_descriptor_used_again_reads_its_new_file) {
    const auto ring = make_ring();
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const OpenFile other(test_folder(), 2, new_bytes, false);
    EXPECT_EQ(read_all(*ring, file.handle), old_bytes);
    ASSERT_GE(::dup2(other.handle.buffered_fd, file.handle.buffered_fd), 0);
    EXPECT_EQ(read_all(*ring, file.handle), new_bytes);
    EXPECT_EQ(table.filled, 2);
}

TEST_F(UringFiles, a_table_that_forgets_nothing_would_read_the_old_file) {
    table.keeps_first = true;
    const auto ring = make_ring();
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const OpenFile other(test_folder(), 2, new_bytes, false);
    EXPECT_EQ(read_all(*ring, file.handle), old_bytes);
    ASSERT_GE(::dup2(other.handle.buffered_fd, file.handle.buffered_fd), 0);
    EXPECT_EQ(read_all(*ring, file.handle), old_bytes);
}

// Notices when the file system frees the space of a deleted file, which is when its last owner closes it.
class Deletion {
  public:
    explicit Deletion(const std::string& name) : events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
        EXPECT_GE(::inotify_add_watch(events_.get(), name.c_str(), IN_DELETE_SELF), 0);
    }
    bool seen() const {
        alignas(inotify_event) char events[4096];
        return ::read(events_.get(), events, sizeof events) > 0;
    }

  private:
    os::UniqueFd events_;
};

class DeletedFile : public UringFiles {
  protected:
    // Returns whether the space of a deleted file is freed when it is closed after its last operation, while another
    // operation keeps the ring busy.
    bool space_given_back() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
        const os::UniqueFd quiet(ends[0]), loud(ends[1]);
        FileHandle pipe, file;
        pipe.buffered_fd = quiet.get();
        std::byte byte{};
        const auto ring = make_ring(kRegisterFrom + 1);
        const Operation waits{Direction::read, &pipe, 0, &byte, 1, 77};
        ring->submit({&waits, 1});

        std::string name = test_folder() + "/penstock-XXXXXX";
        os::UniqueFd opened(::mkstemp(name.data()));
        EXPECT_EQ(::pwrite(opened.get(), old_bytes.data(), kSize, 0), static_cast<ssize_t>(kSize));
        const Deletion deletion(name);
        ::unlink(name.c_str());
        file.buffered_fd = opened.get();
        EXPECT_EQ(read_all(*ring, file), old_bytes);
        EXPECT_FALSE(deletion.seen());
        opened = os::UniqueFd();
        const bool seen = deletion.seen();
        EXPECT_EQ(::write(loud.get(), &byte, 1), 1);
        EXPECT_EQ(reap(*ring, 1).front().tag, 77u);
        return seen;
    }
};

TEST_F(DeletedFile, gives_its_space_back_when_it_is_closed) {
    EXPECT_TRUE(space_given_back());
    EXPECT_EQ(table.filled, 1);
}

TEST_F(DeletedFile, gives_its_space_back_even_where_its_slot_cannot_be_emptied) {
    table.refuse_emptying = ENOMEM;
    EXPECT_TRUE(space_given_back());
    EXPECT_EQ(table.emptied, 1);
}

TEST_F(DeletedFile, would_keep_its_space_behind_a_table_that_forgets_nothing) {
    table.keeps_first = true;
    EXPECT_FALSE(space_given_back());
}

TEST_F(UringFiles, files_beyond_the_slots_go_by_their_descriptors_until_slots_are_free) {
    constexpr std::uint32_t kFiles = RingFiles::kSlots + 4;
    const auto ring = make_ring(kFiles * kRegisterFrom);
    std::vector<std::unique_ptr<OpenFile>> files;
    std::vector<Bytes> memory(kFiles, Bytes(kSize));
    for (std::uint32_t i = 0; i < kFiles; ++i) {
        files.push_back(std::make_unique<OpenFile>(test_folder(), i, pattern(kSize, i), false));
        submit_all(*ring, files[i]->handle, memory[i]);
    }
    reap(*ring, kFiles * kRegisterFrom);
    EXPECT_EQ(table.filled, static_cast<int>(RingFiles::kSlots));
    EXPECT_EQ(table.emptied, table.filled);
    for (std::uint32_t i = 0; i < kFiles; ++i) EXPECT_EQ(memory[i], pattern(kSize, i)) << i;
    EXPECT_EQ(read_all(*ring, files.back()->handle), pattern(kSize, kFiles - 1));
    EXPECT_EQ(table.filled, static_cast<int>(RingFiles::kSlots) + 1);
}

TEST_F(UringFiles, a_kernel_without_them_reads_by_descriptor_and_the_notes_say_so) {
    table.refuse_table = EINVAL;
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const auto ring = make_ring();
    EXPECT_EQ(ring->capabilities().notes, "registered files: Invalid argument; plain descriptors are used");
    EXPECT_EQ(read_all(*ring, file.handle), old_bytes);
    EXPECT_EQ(table.filled, 0);
}

TEST_F(UringFiles, a_refusal_on_the_way_is_noted_and_not_asked_for_again) {
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const auto full = make_ring();
    table.refuse_filling = ENOMEM;
    for (int round = 0; round < 2; ++round) EXPECT_EQ(read_all(*full, file.handle), old_bytes);
    EXPECT_EQ(table.filled, 1);
    EXPECT_NE(full->capabilities().notes.find("registered files: Cannot allocate memory"), std::string::npos);
    table.refuse_filling = 0;
    table.refuse_emptying = ENOMEM;
    const auto stuck = make_ring();
    for (int round = 0; round < 2; ++round) EXPECT_EQ(read_all(*stuck, file.handle), old_bytes);
    EXPECT_EQ(table.emptied, 1);
    EXPECT_NE(stuck->capabilities().notes.find("registered files: Cannot allocate memory"), std::string::npos);
}

TEST_F(UringFiles, operations_on_a_closed_descriptor_say_so_and_those_after_them_are_registered) {
    const OpenFile file(test_folder(), 1, old_bytes, false);
    FileHandle closed;
    closed.buffered_fd = 1'000'000;
    const auto ring = make_ring();
    Bytes memory(kSize);
    submit_all(*ring, closed, memory);
    for (const Completion& done : reap(*ring, kRegisterFrom)) EXPECT_EQ(done.system_code, EBADF);
    const int before = table.filled;
    EXPECT_EQ(read_all(*ring, file.handle), old_bytes);
    EXPECT_EQ(table.filled, before + 1);
    EXPECT_EQ(ring->capabilities().notes, "");
}

TEST_F(UringFiles, operations_of_a_thread_that_may_not_submit_come_back_with_their_tags) {
    const OpenFile file(test_folder(), 1, old_bytes, false);
    const auto ring = make_ring();
    std::thread([&] { EXPECT_EQ(read_all(*ring, file.handle), old_bytes); }).join();
    Bytes memory(kSize);
    submit_all(*ring, file.handle, memory);  // the kernel knows that the ring belongs to the other thread
    std::vector<int> seen(kRegisterFrom);
    for (const Completion& done : reap(*ring, kRegisterFrom)) ++seen.at(done.tag);
    EXPECT_EQ(seen, std::vector<int>(kRegisterFrom, 1));
}

TEST_F(UringFiles, a_transfer_of_small_pieces_goes_by_slots_that_are_empty_when_it_ends) {
    constexpr std::uint64_t kPieces = 1024;
    const OpenFile whole(test_folder(), 1, pattern(2 * kPieces * kBlock, 3), false);
    const Context context = context::make_context({.device = "host"}, {.system = &table});
    const File file = context.open("/proc/self/fd/" + std::to_string(whole.handle.buffered_fd));
    const Buffer buffer = context.allocate(kPieces * kBlock);
    std::vector<Range> pieces;
    for (std::uint64_t i = 0; i < kPieces; ++i) {
        pieces.push_back({&file, 2 * i * kBlock, static_cast<std::byte*>(buffer.data()) + i * kBlock, kBlock});
    }
    const Transfer transfer =
        context.start(Direction::read, pieces, MemoryKind::device, {.path = PathKind::uring_buffered, .strict = true});
    EXPECT_EQ(transfer.result().or_throw().bytes, kPieces * kBlock);
    EXPECT_GT(table.filled, 0);
    EXPECT_EQ(table.emptied, table.filled);
}

// The whole kit, with every file registered from its first operation on.
PathCase eager(const std::string& name, PathKind kind, const std::string& folder) {
    return {name, [=](std::string& why) -> std::unique_ptr<Rig> {
                try {
                    auto files = std::make_unique<FileRig>(kind, folder);
                    files->path(1);
                    return std::make_unique<WrappedRig>(std::move(files), [](auto plain) {
                        PathOptions options;
                        options.depth = plain->capabilities().max_in_flight;
                        return make_uring_registering(plain->capabilities().kind, options, 1);
                    });
                } catch (const std::exception& error) {
                    why = error.what();
                    return nullptr;
                }
            }};
}

INSTANTIATE_TEST_SUITE_P(Registered, PathSuite,
                         path_values({eager("uring_disk", PathKind::uring, test_folder()),
                                      eager("uring_shm", PathKind::uring, "/dev/shm"),
                                      eager("uring_buffered_disk", PathKind::uring_buffered, test_folder()),
                                      eager("uring_buffered_shm", PathKind::uring_buffered, "/dev/shm")}),
                         path_test_name);

}  // namespace
}  // namespace penstock::conformance
