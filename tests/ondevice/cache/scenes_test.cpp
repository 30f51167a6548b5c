// Short programs of callers of a page cache, drawn at random from fixed seeds. Each is tried in up to 1000 orders of
// its steps with at most one or two switches, to find faults that no author thought of. state_test.cpp has the programs
// that an author did think of, in every such order.
//
// PENSTOCK_SCENES sets how many are tried, in place of 200. A failure names its scene, which then goes to
// state_test.cpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "ondevice/cache/scene_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr const char* kNames[] = {"read", "store", "overwrite", "flush", "invalidate", "prefetch", "pin"};

std::string text(const Scene& scene) {
    std::string said = std::to_string(scene.frames) + " frames, at most " + std::to_string(scene.switches) +
                       " switches, fails load " + std::to_string(scene.fails_load) + ", put " +
                       std::to_string(scene.fails_put) + ":";
    for (const auto& acts : scene.callers) {
        said += " {";
        for (const Act& act : acts)
            said += " " + std::string(kNames[static_cast<int>(act.what)]) + std::to_string(act.key);
        said += " }";
    }
    return said;
}

class Drawn {
  public:
    explicit Drawn(u64 seed) : random_(seed) {}

    Scene scene() {
        Scene scene;
        scene.frames = 1 + below(3);
        scene.switches = 1 + below(2);
        scene.most = 1000;
        if (below(4) == 0) (below(2) == 0 ? scene.fails_load : scene.fails_put) = 1 + below(2);
        scene.callers.resize(2 + below(2));
        for (u32 key = 0; key < kTinyPages; ++key) {
            overwriter_[key] = below(static_cast<u32>(scene.callers.size()));
            shared_[key] = below(2) == 0;
        }
        for (u32 self = 0; self < scene.callers.size(); ++self) {
            auto& acts = scene.callers[self];
            acts.resize(1 + below(3));
            for (Act& act : acts) act = one(self);
        }
        return scene;
    }

  private:
    u32 below(u32 end) { return static_cast<u32>(random_() % end); }

    // A caller that overwrites a page must be the only one that stores to it.
    Act one(u32 self) {
        Act act{static_cast<Does>(below(std::size(kNames))), below(kTinyPages)};
        const bool alone = !shared_[act.key] && overwriter_[act.key] == self;
        if (act.what == Does::overwrite && !alone) act.what = Does::read;
        if (act.what == Does::store && !alone && !shared_[act.key]) act.what = Does::read;
        return act;
    }

    std::mt19937_64 random_;
    u32 overwriter_[kTinyPages] = {};
    bool shared_[kTinyPages] = {};
};

template <class P>
model::Report tried_with_either(const Scene& scene, u64 seed) {
    return seed % 3 == 0 ? tried<P, SweepResistant>(scene) : tried<P, Clock>(scene);
}

// The seed of the first of so many scenes that fails, if one does.
template <class P>
u64 first_to_fail(u64 scenes, std::string& failure) {
    u64 schedules = 0;
    for (u64 seed = 1; seed <= scenes; ++seed) {
        const Scene scene = Drawn(seed).scene();
        const model::Report report = tried_with_either<P>(scene, seed);
        schedules += report.schedules;
        if (report.failure.empty()) continue;
        failure = "scene " + std::to_string(seed) + ", " + text(scene) + "\n" + report.failure;
        return seed;
    }
    printf("             %llu scenes, %llu schedules\n", scenes, schedules);
    return 0;
}

TEST(PageScenes, of_any_kind) {
    const char* const asked = std::getenv("PENSTOCK_SCENES");
    const u64 scenes = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 200;
    ASSERT_GT(scenes, 0) << "PENSTOCK_SCENES=" << asked << " is no number of scenes";
    std::string failure;
    EXPECT_EQ(first_to_fail<Model>(scenes, failure), 0) << failure;
}

// A defect: a caller claims a frame in two steps, and another may take a reference in between.
struct ClaimsInTwoSteps : Model {
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        const bool claims = sizeof(T) == 4 && desired == (expected | kBusy) && (desired & kValid);
        if (!claims || (expected & kBusy)) return Model::swap_if<S, O>(word, expected, desired);
        if (Model::load<S>(word) != expected) return false;
        Model::store<S>(word, desired);
        return true;
    }
};
TEST(PageScenes, control_a_claim_in_two_steps_is_found) {
    std::string failure;
    EXPECT_NE(first_to_fail<ClaimsInTwoSteps>(200, failure), 0);
    printf("             %s\n", failure.substr(0, failure.find('\n')).c_str());
}

}  // namespace
}  // namespace penstock::ondevice
