// Tables for a kernel. The host writes them in pinned memory, and the kernel searches them in device memory. They are
// reused in turn, and the host rewrites a table only after the kernels that read it are done.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "device/cuda/event.hpp"

namespace penstock::device {

class TableRing {
  public:
    TableRing(int device_index, std::size_t bytes) {
        for (Table& table : tables_) {
            table.pinned.reset(allocate_pinned<std::byte>(bytes));
            void* memory = nullptr;
            cuda_check(cudaMalloc(&memory, bytes), "cudaMalloc");
            table.memory.reset(static_cast<std::byte*>(memory));
            table.free = std::make_unique<CudaEvent>(device_index);
        }
    }

    // Returns the next table to write. Waits until it is free.
    std::byte* next() {
        current_ = (current_ + 1) % kInTurn;
        tables_[current_].free->wait(Deadline::never());
        return tables_[current_].pinned.get();
    }
    // Queues the upload of a part of that table.
    void upload(std::size_t begin, std::size_t end, cudaStream_t stream) const {
        const Table& table = tables_[current_];
        cuda_check(cudaMemcpyAsync(table.memory.get() + begin, table.pinned.get() + begin, end - begin,
                                   cudaMemcpyHostToDevice, stream),
                   "cudaMemcpyAsync");
    }
    // Returns the address in device memory of something in that table.
    template <class T>
    const T* in_memory(const T* pinned) const noexcept {
        const Table& table = tables_[current_];
        const auto offset = reinterpret_cast<const std::byte*>(pinned) - table.pinned.get();
        return reinterpret_cast<const T*>(table.memory.get() + offset);
    }
    // Marks that table as read by all work queued so far.
    void used(cudaStream_t stream) {
        cuda_check(cudaEventRecord(tables_[current_].free->native(), stream), "cudaEventRecord");
    }

  private:
    static constexpr std::size_t kInTurn = 2;
    struct Table {
        std::unique_ptr<std::byte, CudaFreeHost> pinned;
        std::unique_ptr<std::byte, CudaFree> memory;
        std::unique_ptr<CudaEvent> free;
    };
    std::array<Table, kInTurn> tables_;
    std::size_t current_ = kInTurn - 1;
};

}  // namespace penstock::device
