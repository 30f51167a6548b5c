// Which accesses are ordered in a schedule of the explorer (explorer_rig.hpp). Threads have vector clocks, which
// releases and acquires carry; each 4 bytes of plain memory keep when each thread last wrote and read them.
//
// Writes and reads have clocks of their own, because a relaxed pair (platform.hpp) orders the reads before it and not
// the writes.
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
    // With `keeps`, the release joins what other threads released there before.
    void release(unsigned thread, const void* word, bool keeps) {
        Known& released = released_[word];
        if (!keeps) released = {};
        join(released.writes, known_[thread].writes);
        join(released.reads, known_[thread].reads);
        tick(thread);
    }
    // A thread that acquires the word comes after what this thread has read, and not after what it wrote.
    void release_reads(unsigned thread, const void* word) {
        released_[word] = {{}, known_[thread].reads};
        tick(thread);
    }
    void forget(const void* word) { released_.erase(word); }
    // A thread that sees the word stored with this memory also sees the memory's bytes.
    void in_one_piece(unsigned thread, const void* memory, u64 bytes) {
        for (u64 at = first(memory); at < first(memory) + (bytes + 3) / 4; ++at) accesses_[at].writes[thread] = 0;
    }
    // Records an access. Returns a thread that touched the memory without order with this one; none: all is ordered.
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

    std::array<Known, most_threads> known_{};  // by thread: the others' accesses that come before its next step
    std::map<const void*, Known> released_;
    std::map<u64, Known> accesses_;
};

}  // namespace penstock::ondevice::model
