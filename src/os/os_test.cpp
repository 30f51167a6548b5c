// What the system reports of a real file on a disk and of one on tmpfs, and the owners of descriptors and memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "os/file/direct.hpp"
#include "os/file/file_stat.hpp"
#include "os/limits.hpp"
#include "os/memory/arena.hpp"
#include "os/memory/numa.hpp"
#include "os/process_io.hpp"
#include "os/test_file.hpp"
#include "penstock/error.hpp"

namespace penstock::os {
namespace {

class CountedCloses final : public System {
  public:
    int close(int fd) override {
        ++closes;
        return System::close(fd);
    }
    int closes = 0;
};

TEST(UniqueFd, closes_once_through_its_system_wherever_it_was_moved) {
    CountedCloses system;
    {
        UniqueFd first(::open("/dev/null", O_RDONLY), system);
        UniqueFd second(std::move(first));
        UniqueFd third;
        third = std::move(second);
        EXPECT_FALSE(first);
        EXPECT_EQ(system.closes, 0);
    }
    EXPECT_EQ(system.closes, 1);
    UniqueFd released(::open("/dev/null", O_RDONLY), system);
    ::close(released.release());
    EXPECT_EQ(system.closes, 1);
}

TEST(System, link_fd_names_a_file_that_had_no_name) {
    const UniqueFd fd(::open(disk_folder().c_str(), O_TMPFILE | O_RDWR, 0600));
    if (!fd) GTEST_SKIP() << disk_folder() << " has no O_TMPFILE";
    const std::string name = disk_folder() + "/penstock-linked-" + std::to_string(::getpid());
    ASSERT_EQ(real_system().link_fd(fd.get(), AT_FDCWD, name.c_str()), 0);
    EXPECT_EQ(::access(name.c_str(), F_OK), 0);
    EXPECT_EQ(real_system().link_fd(fd.get(), AT_FDCWD, name.c_str()), -1);
    EXPECT_EQ(errno, EEXIST);
    EXPECT_EQ(real_system().unlink(AT_FDCWD, name.c_str()), 0);
}

TEST(FileStat, tell_type_size_and_file_system) {
    const TestFile file(shm_folder(), 12'345);
    const FileStat facts = file_stat(file.fd(), "x");
    EXPECT_EQ(facts.type, FileType::regular);
    EXPECT_EQ(facts.size_bytes, 12'345u);
    EXPECT_EQ(facts.file_system, "tmpfs");
    EXPECT_EQ(facts.mount_point, "/dev/shm");
    EXPECT_FALSE(facts.mount_options.empty());
    const FileStat quick = stat_without_mount(file.fd(), "x");
    EXPECT_EQ(quick.size_bytes, 12'345u);
    EXPECT_EQ(quick.file_system, "tmpfs");
    EXPECT_EQ(quick.mount_point, "");
    const UniqueFd folder(::open("/", O_RDONLY)), null(::open("/dev/null", O_RDONLY));
    EXPECT_EQ(file_stat(folder.get(), "/").type, FileType::directory);
    EXPECT_EQ(file_stat(null.get(), "/dev/null").type, FileType::device);
}

TEST(FileStat, of_a_closed_descriptor_name_the_file) {
    try {
        file_stat(-1, "gone.bin");
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().file, "gone.bin");
        EXPECT_EQ(error.info().system_code, EBADF);
    }
}

TEST(FileStat, mountinfo_lines_parse_with_and_without_optional_fields) {
    Mount mount;
    ASSERT_TRUE(
        parse_mount("36 35 98:1 / /mnt rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue", mount));
    EXPECT_EQ(mount.id, 36);
    EXPECT_EQ(mount.device_major, 98u);
    EXPECT_EQ(mount.device_minor, 1u);
    EXPECT_EQ(mount.mount_point, "/mnt");
    EXPECT_EQ(mount.file_system, "ext3");
    EXPECT_EQ(mount.options, "rw,noatime,rw,errors=continue");
    ASSERT_TRUE(parse_mount("1 2 0:5 / /x rw - tmpfs none rw", mount));
    EXPECT_EQ(mount.file_system, "tmpfs");
    EXPECT_FALSE(parse_mount("1 2 0:5 / /x rw", mount));
    EXPECT_FALSE(parse_mount("", mount));
}

TEST(FileStat, unknown_magic_is_said_as_a_number) {
    EXPECT_EQ(file_system_from_magic(0xEF53), "ext4");
    EXPECT_EQ(file_system_from_magic(0x1234), "unknown (0x1234)");
}

// Reads at the found alignment work. Negative control: half of it fails, if the file system cares.
void expect_direct_reads(const TestFile& file) {
    const DirectFile direct = open_direct(real_system(), file.fd());
    if (!direct.facts.usable) GTEST_SKIP() << direct.facts.cause;
    EXPECT_GT(direct.facts.offset_alignment, 0u);
    EXPECT_GT(direct.facts.memory_alignment, 0u);
    alignas(65'536) static unsigned char memory[3 * 65'536];
    const std::size_t step = direct.facts.offset_alignment;
    EXPECT_EQ(::pread(direct.fd.get(), memory + direct.facts.memory_alignment, step, static_cast<off_t>(step)),
              static_cast<ssize_t>(step))
        << direct.facts.source;
}

TEST(Direct, works_at_the_alignment_found_on_disk) { expect_direct_reads(TestFile(disk_folder(), 1 << 20)); }

// tmpfs accepts O_DIRECT since Linux 6.6 but copies from the page cache.
TEST(Direct, is_refused_of_files_that_lie_in_memory) {
    const TestFile file(shm_folder(), 1 << 20);
    if (cached_by(file.fd()) != CachedBy::memory) GTEST_SKIP() << shm_folder() << " is not in memory";
    const DirectFile direct = open_direct(real_system(), file.fd());
    EXPECT_FALSE(direct.facts.usable);
    EXPECT_FALSE(direct.fd);
    EXPECT_NE(direct.facts.cause.find("lie in memory"), std::string::npos) << direct.facts.cause;
}

TEST(Direct, probe_agrees_with_statx) {
    const TestFile file(disk_folder(), 1 << 20);
    const DirectFile direct = open_direct(real_system(), file.fd());
    if (direct.facts.source != "statx" || !direct.facts.usable) GTEST_SKIP() << "statx has no answer here";
    DirectFacts probed;
    probe_direct(real_system(), direct.fd.get(), probed);
    EXPECT_TRUE(probed.usable);
    EXPECT_LE(probed.offset_alignment, std::max(direct.facts.offset_alignment, 512u));
}

// A file system that opens with O_DIRECT and then requires `alignment`, or refuses every read.
class Picky final : public System {
  public:
    explicit Picky(std::size_t alignment) : alignment_(alignment) {}
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        if (alignment_ == 0 || bytes % alignment_ != 0 || offset % alignment_ != 0 || address % alignment_ != 0) {
            errno = EINVAL;
            return -1;
        }
        return System::pread(fd, memory, bytes, offset);
    }

  private:
    std::size_t alignment_;
};

TEST(Waits, of_a_thread_are_those_in_which_it_gave_its_core_up) {
    System& system = real_system();
    const long before = system.waits_of_thread();
    for (int i = 0; i < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(system.waits_of_thread() - before, 3);
    long others = 0;
    std::thread([&] { others = system.waits_of_thread(); }).join();
    EXPECT_LT(others, before + 3);
}

TEST(Direct, probe_finds_the_alignment_that_reads_need) {
    const TestFile file(disk_folder(), 1 << 20);
    for (const std::uint32_t wanted : {512u, 4096u, 65'536u}) {
        Picky system(wanted);
        DirectFacts facts;
        probe_direct(system, file.fd(), facts);
        EXPECT_TRUE(facts.usable);
        EXPECT_EQ(facts.offset_alignment, wanted);
        EXPECT_EQ(facts.memory_alignment, wanted);
    }
}

TEST(Direct, probe_believes_the_transfer_not_the_open) {
    const TestFile file(disk_folder(), 1 << 20);
    Picky system(0);
    DirectFacts facts;
    probe_direct(system, file.fd(), facts);
    EXPECT_FALSE(facts.usable);
    EXPECT_NE(facts.cause.find("Invalid argument"), std::string::npos);
}

class NoDirect final : public System {
  public:
    int open(const char*, int, unsigned) override {
        errno = EINVAL;
        return -1;
    }
};

TEST(Direct, refusal_at_open_is_an_answer_with_a_cause) {
    const TestFile file(disk_folder(), 4096);
    NoDirect system;
    const DirectFile direct = open_direct(system, file.fd());
    EXPECT_FALSE(direct.facts.usable);
    EXPECT_FALSE(direct.fd);
    EXPECT_NE(direct.facts.cause.find("open with O_DIRECT"), std::string::npos);
}

TEST(Arena, is_aligned_and_keeps_its_bytes_when_moved) {
    Arena arena({.bytes = 3 * kMiB});
    EXPECT_EQ(arena.bytes(), 4 * kMiB);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.memory().data()) % (2 * kMiB), 0u);
    arena.memory()[5] = std::byte{7};
    arena.touch();
    EXPECT_EQ(arena.memory()[5], std::byte{7});
    Arena moved(std::move(arena));
    EXPECT_EQ(moved.memory()[5], std::byte{7});
    EXPECT_EQ(arena.bytes(), 0u);
}

TEST(Arena, every_page_is_there_once_it_is_touched) {
    for (const std::uint64_t bytes : {2 * kMiB, 16 * kMiB, 50 * kMiB, 130 * kMiB}) {
        const Arena arena({.bytes = bytes});
        arena.memory()[bytes - 1] = std::byte{9};
        arena.touch();
        std::vector<unsigned char> there(arena.bytes() / page_bytes());
        ASSERT_EQ(::mincore(arena.memory().data(), arena.bytes(), there.data()), 0);
        EXPECT_TRUE(std::all_of(there.begin(), there.end(), [](unsigned char page) { return (page & 1) != 0; }));
        EXPECT_EQ(arena.memory()[bytes - 1], std::byte{9});
    }
}

TEST(Arena, too_large_is_out_of_memory_with_the_size) {
    try {
        Arena arena({.bytes = 1ull << 60});
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        EXPECT_EQ(error.info().length_bytes, 1ull << 60);
        EXPECT_FALSE(error.info().advice.empty());
    }
    EXPECT_THROW(Arena({.bytes = 0}), Error);
}

TEST(Numa, lists_parse_and_rubbish_ends_them) {
    EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
    EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
    EXPECT_EQ(parse_cpu_list("2\n"), std::vector<int>{2});
    EXPECT_EQ(parse_cpu_list("1,x"), std::vector<int>{1});
}

TEST(Numa, an_unknown_node_changes_nothing) {
    EXPECT_FALSE(place_thread_near(-1));
    EXPECT_FALSE(place_thread_near(100'000));
    Arena arena({.bytes = 2 * kMiB, .numa_node = -1});
    EXPECT_FALSE(arena.near_node());
    EXPECT_FALSE(place_memory_near(100'000, arena.memory()));
}

TEST(ProcessIo, counts_what_this_process_reads) {
    const auto before = process_io();
    if (!before) GTEST_SKIP() << "/proc/self/io cannot be read here";
    const TestFile file(disk_folder(), 100'000);
    std::vector<char> memory(100'000);
    ASSERT_EQ(::pread(file.fd(), memory.data(), memory.size(), 0), 100'000);
    const ProcessIo moved = difference(*process_io(), *before);
    EXPECT_GE(moved.read_chars, 100'000u);
    EXPECT_GE(moved.write_chars, 100'000u);
    EXPECT_GE(moved.read_calls, 1u);
    EXPECT_LT(moved.read_chars, 1'000'000u);
}

TEST(ProcessIo, a_file_system_without_a_disk_has_no_disk_counters) {
    EXPECT_FALSE(disk_io(0, 5));
    EXPECT_FALSE(disk_io(4000, 77));
    const TestFile file(disk_folder(), 1);
    const FileStat facts = file_stat(file.fd(), "x");
    if (!disk_io(facts.device_major, facts.device_minor)) GTEST_SKIP() << facts.file_system << " has no block device";
    const TestFile direct_file(disk_folder(), 1 << 20);
    ASSERT_EQ(::fsync(direct_file.fd()), 0);
    EXPECT_GT(disk_io(facts.device_major, facts.device_minor)->write_bytes, 0u);
}

TEST(CpuTime, grows_with_work) {
    const CpuTime before = cpu_time();
    volatile double sum = 0;
    for (int i = 0; i < 20'000'000; ++i) sum = sum + i;
    EXPECT_GT(difference(cpu_time(), before).user_s, 0.0);
}

TEST(Limits, refused_abilities_say_why) {
    const Limits found = limits();
    EXPECT_FALSE(found.kernel.empty());
    EXPECT_GE(found.page_bytes, 4096u);
    EXPECT_GE(found.cpus, 1u);
    for (const Ability& ability : {found.io_uring, probe_native_aio(), found.cachestat}) {
        EXPECT_EQ(ability.usable, ability.cause.empty());
    }
}

}  // namespace
}  // namespace penstock::os
