// See table.hpp.
#include "preload/ask/table.hpp"

#include <cstring>

namespace preload {
namespace {

void reset(Counts& counts) {
    counts.bytes.reset();
    for (Count* one : {&counts.asked, &counts.cached, &counts.gpu, &counts.bounced}) one->store(0);
    counts.why.store(kernel::Why::small);
}

}  // namespace

Descriptor* Table::put(int number, const char* name, const kernel::FileFacts& facts) {
    if (static_cast<unsigned>(number) >= kMostNumber) return nullptr;
    for (Descriptor& one : pool_) {
        if (one.taken.load(std::memory_order_relaxed) || one.taken.exchange(true, std::memory_order_acquire)) continue;
        for (const int direction : {0, 1}) {
            one.asked[direction].clear();
            one.judged[direction].store(false);
            one.engine_file[direction].store(nullptr);
            reset(one.counts[direction]);
        }
        one.sequences[0] = Sequence(Direction::read);
        one.sequences[1] = Sequence(Direction::write);
        one.number = number;
        one.may_write = kernel::writes(facts);
        one.stream.store(nullptr);
        one.device = facts.device;
        one.inode = facts.inode;
        one.born_ns = facts.born_ns;
        const std::size_t length = std::strlen(name);
        const std::size_t cut = length < kMostName ? 0 : length - (kMostName - 1);
        std::memcpy(one.name, name + cut, length - cut + 1);
        one.at_work.begin();
        index_[number].store(static_cast<std::uint16_t>(&one - pool_ + 1), std::memory_order_release);
        return &one;
    }
    return nullptr;
}

Descriptor* Table::take(int number) {
    if (static_cast<unsigned>(number) >= kMostNumber) return nullptr;
    const std::uint16_t index = index_[number].exchange(0, std::memory_order_acq_rel);
    return index == 0 ? nullptr : &pool_[index - 1];
}

void Table::forget() {
    for (Descriptor& one : pool_) {
        if (!one.taken.load(std::memory_order_relaxed)) continue;
        index_[one.number].store(0, std::memory_order_relaxed);
        one.at_work.forget();
        one.state.clear();
        one.taken.store(false, std::memory_order_relaxed);
    }
}

}  // namespace preload
