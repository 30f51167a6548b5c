// Many threads that use a page cache over files at random, each with an oracle of its own: every word of every file has
// one owner, which alone stores to it and so knows what it holds.
//
// A word tells its array, its place and a version, so a user sees bytes of another page, torn bytes and lost stores. A
// status that the test does not expect is a failure too, and so is a minute in which nothing is done.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ondevice/cache/cache_rig.hpp"
#include "ondevice/watchdog_rig.hpp"

namespace penstock::ondevice {

inline u64 users_word(u64 array, u64 index, u64 version) { return array << 60 | version << 36 | index; }
inline std::vector<u8> users_file(u64 array, u64 bytes) {
    std::vector<u8> file(bytes);
    for (u64 index = 0; index < bytes / 8; ++index) {
        const u64 word = users_word(array, index, 0);
        std::memcpy(&file[index * 8], &word, 8);
    }
    return file;
}

struct UsersPlan {
    std::vector<u64> files;  // bytes of each, a multiple of 8
    u32 page_bytes = 512;
    u32 users = 4;
    u32 turns = 2000;
    u64 wait_ms = 20'000;      // the longest that one operation waits
    u32 most_pins = 2;         // how many pages a user pins at once
    std::set<Status> expects;  // statuses that may come besides ok
    bool flushes = true;       // the users themselves flush
};

class Users {
  public:
    explicit Users(const UsersPlan& plan) : plan_(plan), known_(plan.files.size()) {
        for (u64 array = 0; array < plan.files.size(); ++array) known_[array].resize(plan.files[array] / 8);
    }

    // `cache_of(user)` makes a user's own reference to the cache.
    template <class CacheOf>
    void run(const CacheOf& cache_of) {
        const Watchdog watchdog(done_);
        std::vector<std::thread> threads;
        for (u32 user = 0; user < plan_.users; ++user)
            threads.emplace_back([this, user, cache = cache_of(user)]() mutable { one(cache, user); });
        for (std::thread& thread : threads) thread.join();
    }

    // How many words of a file are wrong, after all was flushed.
    u64 lost(u64 array, const std::vector<u8>& file) const {
        u64 lost = file.size() == plan_.files[array] ? 0 : 1;
        for (u64 index = 0; index < file.size() / 8 && index < known_[array].size(); ++index) {
            u64 word = 0;
            std::memcpy(&word, &file[index * 8], 8);
            lost += word != users_word(array, index, known_[array][index]);
        }
        return lost;
    }

    std::atomic<u64> done_{0};
    std::atomic<u32> wrong{0};    // words that cannot be there
    std::atomic<u32> refused{0};  // statuses that the plan does not expect
    std::atomic<u32> expected{0};
    std::atomic<u32> first_refused{0};

  private:
    bool fine(Status status) {
        ++done_;
        if (status == Status::ok) return true;
        if (plan_.expects.count(status) != 0) {
            ++expected;
        } else {
            u32 none = 0;
            first_refused.compare_exchange_strong(none, static_cast<u32>(status));
            ++refused;
        }
        return false;
    }

    template <class Cache>
    struct User {
        Cache& cache;
        u32 self;
        std::mt19937_64 random;
        std::vector<u64> pins;
    };

    template <class Cache>
    void one(Cache& cache, u32 self) {
        User<Cache> user{cache, self, std::mt19937_64(self), {}};
        for (u32 turn = 0; turn < plan_.turns; ++turn) take_turn(user);
        for (const u64 key : user.pins) fine(cache.unpin(key, 1));
    }

    template <class Cache>
    void take_turn(User<Cache>& user) {
        const u64 array = user.random() % plan_.files.size();
        const u64 words = plan_.files[array] / 8, each = plan_.page_bytes / 8;
        const u64 index = user.random() % (words / plan_.users) * plan_.users + user.self;
        const u64 key = key_of(static_cast<u32>(array), index / each), deadline = soon(plan_.wait_ms);
        const u64 what = user.random() % 1000;
        if (what < 10) {
            if (plan_.flushes) fine(user.cache.flush(deadline));
        } else if (what < 20) {
            const Status status = user.cache.invalidate(key, 1 + what % 4);
            fine(status == Status::busy ? Status::ok : status);
        } else if (what < 60) {
            pin(user, key, deadline);
        } else if (what < 150) {
            const Status status = user.cache.prefetch(key, deadline);
            fine(status == Status::busy ? Status::ok : status);
        } else {
            use(user, key, {array, index, what % 3 == 0});
        }
    }

    struct Use {
        u64 array, index;
        bool stores;
    };
    template <class Cache>
    void use(User<Cache>& user, u64 key, const Use& what) {
        u32 frame = 0;
        if (!fine(user.cache.acquire(key, soon(plan_.wait_ms), frame))) return;
        const u64 place = what.index % (plan_.page_bytes / 8);
        u64& version = known_[what.array][what.index];
        if (word_in(user.cache.page(frame), place) != users_word(what.array, what.index, version)) ++wrong;
        if (what.stores) set_word(user.cache.page(frame), place, users_word(what.array, what.index, ++version));
        user.cache.release(frame, what.stores);
    }

    // Pins and unpins pages, up to the quota.
    template <class Cache>
    void pin(User<Cache>& user, u64 key, u64 deadline) {
        if (user.pins.size() >= plan_.most_pins) {
            fine(user.cache.unpin(user.pins.back(), 1));
            user.pins.pop_back();
            return;
        }
        const Status status = user.cache.pin(key, 1, deadline);
        if (status == Status::all_pinned) ++done_;
        else if (fine(status)) user.pins.push_back(key);
    }

    const UsersPlan plan_;
    std::vector<std::vector<u64>> known_;  // each word's version; its owner alone touches it
};

}  // namespace penstock::ondevice
