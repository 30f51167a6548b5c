// Tables of boxes on their way to a kernel: written in pinned memory, read by the kernel from device memory, because it
// searches them. Reused in turn; a table is rewritten only after the kernel that read it is done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/boxes/box_lanes.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/kernels.hpp"
#include "penstock/box.hpp"

namespace penstock::device {

class BoxRing {
  public:
    static constexpr std::uint32_t kBoxes = 4096;  // of one table
    explicit BoxRing(int device_index);

    // Queues the upload of a table of boxes (simplified, at most kBoxes) and says what to launch. Boxes of a fill read
    // `pattern`, which goes along; it is empty for copies. Waits until the oldest table is free.
    BoxLaunch upload(std::span<const Box> boxes, std::span<const std::byte> pattern, cudaStream_t stream);
    void used(cudaStream_t stream);  // the table uploaded last is read by work queued so far

  private:
    static constexpr std::size_t kTables = 2;
    // A table begins with its pattern; works and first units follow.
    static constexpr std::size_t kWorksOffset = kFillItemBytes;
    static constexpr std::size_t kTableBytes = kWorksOffset + kBoxes * (sizeof(BoxWork) + 8) + 8;
    struct Table {
        std::unique_ptr<std::byte, CudaFreeHost> pinned;
        std::unique_ptr<std::byte, CudaFree> memory;
        std::unique_ptr<CudaEvent> free;
    };
    std::array<Table, kTables> tables_;
    std::size_t current_ = kTables - 1;
};

}  // namespace penstock::device
