// A page cache small enough for the explorer: a store of a few words, callers that each do a few things, and what must
// hold in every order of their steps.
//
// A page has a word that tells its key, and one word for each caller, which alone stores to it and so knows it. The
// key's word and the store's words are plain memory that Watch is told of. So the explorer finds in any schedule a load
// that is not ordered with every use of its frame, or a write-back that is not ordered with the next load. Stores to
// callers' words are steps without order, because callers may store while the page is written back.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "ondevice/cache/cache_rig.hpp"
#include "ondevice/model/model_rig.hpp"

namespace penstock::ondevice {

inline constexpr u32 kTinyCallers = 3;
inline constexpr u32 kTinyPages = 3;

struct TinyPage {
    u32 key;
    u32 words[kTinyCallers];
};
inline u32 tiny_key_word(u64 key) { return 100 + static_cast<u32>(key); }

struct TinyDisk {
    TinyPage pages[kTinyPages];
    u32 puts = 0, loads = 0;
    u32 fails_load = 0, fails_put = 0;  // the n-th; 0: none

    TinyDisk() {
        for (u32 key = 0; key < kTinyPages; ++key) pages[key] = {tiny_key_word(key), {}};
    }
};

inline u32 loose_load(const u32* word) {
    model::Explorer::current->step(word, false, "loads loosely");
    return *word;
}
inline void loose_store(u32* word, u32 value) {
    model::Explorer::current->step(word, true, "stores loosely");
    *word = value;
}

struct TinyStore {
    TinyDisk* disk;

    Status begin(Lanes, u64 key, void*, u64, u32& ticket) const {
        ticket = ++disk->loads;
        return key < kTinyPages ? Status::ok : Status::out_of_range;
    }
    Status test(Lanes, u32 ticket, u64 key, void* page) const {
        if (ticket == disk->fails_load) return Status::io_error;
        Watch<Model>::reads(&disk->pages[key], sizeof(TinyPage));
        Watch<Model>::writes(page, sizeof(TinyPage));
        std::memcpy(page, &disk->pages[key], sizeof(TinyPage));
        return Status::ok;
    }
    Status prepare(Lanes, u64 key, const void* page, u64, u32&) const {
        if (++disk->puts == disk->fails_put) return Status::io_error;
        const auto* const from = static_cast<const TinyPage*>(page);
        TinyPage& to = disk->pages[key];
        Watch<Model>::reads(&from->key, 4);
        Watch<Model>::writes(&to, sizeof(TinyPage));
        to.key = from->key;
        for (u32 caller = 0; caller < kTinyCallers; ++caller) to.words[caller] = loose_load(&from->words[caller]);
        return Status::ok;
    }
    Status send(u64, u32, u64) const { return Status::ok; }
    Status commit(Lanes, u64) const { return Status::ok; }
};

enum class Does { read, store, overwrite, flush, invalidate, prefetch, pin };
struct Act {
    Does what;
    u64 key = 0;
};

template <class P, class Policy = Clock, class Store = TinyStore>
class TinyCache {
  public:
    using Rig = CacheRig<Policy, P, Store>;

    TinyCache(u32 frames, const Store& store, const TinyDisk& disk)
        : rig_({frames, 1, 1, sizeof(TinyPage)}, store, kTinyCallers), disk_(disk) {}

    void run(u32 self, const std::vector<Act>& acts) {
        auto cache = rig_.cache(self);
        for (const Act& act : acts) one(cache, self, act);
    }

    const Frame& frame(u32 number) { return rig_.still().frame(number); }

    // Called when all callers have ended.
    void check() {
        model::check(rig_.references() == 0, "a reference is left");
        model::check(rig_.every_frame_is_somewhere_once(), "a frame is nowhere, or in two places");
        model::check(rig_.still().shared->pins == 0, "pins are left");
        u32 there[kTinyPages] = {};
        for (u32 frame = 0; frame < rig_.still().frames(); ++frame) {
            const Frame& at = rig_.still().frame(frame);
            if (!(at.state & kValid)) continue;
            model::check(at.note == 0, "a page is pinned without a reader");
            const auto& page = *reinterpret_cast<const TinyPage*>(rig_.page(frame));
            model::check(++there[at.key] == 1, "a page is there twice");
            newest(at.key, page);
            if (!(at.state & kDirty)) newest(at.key, disk_.pages[at.key]);
        }
        for (u32 key = 0; key < kTinyPages; ++key)
            if (there[key] == 0) newest(key, disk_.pages[key]);
    }

  private:
    using Cache = typename Rig::Cache;

    void newest(u64 key, const TinyPage& page) const {
        model::check(page.key == tiny_key_word(key), "another page's bytes");
        for (u32 caller = 0; caller < kTinyCallers; ++caller)
            model::check(page.words[caller] == stored_[key][caller], "a store is lost");
    }

    void look(u32 self, u64 key, const TinyPage* page) const {
        Watch<Model>::reads(&page->key, 4);
        model::check(page->key == tiny_key_word(key), "bytes of another page are seen");
        Watch<Model>::reads(&page->words[self], 4);
        model::check(page->words[self] == stored_[key][self], "a caller does not see its own store");
    }

    void store(u32 self, u64 key, TinyPage* page) {
        Watch<Model>::writes(&page->words[self], 4);
        loose_store(&page->words[self], ++stored_[key][self]);
    }

    void one(Cache& cache, u32 self, const Act& act) {
        switch (act.what) {
            case Does::read:
            case Does::store: return use(cache, self, act);
            case Does::overwrite: return overwrite(cache, self, act.key);
            case Does::flush: return flush(cache, self);
            case Does::invalidate: {
                const Status status = cache.invalidate(act.key, 1);
                return model::check(status == Status::ok || status == Status::busy, "invalidate");
            }
            case Does::prefetch: return model::check(fine(cache.prefetch(act.key, kEver)), "prefetch");
            case Does::pin: {
                const Status status = cache.pin(act.key, 1, kEver);
                model::check(fine(status) || status == Status::all_pinned, "pin");
                if (status == Status::ok) model::check(cache.unpin(act.key, 1) == Status::ok, "unpin");
            }
        }
    }

    bool fine(Status status) const {
        const bool faulty = disk_.fails_load != 0 || disk_.fails_put != 0;
        return status == Status::ok || (faulty && status == Status::io_error);
    }

    void use(Cache& cache, u32 self, const Act& act) {
        u32 frame = kNoFrame;
        const Status status = cache.acquire(act.key, kEver, frame);
        model::check(fine(status), "acquire");
        if (status != Status::ok) return;
        auto* const page = static_cast<TinyPage*>(cache.page(frame));
        look(self, act.key, page);
        if (act.what == Does::store) store(self, act.key, page);
        cache.release(frame, act.what == Does::store);
    }

    // Requires: no other caller stores to the page.
    void overwrite(Cache& cache, u32 self, u64 key) {
        u32 frame = kNoFrame;
        const Status status = cache.overwrite(key, kEver, frame);
        model::check(status == Status::pending || fine(status), "overwrite");
        if (status == Status::io_error) return;
        auto* const page = static_cast<TinyPage*>(cache.page(frame));
        if (status == Status::pending) {
            Watch<Model>::writes(page, sizeof(TinyPage));
            *page = {tiny_key_word(key), {}};
            for (u32 caller = 0; caller < kTinyCallers; ++caller) page->words[caller] = stored_[key][caller];
        }
        store(self, key, page);
        if (status == Status::pending) cache.filled(frame);
        cache.release(frame, true);
    }

    // Flushes, and checks that the store then has what the caller stored before.
    void flush(Cache& cache, u32 self) {
        model::check(fine(cache.flush(kEver)), "flush");
        if (disk_.fails_put != 0) return;
        for (u32 key = 0; key < kTinyPages; ++key)
            model::check(disk_.pages[key].words[self] == stored_[key][self], "flush left a store behind");
    }

    Rig rig_;
    const TinyDisk& disk_;
    u32 stored_[kTinyPages][kTinyCallers] = {};
};

}  // namespace penstock::ondevice
