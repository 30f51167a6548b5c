// Tables for a kernel, in turn parts of a ring. The host writes them in pinned memory, and the kernel searches them in
// device memory. The host rewrites a part only after the kernels that read it are done: small tables by the dozen are
// queued without a wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "device/cuda/event.hpp"
#include "penstock/types.hpp"

namespace penstock::device {

class TableRing {
  public:
    TableRing(int device_index, std::size_t bytes) : device_index_(device_index), bytes_(bytes) {
        pinned_.reset(allocate_pinned<std::byte>(bytes));
        void* memory = nullptr;
        cuda_check(cudaMalloc(&memory, bytes), "cudaMalloc");
        memory_.reset(static_cast<std::byte*>(memory));
    }

    // Returns the next table to write. Waits until its part of the ring is free. Requires: bytes is not more than the
    // ring has.
    std::byte* next(std::size_t bytes) {
        bytes = align_up(bytes, kAligned);
        const std::size_t begin = current_.end + bytes > bytes_ ? 0 : current_.end;
        current_ = {begin, begin + bytes};
        while (taken_.size() == kMostTables || overlaps_a_table()) {
            taken_.front().free->wait(Deadline::never());
            spare_.push_back(std::move(taken_.front().free));
            taken_.pop_front();
        }
        return pinned_.get() + current_.begin;
    }
    // Queues the upload of a part of that table.
    void upload(std::size_t begin, std::size_t end, cudaStream_t stream) const {
        const std::size_t first = current_.begin + begin;
        cuda_check(cudaMemcpyAsync(memory_.get() + first, pinned_.get() + first, end - begin, cudaMemcpyHostToDevice,
                                   stream),
                   "cudaMemcpyAsync");
    }
    // Returns the address in device memory of something in a table.
    template <class T>
    const T* in_memory(const T* pinned) const noexcept {
        return reinterpret_cast<const T*>(memory_.get() + (reinterpret_cast<const std::byte*>(pinned) - pinned_.get()));
    }
    // Marks that table as read by all work queued so far.
    void used(cudaStream_t stream) {
        if (spare_.empty()) spare_.push_back(std::make_unique<CudaEvent>(device_index_));
        cuda_check(cudaEventRecord(spare_.back()->native(), stream), "cudaEventRecord");
        taken_.push_back({current_, std::move(spare_.back())});
        spare_.pop_back();
    }

  private:
    static constexpr std::size_t kAligned = 256, kMostTables = 64;
    struct RingPart {
        std::size_t begin, end;
    };
    struct TakenTable {
        RingPart part;
        std::unique_ptr<CudaEvent> free;
    };
    bool overlaps_a_table() const {
        return std::any_of(taken_.begin(), taken_.end(), [this](const TakenTable& one) {
            return one.part.begin < current_.end && current_.begin < one.part.end;
        });
    }

    int device_index_;
    std::size_t bytes_;
    std::unique_ptr<std::byte, CudaFreeHost> pinned_;
    std::unique_ptr<std::byte, CudaFree> memory_;
    RingPart current_{0, 0};             // the table that is written
    std::deque<TakenTable> taken_;   // the oldest first
    std::vector<std::unique_ptr<CudaEvent>> spare_;
};

}  // namespace penstock::device
