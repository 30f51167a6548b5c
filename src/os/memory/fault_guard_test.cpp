// A guarded copy survives when the file behind its mapping is gone. Every other fault reaches its usual handler.
#include "os/memory/fault_guard.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace penstock::os {
namespace {

constexpr std::size_t kGuardedBytes = 1 << 20;

// A mapped memory file that is cut to `keep` bytes.
class Mapping {
  public:
    explicit Mapping(std::size_t keep) : fd_(::memfd_create("fault_guard_test", 0)) {
        EXPECT_EQ(::ftruncate(fd_, kGuardedBytes), 0);
        memory_ = static_cast<char*>(::mmap(nullptr, kGuardedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
        std::memset(memory_, 7, kGuardedBytes);
        EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(keep)), 0);
    }
    ~Mapping() {
        ::munmap(memory_, kGuardedBytes);
        ::close(fd_);
    }
    char* memory() const { return memory_; }

  private:
    int fd_;
    char* memory_;
};

TEST(FaultGuard, copies_what_is_there) {
    const FaultGuard guard;
    const Mapping whole(kGuardedBytes);
    std::vector<char> to(kGuardedBytes);
    ASSERT_TRUE(guard.usable());
    EXPECT_TRUE(guard.copy(to.data(), whole.memory(), kGuardedBytes));
    EXPECT_EQ(std::memcmp(to.data(), whole.memory(), kGuardedBytes), 0);
}

TEST(FaultGuard, a_file_cut_short_ends_the_copy_and_nothing_else) {
    const FaultGuard guard;
    const Mapping cut(kGuardedBytes / 2);
    std::vector<char> to(kGuardedBytes);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(guard.copy(to.data(), cut.memory(), kGuardedBytes));
    EXPECT_TRUE(guard.copy(to.data(), cut.memory(), kGuardedBytes / 2));
}

TEST(FaultGuard, copies_many_up_to_the_one_that_faults) {
    const FaultGuard guard;
    const Mapping cut(kGuardedBytes / 2), whole(kGuardedBytes);
    std::vector<char> to(3 * kGuardedBytes);
    const std::array<GuardedCopies::Piece, 3> pieces{{{to.data(), whole.memory(), kGuardedBytes},
                                                      {&to[kGuardedBytes], cut.memory(), kGuardedBytes},
                                                      {&to[2 * kGuardedBytes], whole.memory(), 1}}};
    std::vector<std::size_t> told;
    told.reserve(8);
    const auto tell = [](void* whom, std::size_t i) { static_cast<std::vector<std::size_t>*>(whom)->push_back(i); };
    GuardedCopies copies;
    EXPECT_EQ(copies.copy_each(pieces, tell, &told), 1u);
    EXPECT_EQ(told, std::vector<std::size_t>{0});
    EXPECT_EQ(std::memcmp(to.data(), whole.memory(), kGuardedBytes), 0);
    EXPECT_EQ(copies.copy_each(std::span(pieces).subspan(2), tell, &told), 1u);
    EXPECT_EQ(copies.copy_each({}, tell, &told), 0u);
}

// Copies of small pieces overlap. Whichever piece faults, all before it are copied, each is reported once and in order,
// and those after it can be copied later.
TEST(FaultGuard, of_pieces_side_by_side_the_one_that_faults_is_found) {
    constexpr std::size_t kPieces = 11;
    const FaultGuard guard;
    const Mapping gone(0), whole(kGuardedBytes);
    for (std::size_t i = 0; i < kGuardedBytes; ++i) whole.memory()[i] = static_cast<char>(i * 7 + (i >> 8));
    for (const std::size_t bytes : {std::size_t{256}, std::size_t{512}, std::size_t{4096}, std::size_t{4000}}) {
        for (std::size_t bad = 0; bad <= kPieces; ++bad) {
            std::vector<char> to(kPieces * bytes);
            std::vector<GuardedCopies::Piece> pieces;
            for (std::size_t i = 0; i < kPieces; ++i)
                pieces.push_back({&to[i * bytes], (i == bad ? gone : whole).memory() + i * 5000, bytes});
            std::vector<std::size_t> told, wanted(std::min(bad, kPieces));
            std::iota(wanted.begin(), wanted.end(), std::size_t{0});
            told.reserve(kPieces);
            const auto tell = [](void* whom, std::size_t i) {
                static_cast<std::vector<std::size_t>*>(whom)->push_back(i);
            };
            GuardedCopies copies;
            ASSERT_EQ(copies.copy_each(pieces, tell, &told), wanted.size()) << bytes << " bytes, piece " << bad;
            EXPECT_EQ(told, wanted);
            if (bad < kPieces) {
                const auto rest = std::span(pieces).subspan(bad + 1);
                EXPECT_EQ(copies.copy_each(rest, nullptr, nullptr), rest.size());
            }
            for (std::size_t i = 0; i < kPieces; ++i)
                EXPECT_TRUE(i == bad || std::memcmp(&to[i * bytes], pieces[i].from, bytes) == 0) << i;
        }
    }
}

TEST(FaultGuard, threads_fault_independently) {
    const FaultGuard guard;
    const Mapping cut(0);
    const Mapping whole(kGuardedBytes);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::vector<char> to(kGuardedBytes);
            for (int i = 0; i < 200; ++i) {
                if (guard.copy(to.data(), (t % 2 == 0 ? cut : whole).memory(), kGuardedBytes) != (t % 2 == 1)) ++wrong;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

// More threads than the table has entries each hold one, as the service threads of many caches do.
TEST(FaultGuard, a_copy_is_made_however_many_threads_keep_an_entry) {
    const FaultGuard guard;
    const Mapping whole(kGuardedBytes), cut(0);
    std::atomic<int> usable{0}, there{0};
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 300; ++i) {
        threads.emplace_back([&] {
            const GuardedCopies kept;
            usable += kept.usable() ? 1 : 0;
            ++there;
            over.wait(false);
        });
    }
    while (there != 300) std::this_thread::yield();
    EXPECT_LT(usable, 300);
    EXPECT_GT(usable, 100);
    std::vector<char> to(kGuardedBytes);
    EXPECT_TRUE(guard.copy(to.data(), whole.memory(), kGuardedBytes));
    EXPECT_FALSE(guard.copy(to.data(), cut.memory(), kGuardedBytes));
    over = true;
    over.notify_all();
    for (std::thread& one : threads) one.join();
}

// The thread's own entry does not disturb a single copy that faults.
TEST(FaultGuard, a_thread_with_an_entry_may_copy_by_the_guard_too) {
    const FaultGuard guard;
    const Mapping cut(0);
    std::vector<char> to(kGuardedBytes);
    const GuardedCopies kept;
    EXPECT_FALSE(guard.copy(to.data(), cut.memory(), kGuardedBytes));
}

TEST(FaultGuard, an_unguarded_fault_still_ends_the_process) {
    EXPECT_EXIT(
        {
            struct sigaction plain {};  // a sanitizer's own handler would end the process differently
            plain.sa_handler = SIG_DFL;
            ::sigaction(SIGBUS, &plain, nullptr);
            const FaultGuard guard;
            const Mapping cut(0);
            std::vector<char> to(kGuardedBytes);
            guard.copy(to.data(), cut.memory(), kGuardedBytes);
            const volatile char byte = cut.memory()[5];
            ::_exit(byte == 0 ? 3 : 4);
        },
        testing::KilledBySignal(SIGBUS), "");
}

std::atomic<int> seen_by_user{0};
void users_handler(int, siginfo_t*, void*) {
    ++seen_by_user;
    ::_exit(42);
}

TEST(FaultGuard, the_handler_from_before_gets_what_is_not_ours_and_is_restored) {
    EXPECT_EXIT(
        {
            struct sigaction mine {};
            mine.sa_sigaction = users_handler;
            mine.sa_flags = SA_SIGINFO;
            ::sigaction(SIGBUS, &mine, nullptr);
            { const FaultGuard guard; }
            struct sigaction now {};
            ::sigaction(SIGBUS, nullptr, &now);
            if (now.sa_sigaction != users_handler) ::_exit(1);
            const FaultGuard guard;
            const Mapping cut(0);
            const volatile char byte = cut.memory()[5];
            ::_exit(byte == 0 ? 3 : 4);
        },
        testing::ExitedWithCode(42), "");
}

TEST(FaultGuard, who_replaces_the_handler_makes_it_unusable) {
    const FaultGuard guard;
    struct sigaction mine {};
    struct sigaction ours {};
    mine.sa_sigaction = users_handler;
    mine.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &mine, &ours);
    EXPECT_FALSE(guard.usable());
    ::sigaction(SIGBUS, &ours, nullptr);
    EXPECT_TRUE(guard.usable());
}

}  // namespace
}  // namespace penstock::os
