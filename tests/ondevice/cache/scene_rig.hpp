// Scenes for the explorer: a small cache and what its callers do. The explorer tries every order of their steps with up
// to so many switches away from a caller that could go on.
#pragma once

#include "ondevice/cache/tiny_cache_rig.hpp"

namespace penstock::ondevice {

struct Scene {
    u32 frames = 1;
    std::vector<std::vector<Act>> callers;
    unsigned switches = 2;
    u32 fails_load = 0, fails_put = 0;
    u64 most = 3'000'000;
};

template <class P = Model, class Policy = Clock>
model::Report tried(const Scene& scene) {
    return model::Explorer().run([&] {
        auto disk = std::make_shared<TinyDisk>();
        disk->fails_load = scene.fails_load;
        disk->fails_put = scene.fails_put;
        auto cache = std::make_shared<TinyCache<P, Policy>>(scene.frames, TinyStore{disk.get()}, *disk);
        if constexpr (requires { P::watch(cache->frame(0)); }) P::watch(cache->frame(0));
        model::Program program;
        for (u32 self = 0; self < scene.callers.size(); ++self)
            program.threads.push_back([=, &scene] { cache->run(self, scene.callers[self]); });
        program.after = [=] {
            static_cast<void>(disk);
            cache->check();
        };
        return program;
    }, scene.most, scene.switches);
}

}  // namespace penstock::ondevice
