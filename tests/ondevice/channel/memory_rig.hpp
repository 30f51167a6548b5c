// DmaMemory of this process for tests. I/O addresses differ from pointers, and only allocated ranges translate, so a
// test finds a wrong address instead of following it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "ondevice/dma_memory.hpp"
#include "ondevice/nvme/prp.hpp"

namespace penstock::ondevice {

class RigMemory : public DmaMemory {
  public:
    DmaBlock allocate(u64 bytes) override {
        const u64 rounded = (bytes + page - 1) / page * page;
        auto* const data = static_cast<u8*>(std::aligned_alloc(page, rounded));
        if (data == nullptr) throw std::bad_alloc();
        std::memset(data, 0, rounded);
        const std::scoped_lock lock(mutex_);
        const u64 io = next_;
        next_ += rounded + page;  // a hole after each block
        blocks_[io] = {data, rounded};
        return {data, io, rounded, std::shared_ptr<void>(data, [](void* memory) { std::free(memory); })};
    }

    u8* translate(u64 io, u64 bytes) const {
        const std::scoped_lock lock(mutex_);
        auto block = blocks_.upper_bound(io);
        if (block == blocks_.begin()) return nullptr;
        --block;
        const u64 at = io - block->first;
        return at <= block->second.bytes && bytes <= block->second.bytes - at ? block->second.data + at : nullptr;
    }
    Translate translator() const {
        return [this](u64 io, u64 bytes) { return translate(io, bytes); };
    }

    static constexpr u64 page = 4096;

  private:
    struct Range {
        u8* data;
        u64 bytes;
    };
    mutable std::mutex mutex_;
    std::map<u64, Range> blocks_;
    u64 next_ = u64{1} << 40;
};

}  // namespace penstock::ondevice
