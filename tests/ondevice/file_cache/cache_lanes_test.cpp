// Turns of calls on one page cache: how many run at once, which runs alone, and that no call is passed over.
#include "ondevice/cache/cache_lanes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <optional>
#include <set>
#include <thread>

#include "ondevice/device_memory.hpp"
#include "ondevice/device_rig.hpp"

namespace penstock::ondevice {
namespace {

using Company = CacheLanes::Company;

class CacheLanesTest : public testing::Test {
  protected:
    void until_waiting(u64 turns) const {
        while (lanes_.waiting() != turns) std::this_thread::yield();
    }

    std::shared_ptr<Device> device_ = test_device();
    DeviceMemory own_{*device_, MemoryKind::device}, shared_{*device_, MemoryKind::pinned};
    CacheLanes lanes_{*device_, {own_, shared_}, 100};
};

TEST_F(CacheLanesTest, each_has_a_stream_and_memory_of_its_own) {
    std::optional<CacheLanes::Turn> turns[CacheLanes::kLanes];
    std::set<const void*> streams, outcomes, answers;
    for (auto& turn : turns) {
        CacheLane& lane = *turn.emplace(lanes_, Company::others);
        streams.insert(lane.stream.get());
        outcomes.insert(lane.outcome);
        answers.insert(lane.answers);
        lane.stream->copy(CopyDirection::to_host, lane.answers, lane.outcome, sizeof(CacheOutcome));
        lane.stream->synchronize();
        EXPECT_EQ(reinterpret_cast<const CacheOutcome*>(lane.answers)->status, 0u);
    }
    for (const auto& different : {streams, outcomes, answers}) EXPECT_EQ(different.size(), CacheLanes::kLanes);
    EXPECT_GE(*std::next(answers.begin()), static_cast<const u8*>(*answers.begin()) + 100);
}

TEST_F(CacheLanesTest, one_more_than_there_are_lanes_waits_for_one) {
    std::optional<CacheLanes::Turn> turns[CacheLanes::kLanes];
    for (auto& turn : turns) turn.emplace(lanes_, Company::others);
    std::atomic<bool> came{false};
    std::thread next([&] {
        const CacheLanes::Turn turn(lanes_, Company::others);
        came = true;
    });
    until_waiting(1);
    EXPECT_FALSE(came);
    turns[1].reset();
    next.join();
    EXPECT_TRUE(came);
}

TEST_F(CacheLanesTest, who_is_alone_waits_for_all_and_who_asks_later_waits_for_it) {
    std::optional<CacheLanes::Turn> first(std::in_place, lanes_, Company::others);
    std::optional<CacheLanes::Turn> second(std::in_place, lanes_, Company::others);
    std::atomic<int> came{0};
    int alone_was = 0, later_was = 0;
    std::thread alone([&] {
        const CacheLanes::Turn turn(lanes_, Company::none);
        alone_was = ++came;
    });
    until_waiting(1);
    std::thread later([&] {
        const CacheLanes::Turn turn(lanes_, Company::others);
        later_was = ++came;
    });
    until_waiting(2);
    first.reset();
    EXPECT_EQ(came, 0) << "a lane is free, and the call that asked first wants all";
    EXPECT_EQ(lanes_.waiting(), 2u);
    second.reset();
    alone.join();
    later.join();
    EXPECT_EQ(alone_was, 1);
    EXPECT_EQ(later_was, 2);
}

TEST_F(CacheLanesTest, nobody_goes_on_beside_who_is_alone) {
    std::atomic<int> beside{0}, most{0}, wrong{0};
    std::atomic<bool> alone{false};
    const auto note = [&](int now) {
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
    };
    std::barrier two(2), all(6);
    std::vector<std::thread> threads;
    for (int self = 0; self < 6; ++self)
        threads.emplace_back([&, self] {
            if (self < 2) {  // two hold a lane at once, whatever the system runs at a time; the others do not ask yet
                const CacheLanes::Turn mine(lanes_, Company::others);
                two.arrive_and_wait();
                note(++beside);
                two.arrive_and_wait();
                --beside;
            }
            all.arrive_and_wait();
            for (int turn = 0; turn < 300; ++turn) {
                const bool wants_all = (turn + self) % 5 == 0;
                const CacheLanes::Turn mine(lanes_, wants_all ? Company::none : Company::others);
                const int now = ++beside;
                if (wants_all) alone = true;
                if (now > static_cast<int>(wants_all ? 1 : CacheLanes::kLanes) || (alone && !wants_all)) ++wrong;
                note(now);
                std::this_thread::yield();
                if (wants_all) alone = false;
                --beside;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(most, 1);
}

}  // namespace
}  // namespace penstock::ondevice
