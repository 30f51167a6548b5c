// Streams of a GPU. They do not synchronise with the default stream.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/cuda/box_ring.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/kernels.hpp"
#include "penstock/device.hpp"

namespace penstock::device {

// cuStreamWriteValue32 of the driver: the GPU stores a word when the work before it is done.
using WriteValue = int (*)(cudaStream_t stream, std::uintptr_t address, std::uint32_t value, unsigned flags);

struct CudaFacts {
    int index = 0;
    int processors = 1;                // SMs
    bool kernels_reach_pinned = true;  // registered host memory has the same address on the host and on the device
    WriteValue write_value = nullptr;  // null: the driver has none
};

// Pinned tables of copy tasks, reused in turn. The host rewrites a table only after the kernel that reads it is done.
class TaskRing {
  public:
    static constexpr std::uint32_t kTasks = 2048;  // in one table
    explicit TaskRing(int device_index);
    CopyTask* next();                // waits until the oldest table is free
    void used(cudaStream_t stream);  // marks the last table as read by all work queued so far

  private:
    static constexpr std::size_t kTaskTables = 4;
    struct TaskTable {
        std::unique_ptr<CopyTask, CudaFreeHost> tasks;
        std::unique_ptr<CudaEvent> free;
    };
    std::array<TaskTable, kTaskTables> tables_;
    std::size_t current_ = kTaskTables - 1;
};

struct CellLaunch;
struct ChecksumSegment;
struct ChecksumTable;

// Segments for a kernel, and the sums that it returns.
struct ChecksumTables {
    ChecksumTables();
    std::unique_ptr<ChecksumTable, CudaFreeHost> pinned;
    std::unique_ptr<ChecksumTable, CudaFree> memory;
};

class CudaStream final : public Stream {
  public:
    explicit CudaStream(const CudaFacts& facts);
    ~CudaStream() override;

    void copy(CopyDirection direction, void* destination, const void* source, std::uint64_t bytes) override;
    void copy_batch(CopyDirection direction, std::span<const CopyPiece> pieces) override;
    void copy_boxes(std::span<const Box> boxes) override;
    void fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item) override;
    void pack(std::span<const Pack> packs) override;
    CellsFound sort_cells(const CellSort& sort) override;
    void gather(const RowGather& gather) override;
    void record(Event& event) override;
    void wait(Event& event) override;
    void follow(std::uintptr_t native) override;
    void lead(std::uintptr_t native) override;
    void synchronize() override;
    void synchronize_soon() override { wait_soon(stream_); }
    void copy_after(std::uintptr_t native, const CopyPiece& piece) override;
    void stamp(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) override;
    StampCheck verify_stamp(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                            std::uint64_t seed) override;
    std::vector<std::uint32_t> checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) override;
    void fill(void* memory, std::uint64_t bytes, int byte_value) override;
    void* native_handle() noexcept override { return stream_; }

  private:
    void wait_soon(cudaStream_t stream);
    void wait_for_work(cudaStream_t later, cudaStream_t first);
    void launch_tasks(std::uint32_t count);
    void queue_boxes(std::span<const Box> boxes, std::span<const std::byte> pattern);
    void pack_works(std::span<const PackWork> sorted);  // at most one table
    std::vector<std::uint64_t> sum_segments(ChecksumKind kind, std::span<const ChecksumSegment> segments);
    void read_now(void* to, const void* from, std::uint64_t bytes);
    bool find_faults(const CellLaunch& launch, CellsFound& found);
    void ensure_results();

    CudaFacts facts_;
    cudaStream_t stream_ = nullptr;
    std::unique_ptr<CudaEvent> order_;              // created by the first follow or lead; a wait keeps its point
    std::unique_ptr<TaskRing> ring_;                // created by the first batch
    std::unique_ptr<BoxRing> box_ring_;             // created by the first boxes
    std::unique_ptr<TableRing> pack_ring_;          // created by the first packs
    std::unique_ptr<ChecksumTables> checksums_;     // created by the first checksum
    std::unique_ptr<std::uint32_t, CudaFreeHost> ended_;  // the GPU writes the number of the last wait_soon
    std::uint32_t ends_ = 0;                              // of them
    CopyTask* tasks_ = nullptr;                     // the table that is being filled
    std::unique_ptr<StampResult, CudaFree> found_;  // created by the first check, like found_host_
    std::unique_ptr<StampResult, CudaFreeHost> found_host_;
};

}  // namespace penstock::device
