// Lanes of a warp that call together, in the model of a warp: each gets a slot and an answer of its own, and records
// that they append go in fewer calls, each of them whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "ondevice/warp/warp_rig.hpp"
#include "penstock/ondevice/calls.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kCallingWarps = 2, kLanes = 4, kRounds = 6, kSlots = 3, kRoom = 48;

// The mailbox, and the host as a warp of one working lane.
class WarpedHost {
  public:
    WarpedHost() { Slots<Warped>{free_bits_, words_, kSlots}.reset(); }

    Calls<Warped> calls() {
        return {{{free_bits_, words_, kSlots}, descriptors_, completions_, data_, kSlotBytes, 0, &abandoned_, marks_},
                ~u64{0}};
    }
    void lane_ended() { Warped::add<Scope::device>(&ended_, 1u); }
    void serve() {
        MailboxServer<Warped, true> end{descriptors_, completions_, seen_laps_, 0, kSlots, kSlots - 1};
        while (Warped::load<Scope::device>(&ended_) != kCallingWarps * kLanes) {
            u32 slot = 0;
            Request request{};
            if (!end.next(slot, request)) {
                Warped::pause(200);
                continue;
            }
            u8* const memory = data_ + slot * kSlotBytes;
            CallHead head{};
            while (!load_head<Warped>(memory, end.lap(slot), false, head)) Warped::pause(200);
            auto* const behind = reinterpret_cast<char*>(memory + sizeof head);
            if (request.file == static_cast<u16>(HostWork::write)) appended.append(behind, request.bytes);
            else behind[0] = static_cast<char>(head.block + 1);
            ++served;
            answer_call(end, memory, slot, {Status::ok, 1, static_cast<long long>(request.offset_bytes) * 2});
        }
    }
    u32 free_slots() const { return count(free_bits_[0]); }

    std::string appended;
    u32 served = 0;

  private:
    static constexpr u32 kSlotBytes = kRoom + sizeof(CallHead);
    u32 free_bits_[1] = {}, words_[kSlots] = {};
    MailboxAnswer completions_[kSlots] = {};
    u32 seen_laps_[kSlots] = {}, marks_[kSlots] = {};
    MailboxDescriptor descriptors_[kSlots] = {};
    alignas(16) u8 data_[kSlots * kSlotBytes] = {};
    u32 abandoned_ = 0, ended_ = 0;
};

// Runs `body(calls, warp, lane, round)` on all lanes that call.
template <class Body>
void run_lanes(WarpedHost& host, u64 seed, const Body& body) {
    Warps({.warps = kCallingWarps + 1, .lanes = kLanes, .seed = seed, .loose = seed % 2 == 0})
        .run([&](u32 warp, u32 lane) {
            if (warp == kCallingWarps) {
                if (lane == 0) host.serve();
                return;
            }
            for (u32 round = 0; round < kRounds; ++round) body(host.calls(), warp, lane, round);
            host.lane_ended();
        });
}

TEST(CallsOfAWarp, lanes_get_their_own_answers) {
    for (u64 seed = 1; seed <= 10; ++seed) {
        WarpedHost host;
        u32 wrong = 0;
        run_lanes(host, seed, [&](const Calls<Warped>& calls, u32 warp, u32 lane, u32 round) {
            const char argument = static_cast<char>(warp * 64 + lane * 8 + round);
            char answer = 0;
            const u64 value = warp * 100 + lane * 10 + round;
            const CallEnd end = calls.call({20, value, &argument, 1, &answer, 1});
            if (!end.ok() || answer != argument + 1 || end.value != static_cast<long long>(value * 2))
                Warped::add<Scope::device>(&wrong, 1u);
        });
        EXPECT_EQ(wrong, 0u) << "seed " << seed;
        EXPECT_EQ(host.served, kCallingWarps * kLanes * kRounds);
        EXPECT_EQ(host.free_slots(), kSlots);
    }
}

TEST(CallsOfAWarp, records_go_together_and_stay_whole) {
    for (u64 seed = 1; seed <= 10; ++seed) {
        WarpedHost host;
        u32 wrong = 0;
        const auto record_of = [](u32 warp, u32 lane, u32 round) {
            return "<" + std::to_string(warp) + std::to_string(lane) + std::string((lane + round) * 2, 'x') + ">";
        };
        std::vector<std::string> records;
        for (u32 number = 0; number < kCallingWarps * kLanes * kRounds; ++number)
            records.push_back(record_of(number / kRounds / kLanes, number / kRounds % kLanes, number % kRounds));
        run_lanes(host, seed, [&](const Calls<Warped>& calls, u32 warp, u32 lane, u32 round) {
            const std::string& record = records[(warp * kLanes + lane) * kRounds + round];
            const u32 bytes = static_cast<u32>(record.size());
            const CallEnd end = calls.append(7, record.data(), bytes);
            if (!end.ok() || end.value != bytes) Warped::add<Scope::device>(&wrong, 1u);
        });
        EXPECT_EQ(wrong, 0u) << "seed " << seed;
        EXPECT_LT(host.served, records.size()) << "some went together";
        std::vector<std::string> found;
        for (std::size_t at = 0; at < host.appended.size();) {
            const std::size_t end = host.appended.find('>', at);
            ASSERT_NE(end, std::string::npos);
            found.push_back(host.appended.substr(at, end + 1 - at));
            at = end + 1;
        }
        std::sort(found.begin(), found.end());
        std::sort(records.begin(), records.end());
        EXPECT_EQ(found, records) << "seed " << seed;
        EXPECT_EQ(host.free_slots(), kSlots);
    }
}

}  // namespace
}  // namespace penstock::ondevice
