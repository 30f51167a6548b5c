// Mappings and mapped_file: files that shrink and grow while mapped, registration during transfers, and devices that
// refuse.
#include "path/mapped/mappings.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "path/file_rig.hpp"
#include "support/decorators/trace.hpp"

namespace penstock::path {
namespace {

using conformance::Bytes;
using conformance::OpenFile;
using conformance::pattern;

constexpr std::uint64_t kSegment = 64 * kKiB;

// A device that only registers memory and records what is registered.
class Registrar final : public Device {
  public:
    explicit Registrar(std::string refusal = {}) : refusal_(std::move(refusal)) {}
    const std::string& name() const noexcept override { return name_; }
    DeviceInfo info() override { return {}; }
    void* allocate(MemoryKind, std::uint64_t) override { return nullptr; }
    void release(MemoryKind, void*) noexcept override {}
    bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) override {
        ++calls;
        last_read_only = read_only;
        why = refusal_;
        if (!refusal_.empty()) return false;
        const std::lock_guard lock(mutex_);
        held_.insert(memory);
        bytes_ += bytes;
        return true;
    }
    void unregister_host(void* memory) noexcept override {
        const std::lock_guard lock(mutex_);
        held_.erase(memory);
    }
    PointerInfo pointer_info(const void*) override { return {}; }
    std::unique_ptr<Stream> make_stream() override { return nullptr; }
    std::unique_ptr<Event> make_event() override { return nullptr; }
    void enter_thread() override {}
    void enter_call() override {}
    void leave_call() noexcept override {}

    std::size_t held() {
        const std::lock_guard lock(mutex_);
        return held_.size();
    }
    std::atomic<int> calls{0};
    std::atomic<bool> last_read_only{false};

  private:
    const std::string name_ = "registrar";
    const std::string refusal_;
    std::mutex mutex_;
    std::set<void*> held_;
    std::uint64_t bytes_ = 0;
};

std::unique_ptr<Path> mmap_path(const std::shared_ptr<Mappings>& mappings) {
    PathOptions options;
    options.mappings = mappings;
    return make_path(PathKind::mmap, options);
}

Completion run(Path& path, const Operation& operation) {
    Completion done;
    EXPECT_EQ(path.submit({&operation, 1}), 1u);
    EXPECT_EQ(path.reap({&done, 1}, Deadline::after(std::chrono::seconds(10))), 1u);
    return done;
}

TEST(Mappings, a_file_cut_short_while_mapped_reads_short_and_does_not_kill_the_process) {
    const OpenFile file(conformance::test_folder(), 1, pattern(40 * kKiB, 1), true);
    const auto path = mmap_path(std::make_shared<Mappings>());
    Bytes memory(40 * kKiB);
    const Operation read{Direction::read, &file.handle, 0, memory.data(), memory.size(), 1};
    EXPECT_EQ(run(*path, read).bytes, 40 * kKiB);
    ASSERT_EQ(::ftruncate(file.handle.buffered_fd, 10'000), 0);
    EXPECT_EQ(run(*path, read).bytes, 10'000u);
    ASSERT_EQ(::ftruncate(file.handle.buffered_fd, 0), 0);
    const Completion nothing = run(*path, read);
    EXPECT_EQ(nothing.bytes, 0u);
    EXPECT_EQ(nothing.status, ErrorCode::ok);
}

// The negative control of the test above: a plain read of the mapping raises SIGBUS.
TEST(MappingsDeathTest, a_plain_read_of_a_file_cut_short_kills_the_process) {
    const OpenFile file(conformance::test_folder(), 1, pattern(40 * kKiB, 1), true);
    Mappings mappings;
    const volatile std::byte* memory = mappings.view(file.handle, 0, 1).memory;
    ASSERT_EQ(::ftruncate(file.handle.buffered_fd, 0), 0);
    EXPECT_DEATH((void)static_cast<std::byte>(memory[0]), "");
}

bool write_file(const char* name, const std::string& text) {
    const os::UniqueFd file(::open(name, O_WRONLY | O_CLOEXEC));
    return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Works for root and for the root of a user name space. Only this process sees mounts that are made afterwards.
bool private_mounts() {
    const std::string user = "0 " + std::to_string(::geteuid()) + " 1",
                      group = "0 " + std::to_string(::getegid()) + " 1";
    if (::unshare(CLONE_NEWNS) != 0) {
        if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
        if (!write_file("/proc/self/uid_map", user) || !write_file("/proc/self/setgroups", "deny")) return false;
        if (!write_file("/proc/self/gid_map", group)) return false;
    }
    return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Runs in a child that has its own name space, on a tmpfs of 64 KiB. Returns 77 if this machine allows no such name
// space.
int write_to_a_full_file_system() try {
    if (!private_mounts() || ::mount("none", "/tmp", "tmpfs", 0, "size=64k") != 0) return 77;
    const OpenFile file("/tmp", 1, Bytes(4096), true);
    if (::ftruncate(file.handle.buffered_fd, 1 << 20) != 0) return 1;
    const auto path = mmap_path(std::make_shared<Mappings>());
    Bytes memory = pattern(kMiB, 2);
    const Completion fits = run(*path, {Direction::write, &file.handle, 0, memory.data(), kMiB, 1});
    if (fits.status != ErrorCode::ok || fits.bytes == 0 || fits.bytes > 64 * kKiB) return 2;
    const Completion full =
        run(*path, {Direction::write, &file.handle, fits.bytes, memory.data(), kMiB - fits.bytes, 1});
    if (full.status != ErrorCode::no_space) return 3;
    const Completion bad =
        run(*path, {Direction::write, &file.handle, 0, reinterpret_cast<void*>(std::uintptr_t{16}), 8, 1});
    return bad.system_code == EFAULT ? 0 : 4;
} catch (const std::exception&) {
    return 5;  // the child must not go on with its parent's tests
}

TEST(Mappings, writing_into_holes_of_a_full_disk_is_no_space_and_bad_memory_is_not) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(write_to_a_full_file_system());
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user name spaces here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Mappings, a_file_cut_and_grown_by_another_thread_never_faults_the_reader) {
    const OpenFile file(conformance::test_folder(), 1, pattern(256 * kKiB, 1), true);
    std::atomic<bool> stop{false};
    std::thread cutter([&] {
        while (!stop) {
            EXPECT_EQ(::ftruncate(file.handle.buffered_fd, 4096), 0);
            EXPECT_EQ(::ftruncate(file.handle.buffered_fd, 256 * kKiB), 0);
        }
    });
    const auto path = mmap_path(std::make_shared<Mappings>());
    Bytes memory(256 * kKiB);
    for (int i = 0; i < 300; ++i) {
        const bool staging = i % 2 == 0;  // true: a guarded copy; false: the kernel copies
        const Completion done =
            run(*path, {Direction::read, &file.handle, 0, memory.data(), memory.size(), 1, staging});
        EXPECT_EQ(done.status, ErrorCode::ok);
        EXPECT_GE(done.bytes, 4096u);
        run(*path, {Direction::write, &file.handle, 0, memory.data(), memory.size(), 1});
    }
    stop = true;
    cutter.join();
}

TEST(Mappings, writes_past_the_end_are_refused_and_the_file_keeps_its_size) {
    const OpenFile file(conformance::test_folder(), 1, pattern(5000, 1), true);
    const auto path = mmap_path(std::make_shared<Mappings>());
    Bytes memory = pattern(8192, 2);
    const Completion over = run(*path, {Direction::write, &file.handle, 4000, memory.data(), 8192, 1});
    EXPECT_EQ(over.bytes, 1000u);
    const Completion past = run(*path, {Direction::write, &file.handle, 5000, memory.data(), 10, 1});
    EXPECT_EQ(past.status, ErrorCode::no_space);
    EXPECT_TRUE(Mappings::still_inside(file.handle, 0, 5000));
    EXPECT_FALSE(Mappings::still_inside(file.handle, 0, 5001));
}

TEST(Mappings, bad_memory_of_the_caller_is_an_error_not_a_signal) {
    const OpenFile file(conformance::test_folder(), 1, pattern(8192, 1), false);
    const auto path = mmap_path(std::make_shared<Mappings>());
    const Completion done =
        run(*path, {Direction::read, &file.handle, 0, reinterpret_cast<void*>(std::uintptr_t{16}), 8192, 1});
    EXPECT_NE(done.status, ErrorCode::ok);
    EXPECT_EQ(done.system_code, EFAULT);
}

TEST(Mappings, lend_registered_ranges_up_to_the_end_of_a_segment_and_nothing_else) {
    Registrar device;
    const auto mappings = std::make_shared<Mappings>(MappingsOptions{&device, kSegment});
    const Bytes original = pattern(2 * kSegment + 100, 1);
    const OpenFile file(conformance::test_folder(), 1, original, false);
    const auto path = mmap_path(mappings);
    const Operation lend{Direction::read, &file.handle, kSegment - 10, nullptr, 3 * kSegment, 1};
    EXPECT_EQ(run(*path, lend).status, ErrorCode::unsupported);

    std::string why;
    EXPECT_EQ(mappings->register_some(file.handle, 1, why), kSegment);
    EXPECT_TRUE(mappings->registered(file.handle, 0, kSegment));
    EXPECT_FALSE(mappings->registered(file.handle, 0, kSegment + 1));
    EXPECT_TRUE(mappings->register_all(file.handle, why)) << why;
    EXPECT_TRUE(device.last_read_only);
    EXPECT_TRUE(mappings->registered(file.handle, 0, original.size()));

    const Completion done = run(*path, lend);
    EXPECT_EQ(done.bytes, 10u);
    EXPECT_TRUE(done.lent_pinned);
    ASSERT_NE(done.lent, nullptr);
    EXPECT_EQ(std::memcmp(done.lent, original.data() + kSegment - 10, 10), 0);
    const Completion tail = run(*path, {Direction::read, &file.handle, 2 * kSegment, nullptr, kSegment, 1});
    EXPECT_EQ(tail.bytes, 100u);
    const Completion end = run(*path, {Direction::read, &file.handle, original.size(), nullptr, kSegment, 1});
    EXPECT_EQ(end.bytes, 0u);
    EXPECT_EQ(end.status, ErrorCode::ok);
}

TEST(Mappings, a_growing_file_is_mapped_and_registered_on_while_lent_addresses_stay) {
    Registrar device;
    Mappings mappings({&device, kSegment});
    const OpenFile file(conformance::test_folder(), 1, pattern(100, 1), true);
    std::string why;
    ASSERT_TRUE(mappings.register_all(file.handle, why)) << why;
    const std::byte* first = mappings.view(file.handle, 0, 1).memory;
    const Bytes longer = pattern(5 * kSegment, 1);
    ASSERT_EQ(::pwrite(file.handle.buffered_fd, longer.data(), longer.size(), 0), static_cast<ssize_t>(longer.size()));
    EXPECT_EQ(mappings.view(file.handle, 0, 1).memory, first);
    EXPECT_FALSE(mappings.registered(file.handle, 0, longer.size()));
    ASSERT_TRUE(mappings.register_all(file.handle, why)) << why;
    for (std::uint64_t at = 0; at < longer.size();) {
        const Mappings::View view = mappings.view(file.handle, at, longer.size());
        ASSERT_TRUE(view.registered) << at;
        ASSERT_EQ(std::memcmp(view.memory, longer.data() + at, view.bytes), 0) << at;
        at += view.bytes;
    }
}

TEST(Mappings, forget_unregisters_everything) {
    Registrar device;
    Mappings mappings({&device, kSegment});
    const OpenFile file(conformance::test_folder(), 1, pattern(5 * kSegment, 1), false);
    std::string why;
    ASSERT_TRUE(mappings.register_all(file.handle, why));
    EXPECT_EQ(device.held(), 5u);
    mappings.forget(1);
    EXPECT_EQ(device.held(), 0u);
    EXPECT_FALSE(mappings.registered(file.handle, 0, 1));
    mappings.forget(77);
}

TEST(Mappings, a_refusal_is_remembered_with_its_cause_until_forget) {
    Registrar device("EINVAL: file mappings of ext4 cannot be pinned");
    Mappings mappings({&device, kSegment});
    const OpenFile file(conformance::test_folder(), 1, pattern(100, 1), false);
    std::string why;
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(mappings.register_all(file.handle, why));
        EXPECT_NE(why.find("ext4"), std::string::npos);
    }
    EXPECT_EQ(device.calls, 1);
    EXPECT_NE(mappings.refusal(file.handle).find("ext4"), std::string::npos);
    mappings.forget(1);
    EXPECT_EQ(mappings.refusal(file.handle), "");
    EXPECT_FALSE(mappings.register_all(file.handle, why));
    EXPECT_EQ(device.calls, 2);
}

TEST(Mappings, without_a_device_nothing_registers_and_the_cause_says_so) {
    Mappings mappings;
    const OpenFile file(conformance::test_folder(), 1, pattern(100, 1), false);
    std::string why;
    EXPECT_FALSE(mappings.register_all(file.handle, why));
    EXPECT_NE(why.find("no device"), std::string::npos);
}

// Returns how many bytes of the mapping at `memory` the kernel counts as mapped now, or nothing if there is no such
// mapping.
std::optional<std::uint64_t> resident_bytes(const std::byte* memory) {
    char start[40];
    std::snprintf(start, sizeof start, "%lx-", reinterpret_cast<unsigned long>(memory));
    std::ifstream maps("/proc/self/smaps");
    bool found = false;
    for (std::string line; std::getline(maps, line);) {
        if (line.rfind(start, 0) == 0) found = true;
        if (found && line.rfind("Rss:", 0) == 0) return std::stoull(line.substr(4)) * kKiB;
    }
    return std::nullopt;
}

std::uint64_t mapped_bytes(const std::byte* memory) {
    const auto bytes = resident_bytes(memory);
    EXPECT_TRUE(bytes) << "no mapping starts at " << memory;
    return bytes.value_or(0);
}

TEST(Mappings, of_a_large_file_read_piece_by_piece_little_stays_mapped) {
    // A fault maps up to 64 KiB around it, so a read may map a little of the neighbouring block again.
    constexpr std::uint64_t kBytes = 16 * kMiB, kPiece = 16 * kKiB, kBlock = 512 * kKiB;
    constexpr std::uint64_t kMost = (9 + 4) * kBlock + kBytes / kBlock * 64 * kKiB;  // 4: the test does not call tidy()
    const Bytes whole = pattern(kBytes, 1);
    const OpenFile file(conformance::test_folder(), 1, whole, true);
    const auto mappings = std::make_shared<Mappings>(MappingsOptions{nullptr, kBlock});
    const auto path = mmap_path(mappings);
    const std::byte* memory = mappings->view(file.handle, 0, kBytes).memory;
    Bytes piece(kPiece);
    const auto read_each = [&](std::uint64_t step) {
        for (std::uint64_t at = 0; at < kBytes; at += step) {
            Operation read{Direction::read, &file.handle, at, piece.data(), kPiece, 1};
            read.staging = true;
            ASSERT_EQ(run(*path, read).bytes, kPiece);
            ASSERT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<std::ptrdiff_t>(at)));
        }
    };
    read_each(kPiece);
    EXPECT_LE(mapped_bytes(memory), kMost);
    read_each(2 * kPiece);  // blocks that are not read to their end
    EXPECT_LE(mapped_bytes(memory), kMost);

    // The negative control: reading without unmapping.
    std::uint64_t sum = 0;
    for (std::uint64_t at = 0; at < kBytes; at += 4 * kKiB) sum += static_cast<std::uint64_t>(memory[at]);
    EXPECT_NE(sum, 0u);
    EXPECT_GE(mapped_bytes(memory), kBytes / 2);
}

// Unmapping takes longer than copying a part, and a slot waits for each of its parts. So the operation completes first.
TEST(Mappings, copied_pages_are_unmapped_after_the_operation_is_told_to_be_done) {
    constexpr std::uint64_t kBlock = 256 * kKiB;
    const OpenFile file(conformance::test_folder(), 1, pattern(2 * kBlock, 1), true);
    const auto mappings = std::make_shared<Mappings>(MappingsOptions{nullptr, kBlock});
    auto path = traced(mmap_path(mappings), std::make_shared<TraceLog>());
    const std::byte* memory = mappings->view(file.handle, 0, kBlock).memory;
    Bytes block(kBlock);
    Operation read{Direction::read, &file.handle, 0, block.data(), kBlock, 1};
    read.staging = true;
    ASSERT_EQ(run(*path, read).bytes, kBlock);
    EXPECT_GE(mapped_bytes(memory), kBlock);
    path->tidy();
    EXPECT_LE(mapped_bytes(memory), kBlock / 4);  // what the fault at the block's end mapped around it

    // forget() may come in between: `unneeded` keeps the mapping alive until tidy().
    ASSERT_EQ(run(*path, read).bytes, kBlock);
    mappings->forget(1);
    EXPECT_GE(mapped_bytes(memory), kBlock);
    path->tidy();
    EXPECT_FALSE(resident_bytes(memory));
}

// For ThreadSanitizer: readers and a registering thread run while files come and go.
TEST(Mappings, serve_many_threads_at_once) {
    Registrar device;
    const auto mappings = std::make_shared<Mappings>(MappingsOptions{&device, kSegment});
    const Bytes original = pattern(8 * kSegment, 1);
    const OpenFile shared(conformance::test_folder(), 1, original, false);
    std::vector<std::thread> threads;
    for (int reader = 0; reader < 3; ++reader) {
        threads.emplace_back([&] {
            const auto path = mmap_path(mappings);
            Bytes memory(kSegment);
            for (std::uint64_t i = 0; i < 100; ++i) {
                const std::uint64_t at = i % 8 * kSegment;
                EXPECT_EQ(run(*path, {Direction::read, &shared.handle, at, memory.data(), kSegment, i}).bytes,
                          kSegment);
                EXPECT_EQ(std::memcmp(memory.data(), original.data() + at, kSegment), 0);
                mappings->registered(shared.handle, 0, original.size());
            }
        });
    }
    for (int registrar = 0; registrar < 2; ++registrar) {
        threads.emplace_back([&] {
            std::string why;
            while (mappings->register_some(shared.handle, 1, why) > 0) std::this_thread::yield();
        });
    }
    threads.emplace_back([&] {
        for (std::uint64_t id = 2; id < 30; ++id) {
            const OpenFile file(conformance::test_folder(), id, pattern(5000, id), false);
            std::string why;
            EXPECT_TRUE(mappings->register_all(file.handle, why));
            mappings->forget(id);
        }
    });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(device.held(), 8u);
    EXPECT_TRUE(mappings->registered(shared.handle, 0, original.size()));
}

}  // namespace
}  // namespace penstock::path
