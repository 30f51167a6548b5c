// The descriptors of the program that are looked at, by number, and what was counted for each.
//
// A number without an entry costs its caller one load. An entry is taken from a fixed pool when a regular file is
// opened, and goes back when it is closed. Nothing here waits for a lock: a thread that does not get an entry's state
// at once goes without, which costs advice and never data.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/ask/asked.hpp"
#include "preload/ask/kernel.hpp"
#include "preload/ask/sequence.hpp"
#include "preload/ask/tally.hpp"

namespace preload {

inline constexpr int kMostNumber = 65536;  // descriptors from here on are left alone
inline constexpr int kMostDescriptors = 512;
inline constexpr int kMostName = 232;  // of a longer one the end

using Count = std::atomic<std::uint64_t>;

inline void add(Count& count, std::uint64_t more) { count.fetch_add(more, std::memory_order_relaxed); }
inline std::uint64_t value(const Count& count) { return count.load(std::memory_order_relaxed); }

// What was done for one direction of one file.
struct Counts {
    Tally bytes;       // that the program moved
    Count asked{0};    // early: written back, or read ahead
    Count cached{0};   // not read ahead, because they were in the page cache
    Count gpu{0};      // from or to memory of a GPU by the engine
    Count bounced{0};  // the same, by memory of the host and an ordinary call
    std::atomic<kernel::Why> why{kernel::Why::small};
};

struct alignas(64) Descriptor {
    AtWork at_work;
    Asked asked[2];
    std::atomic<bool> judged[2]{};  // whether `why` is known
    std::atomic_flag state = ATOMIC_FLAG_INIT;  // guards sequences
    Sequence sequences[2]{Sequence(Direction::read), Sequence(Direction::write)};
    Counts counts[2];
    int number = -1;
    bool may_write = false;              // it was opened to write
    std::atomic<void*> stream{nullptr};  // libc's FILE on the number, where the program opened one
    std::uint64_t device = 0, inode = 0;
    std::int64_t born_ns = 0;  // with the two, which file it is
    std::atomic<void*> engine_file[2]{};  // gpu/moves.cpp: the file as the engine knows it, to read and to write
    std::atomic<bool> taken{false};
    char name[kMostName] = {};

    // It was found that nothing is to be asked for it.
    bool is_refused(Direction direction) const {
        const int at = static_cast<int>(direction);
        return judged[at].load(std::memory_order_acquire) && counts[at].why.load() != kernel::Why::none;
    }
    Counts& of(Direction direction) { return counts[static_cast<int>(direction)]; }
};

class Table {
public:
    Descriptor* find(int number) {
        if (static_cast<unsigned>(number) >= kMostNumber) return nullptr;
        const std::uint16_t index = index_[number].load(std::memory_order_acquire);  // Pairs with: put
        return index == 0 ? nullptr : &pool_[index - 1];
    }
    // An entry for a file that was just opened; null: none is left.
    Descriptor* put(int number, const char* name, const kernel::FileFacts& facts);
    // The entry of a number, which is then no longer found by it; null: it had none. The caller gives it back.
    Descriptor* take(int number);
    void give_back(Descriptor& descriptor) { descriptor.taken.store(false, std::memory_order_release); }
    // In the child of a fork: what the parent had open is the parent's.
    void forget();

    template <typename Visit>
    void each(Visit visit) {
        for (Descriptor& one : pool_) {
            if (one.taken.load(std::memory_order_acquire)) visit(one);
        }
    }

private:
    std::atomic<std::uint16_t> index_[kMostNumber] = {};
    Descriptor pool_[kMostDescriptors];
};

}  // namespace preload
