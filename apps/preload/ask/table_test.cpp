// Tests of the descriptors that are looked at, and of what an asker does for one.
#include "preload/ask/table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "preload/ask/askers.hpp"

namespace preload {
namespace {

TEST(Table, a_number_has_one_entry_until_it_is_taken) {
    const auto table = std::make_unique<Table>();
    EXPECT_EQ(table->find(5), nullptr);
    Descriptor* one = table->put(5, "name", {.device = 1, .inode = 2});
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(table->find(5), one);
    EXPECT_STREQ(one->name, "name");
    EXPECT_EQ(table->take(5), one);
    EXPECT_EQ(table->find(5), nullptr);
    EXPECT_EQ(table->take(5), nullptr);
}

TEST(Table, numbers_out_of_its_range_are_left_alone) {
    const auto table = std::make_unique<Table>();
    for (const int number : {-1, kMostNumber, 1 << 30}) {
        EXPECT_EQ(table->put(number, "x", {}), nullptr);
        EXPECT_EQ(table->find(number), nullptr);
        EXPECT_EQ(table->take(number), nullptr);
    }
}

TEST(Table, entries_come_back_and_are_new) {
    const auto table = std::make_unique<Table>();
    for (int i = 0; i < kMostDescriptors; ++i) ASSERT_NE(table->put(i, "x", {}), nullptr);
    EXPECT_EQ(table->put(kMostDescriptors, "x", {}), nullptr);
    Descriptor* one = table->take(7);
    one->of(Direction::write).bytes.add(9);
    one->at_work.end();
    table->give_back(*one);
    Descriptor* again = table->put(9000, "y", {});
    ASSERT_EQ(again, one);
    EXPECT_EQ(again->of(Direction::write).bytes.value(), 0u);
    EXPECT_TRUE(again->at_work.is_open());
}

TEST(Table, of_a_long_name_the_end_is_kept) {
    const auto table = std::make_unique<Table>();
    const std::string name = std::string(1000, 'a') + "/the_end";
    const std::string kept = table->put(3, name.c_str(), {})->name;
    EXPECT_EQ(kept.size(), static_cast<std::size_t>(kMostName - 1));
    EXPECT_EQ(kept.substr(kept.size() - 8), "/the_end");
}

TEST(Table, a_child_knows_nothing_of_what_its_parent_had_open) {
    const auto table = std::make_unique<Table>();
    Descriptor* one = table->put(4, "x", {});
    ASSERT_TRUE(one->at_work.enter());  // of a thread that the child does not have
    table->forget();
    EXPECT_EQ(table->find(4), nullptr);
    EXPECT_FALSE(one->at_work.busy());
}

TEST(Tally, is_what_was_there_before) {
    Tally tally;
    EXPECT_EQ(tally.add(5), 0u);
    EXPECT_EQ(tally.add(7), 5u);
    std::thread([&] { EXPECT_EQ(tally.add(1), 12u); }).join();
    EXPECT_EQ(tally.add(1), 13u);
    EXPECT_EQ(tally.value(), 14u);
}

TEST(Tally, counts_what_threads_and_signal_handlers_add) {
    constexpr std::uint64_t kEach = 400000, kThreads = 3, kSignals = 2000;
    static Tally tally;
    tally.reset();
    tally.add(0);  // this thread owns it
    static std::atomic<std::uint64_t> handled;
    handled = 0;
    const auto before = ::signal(SIGUSR1, [](int) {
        tally.add(1);
        ++handled;
    });
    const pthread_t owner = ::pthread_self();
    std::vector<std::thread> others;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
        others.emplace_back([] {
            for (std::uint64_t k = 0; k < kEach; ++k) tally.add(1);
        });
    }
    std::atomic<bool> sent{false};
    others.emplace_back([&] {
        for (std::uint64_t k = 0; k < kSignals; ++k) {
            ::pthread_kill(owner, SIGUSR1);
            while (handled <= k) std::this_thread::yield();
        }
        sent = true;
    });
    std::uint64_t added = 0;
    for (; !sent; ++added) tally.add(1);
    for (std::thread& one : others) one.join();
    ::signal(SIGUSR1, before);
    EXPECT_EQ(tally.value(), added + kThreads * kEach + kSignals);
}

TEST(Askers, what_was_left_is_asked_for_and_counted) {
    const auto table = std::make_unique<Table>();
    const std::string name = std::filesystem::temp_directory_path() / ("asked." + std::to_string(::getpid()));
    const int number = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(number, 0);
    ASSERT_EQ(::ftruncate(number, 16 * kMiB), 0);
    Descriptor* one = table->put(number, name.c_str(), {});
    EXPECT_FALSE(one->is_refused(Direction::write));  // no caller has looked
    const bool suits = Askers::suits(*one, Direction::write);
    EXPECT_EQ(suits, kernel::unsuited(number, Direction::write) == kernel::Why::none);
    EXPECT_EQ(suits, one->of(Direction::write).why.load() == kernel::Why::none);
    EXPECT_EQ(one->is_refused(Direction::write), !suits);
    EXPECT_FALSE(one->is_refused(Direction::read));
    one->asked[1].leave({0, 3 * kMiB});
    while (Askers::serve(*one)) {
    }
    EXPECT_EQ(value(one->of(Direction::write).asked), 3u * kMiB);
    one->asked[1].leave({4 * kMiB, kMiB});
    one->at_work.end();
    EXPECT_FALSE(Askers::serve(*one));
    EXPECT_EQ(one->asked[1].take().offset, 4 * kMiB);  // no asker took it
    ::close(number);
    std::filesystem::remove(name);
}

}  // namespace
}  // namespace preload
