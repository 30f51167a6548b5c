// The page cache's states under every order of its callers' steps, on one and two frames. Controls are caches and
// platforms with one defect each, which the explorer must find.
//
// The explorer tries the shortest programs in every order, and longer ones in every order with at most two or three
// switches away from a caller that could go on.
#include <gtest/gtest.h>

#include "ondevice/cache/scene_rig.hpp"
#include "penstock/ondevice/file_store.hpp"

namespace penstock::ondevice {
namespace {

using model::Explorer;
using model::Program;
using model::Report;

constexpr Act read(u64 key) { return {Does::read, key}; }
constexpr Act store(u64 key) { return {Does::store, key}; }
constexpr Act overwrite(u64 key) { return {Does::overwrite, key}; }
constexpr Act flush() { return {Does::flush, 0}; }
constexpr Act invalidate(u64 key) { return {Does::invalidate, key}; }
constexpr Act prefetch(u64 key) { return {Does::prefetch, key}; }
constexpr Act pin(u64 key) { return {Does::pin, key}; }

template <class P = Model, class Policy = Clock>
Report told(const Scene& scene) {
    const Report report = tried<P, Policy>(scene);
    printf("             %llu schedules, %llu steps, the longest %zu\n", report.schedules, report.steps,
           report.longest);
    return report;
}

template <class Policy = Clock>
void expect_right(const Scene& scene) {
    const Report report = told<Model, Policy>(scene);
    EXPECT_EQ(report.failure, "");
    EXPECT_TRUE(report.complete);
}

TEST(PageState, two_callers_of_one_frame_in_every_order) {
    expect_right({.callers = {{read(0)}, {store(0)}}, .switches = Explorer::any_number});
    expect_right({.callers = {{store(0)}, {store(0)}}, .switches = Explorer::any_number});
    expect_right({.callers = {{read(0)}, {read(1)}}, .switches = Explorer::any_number});
    expect_right({.callers = {{store(0)}, {flush()}}, .switches = Explorer::any_number});
}

TEST(PageState, two_callers_of_one_page) {
    expect_right({.callers = {{store(0), store(0)}, {store(0), read(0)}}, .switches = 3});
}

TEST(PageState, two_pages_take_turns_in_one_frame) {
    expect_right({.callers = {{read(0)}, {read(1)}}, .switches = 3});
    expect_right({.callers = {{store(0), read(1)}, {store(1), read(0)}}});
    expect_right({.frames = 2, .callers = {{store(0), store(1)}, {store(2), read(0)}}});
}

TEST(PageState, three_callers) {
    expect_right({.callers = {{store(0)}, {store(0)}, {read(1)}}});
    expect_right({.frames = 2, .callers = {{store(0)}, {read(1)}, {store(2)}}});
}

TEST(PageState, flush_while_others_store) {
    expect_right({.callers = {{store(0), flush()}, {store(0), store(0)}}, .switches = 3});
    expect_right({.callers = {{store(0), flush()}, {store(0), flush()}}, .switches = 3});
    expect_right({.callers = {{store(0), flush()}, {read(1)}}, .switches = 3});
    expect_right({.callers = {{store(0), flush()}, {store(0)}, {read(1)}}, .switches = 1});
}

TEST(PageState, invalidate) {
    expect_right({.callers = {{read(0), invalidate(0)}, {read(0)}}, .switches = 3});
    expect_right({.callers = {{store(0), flush(), invalidate(0)}, {store(0)}}});
    expect_right({.callers = {{invalidate(0), read(1)}, {store(0), read(0)}}});
}

TEST(PageState, prefetch) {
    expect_right({.callers = {{prefetch(0), read(0)}, {store(0)}}});
    expect_right({.callers = {{prefetch(0)}, {prefetch(1)}, {read(0)}}});
    expect_right({.frames = 2, .callers = {{prefetch(0), prefetch(1), read(2)}, {read(1)}}});
}

TEST(PageState, pages_that_are_overwritten) {
    expect_right({.callers = {{overwrite(0)}, {read(0)}}, .switches = 3});
    expect_right({.callers = {{overwrite(0), overwrite(0)}, {read(1), read(0)}}});
    expect_right({.callers = {{overwrite(0), flush()}, {overwrite(1)}}});
    expect_right({.callers = {{overwrite(0)}, {read(0)}, {invalidate(0)}}});
}

TEST(PageState, pins) {
    expect_right({.callers = {{pin(0), read(0)}, {pin(0)}}});
    expect_right({.callers = {{pin(0)}, {store(1), read(0)}}});
    expect_right({.frames = 2, .callers = {{pin(0)}, {pin(1)}, {read(2)}}, .switches = 1});
}

TEST(PageState, a_pinned_page_is_found_while_frames_leave_its_chain) {
    expect_right({.frames = 2, .callers = {{pin(0)}, {read(1), invalidate(1)}}, .switches = 3});
}

TEST(PageState, loads_and_write_backs_that_fail) {
    for (u32 nth = 1; nth <= 2; ++nth) {
        expect_right({.callers = {{read(0)}, {read(0)}}, .switches = 3, .fails_load = nth});
        expect_right({.callers = {{read(0), read(0)}, {store(0)}}, .fails_load = nth});
        expect_right({.callers = {{overwrite(0), pin(0)}, {read(0)}}, .fails_load = nth});
        expect_right({.callers = {{store(0), read(1)}, {store(0)}}, .fails_put = nth});
        expect_right({.callers = {{store(0), flush(), flush()}, {store(0)}}, .fails_put = nth});
    }
}

TEST(PageState, the_policy_that_moves_pages_between_its_parts) {
    expect_right<SweepResistant>({.frames = 2, .callers = {{store(0), read(1)}, {store(1), read(2)}}});
    expect_right<SweepResistant>({.frames = 2, .callers = {{store(0)}, {store(1)}, {read(2)}}, .switches = 1});
}

// A cache over the store of files: a mailbox with fewer slots than pages, and its server as one more thread.
struct Served {
    static constexpr u32 kSlots = 2;
    TinyDisk disk;
    u32 free_bits[1] = {}, words[kSlots] = {}, marks[kSlots] = {}, abandoned = 0;
    MailboxDescriptor descriptors[kSlots] = {};
    u32 completions[kSlots] = {}, seen_laps[kSlots] = {}, over = 0;
    TinyPage slots[kSlots] = {};
    StoreArray file{sizeof(TinyDisk::pages), nullptr, 1};
    u32 count;

    explicit Served(u32 slot_count) : count(slot_count) { table().reset(); }
    Slots<Model> table() { return {free_bits, words, count}; }
    FileStore<Model> store() {
        FileStore<Model> store{};
        store.channel.slots = table();
        store.channel.descriptors = descriptors;
        store.channel.completions = completions;
        store.channel.data = reinterpret_cast<u8*>(slots);
        store.channel.slot_bytes = sizeof(TinyPage);
        store.channel.abandoned = &abandoned;
        store.channel.marks = marks;
        store.arrays = &file;
        store.array_count = 1;
        store.page_bytes = sizeof(TinyPage);
        return store;
    }
    void serve(u32 callers) {
        MailboxServer<Model> server{descriptors, completions, seen_laps, 0, count, count - 1};
        for (;;) {
            u32 slot = 0;
            Request request{};
            const bool last = Model::load<Scope::device>(&over) == callers;
            if (server.next(slot, request)) {
                TinyPage& page = disk.pages[request.offset_bytes / sizeof(TinyPage)];
                if (request.operation == RequestOperation::read) slots[slot] = page;
                if (request.operation == RequestOperation::write) page = slots[slot];
                server.complete(slot, Status::ok);
            } else if (last) {
                return;
            } else {
                Model::pause(0);
            }
        }
    }
};

void expect_served_right(const Scene& scene, u32 slots) {
    const Report report = Explorer().run([&] {
        auto served = std::make_shared<Served>(slots);
        auto cache = std::make_shared<TinyCache<Model, Clock, FileStore<Model>>>(scene.frames, served->store(),
                                                                                  served->disk);
        Program program;
        const u32 callers = static_cast<u32>(scene.callers.size());
        for (u32 self = 0; self < callers; ++self)
            program.threads.push_back([=, &scene] {
                cache->run(self, scene.callers[self]);
                Model::add<Scope::device>(&served->over, 1u);
            });
        program.threads.push_back([=] { served->serve(callers); });
        program.after = [=] {
            cache->check();
            model::check(count(served->free_bits[0]) == slots, "a slot is gone");
        };
        return program;
    }, scene.most, scene.switches);
    printf("             %llu schedules, %llu steps, the longest %zu\n", report.schedules, report.steps,
           report.longest);
    EXPECT_EQ(report.failure, "");
    EXPECT_TRUE(report.complete);
}

TEST(PageState, over_a_mailbox) {
    expect_served_right({.callers = {{read(0)}, {read(1)}}, .switches = 1}, 2);
    expect_served_right({.callers = {{store(0), flush()}, {store(0)}}, .switches = 1}, 2);
    expect_served_right({.callers = {{store(0), read(1)}, {read(0)}}, .switches = 1}, 1);
    expect_served_right({.frames = 2, .callers = {{prefetch(0), store(1), flush()}, {read(0)}}, .switches = 1}, 1);
    expect_served_right({.frames = 3, .callers = {{prefetch(0), store(1), prefetch(2), flush()}}}, 1);
}

// Controls: the explorer finds a platform that lacks one thing.

TEST(PageStateControls, weakened_platforms_are_found) {
    const Scene scene{.callers = {{store(0), read(1)}, {store(1), read(0)}}};
    // Exchanges publish a page and end its use; stores are read under locks alone.
    EXPECT_NE(told<ModelOf<Broken::release_of_exchanges>>(scene).failure.find("without order"), std::string::npos);
    EXPECT_NE(told<ModelOf<Broken::acquire_of_loads>>(scene).failure.find("without order"), std::string::npos);
    EXPECT_NE(told<ModelOf<Broken::one_step_of_exchanges>>(scene).failure, "");
}

// A defect: a page stops being dirty after the store took its bytes, and not before; what a caller stores in between is
// lost.
struct CleansLate : Model {
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        if constexpr (sizeof(T) == 4) {
            if ((desired & kWriting) && !(expected & kWriting)) desired |= expected & kDirty;
            if ((expected & kWriting) && !(desired & kWriting)) desired &= ~kDirty;
        }
        return Model::swap_if<S, O>(word, expected, desired);
    }
};
TEST(PageStateControls, a_page_that_is_clean_too_late_is_found) {
    const Report report = told<CleansLate>({.callers = {{store(0), flush()}, {store(0)}}});
    EXPECT_NE(report.failure.find("lost"), std::string::npos) << report.failure;
}

// A defect: a hit does not look at the key after the addition that took its reference, and takes it to be what it was
// when it found the frame. The frame may be another page's by then. For caches of one frame.
struct LooksOnce : Model {
    struct Look {
        u64 key;
        bool taken;
    };
    static inline Look looks[model::most_threads] = {};
    static inline const Frame* only = nullptr;
    static void watch(const Frame& frame) { only = &frame; }
    static Look& look() { return looks[Explorer::current->running()]; }

    template <Scope S, Order O = Order::acquire, class T>
    static T load(const T* word) {
        const T value = Model::load<S, O>(word);
        if (sizeof(T) != 8) return value;
        if (static_cast<const void*>(word) == &only->key && look().taken) return static_cast<T>(look().key);
        look() = {only->key, false};
        return value;
    }
    template <Scope S, Order O = Order::both, class T>
    static T add(T* word, T value) {
        look().taken = static_cast<const void*>(word) == &only->state && value == 1 && O == Order::acquire;  // a hit's
        return Model::add<S, O>(word, value);
    }
};
TEST(PageStateControls, a_key_that_is_looked_at_once_is_found) {
    const Report report = told<LooksOnce>({.callers = {{read(0), read(0)}, {read(1)}}});
    EXPECT_NE(report.failure.find("another page"), std::string::npos) << report.failure;
}

// A defect: a caller claims a frame to which another took a reference after the first looked at it.
struct ClaimsHeld : Model {
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        if constexpr (sizeof(T) == 4) {
            const bool claims = desired == (expected | kBusy) && (desired & kValid) && !(expected & kBusy);
            while (claims && !(expected & kBusy)) {
                if (Model::swap_if<S, O>(word, expected, expected | kBusy)) return true;
            }
            if (claims) return false;
        }
        return Model::swap_if<S, O>(word, expected, desired);
    }
};
TEST(PageStateControls, a_claim_of_a_page_in_use_is_found) {
    EXPECT_NE(told<ClaimsHeld>({.callers = {{read(0), read(1)}, {read(0)}}}).failure, "");
}

}  // namespace
}  // namespace penstock::ondevice
