// What is ordered with what in a schedule of the explorer (explorer_rig.hpp): vector clocks of the threads,
// carried by releases and acquires, and for each 4 bytes of plain memory when each thread wrote and read them last.
//
// Writes and reads have clocks of their own, because a relaxed pair (platform.hpp) orders what was read before it and
// not what was written.
#pragma once

#include <map>
#include <optional>

#include "ondevice/model/program_rig.hpp"

namespace penstock::ondevice::model {

class Ordering {
  public:
    void start() {
        released_.clear();
        accesses_.clear();
        for (unsigned thread = 0; thread < most_threads; ++thread) {
            known_[thread] = {};
            known_[thread].writes[thread] = known_[thread].reads[thread] = 1;
        }
    }
    void acquire(unsigned thread, const void* word) {
        const auto released = released_.find(word);
        if (released == released_.end()) return;
        join(known_[thread].writes, released->second.writes);
        join(known_[thread].reads, released->second.reads);
    }
    // keeps: joins what was released there before.
    void release(unsigned thread, const void* word, bool keeps) {
        Known& released = released_[word];
        if (!keeps) released = {};
        join(released.writes, known_[thread].writes);
        join(released.reads, known_[thread].reads);
        tick(thread);
    }
    // Who acquires the word is after what the thread has read, not after what it wrote.
    void release_reads(unsigned thread, const void* word) {
        released_[word] = {{}, known_[thread].reads};
        tick(thread);
    }
    void forget(const void* word) { released_.erase(word); }
    // The thread's write there is seen by whoever sees the word that was stored with it.
    void in_one_piece(unsigned thread, const void* memory, u64 bytes) {
        for (u64 at = first(memory); at < first(memory) + (bytes + 3) / 4; ++at) accesses_[at].writes[thread] = 0;
    }
    // The thread that touches the memory too, without order; none: all is ordered.
    std::optional<unsigned> plain(unsigned thread, const void* memory, u64 bytes, bool writes) {
        const Known& own = known_[thread];
        for (u64 at = first(memory); at < first(memory) + (bytes + 3) / 4; ++at) {
            Known& access = accesses_[at];
            for (unsigned other = 0; other < most_threads; ++other) {
                if (other == thread) continue;
                const bool unordered = access.writes[other] > own.writes[other];
                if (unordered || (writes && access.reads[other] > own.reads[other])) return other;
            }
            (writes ? access.writes : access.reads)[thread] = own.writes[thread];
        }
        return std::nullopt;
    }

  private:
    struct Known {
        Clock writes{};
        Clock reads{};
    };
    static u64 first(const void* memory) { return reinterpret_cast<u64>(memory) / 4; }
    static void join(Clock& into, const Clock& from) {
        for (unsigned thread = 0; thread < most_threads; ++thread) into[thread] = std::max(into[thread], from[thread]);
    }
    void tick(unsigned thread) {
        known_[thread].writes[thread] += 1;
        known_[thread].reads[thread] += 1;
    }

    std::array<Known, most_threads> known_{};  // of each thread: what of the others' accesses is before its next step
    std::map<const void*, Known> released_;
    std::map<u64, Known> accesses_;
};

}  // namespace penstock::ondevice::model
