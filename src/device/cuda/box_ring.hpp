// Tables of boxes for a kernel. The host writes them in pinned memory. The kernel searches them in device memory. They
// are reused in turn, and the host rewrites a table only after the kernel that reads it is done.
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
    static constexpr std::uint32_t kBoxes = 4096;  // in one table
    explicit BoxRing(int device_index);

    // Queues the upload of a table of boxes and returns what to launch. Requires: the boxes are simplified, and at most
    // kBoxes. The boxes of a fill read `pattern`, which is uploaded too. It is empty for copies. Waits until the oldest
    // table is free.
    BoxLaunch upload(std::span<const Box> boxes, std::span<const std::byte> pattern, cudaStream_t stream);
    void used(cudaStream_t stream);  // marks the last table as read by all work queued so far

  private:
    static constexpr std::size_t kBoxTables = 2;
    // A table consists of its pattern, then works, then first units.
    static constexpr std::size_t kWorksOffset = kFillItemBytes;
    static constexpr std::size_t kTableBytes = kWorksOffset + kBoxes * (sizeof(BoxWork) + 8) + 8;
    struct BoxTable {
        std::unique_ptr<std::byte, CudaFreeHost> pinned;
        std::unique_ptr<std::byte, CudaFree> memory;
        std::unique_ptr<CudaEvent> free;
    };
    std::array<BoxTable, kBoxTables> tables_;
    std::size_t current_ = kBoxTables - 1;
};

}  // namespace penstock::device
