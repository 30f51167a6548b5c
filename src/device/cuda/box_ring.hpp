// Tables of boxes for the kernel that moves them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/boxes/box_lanes.hpp"
#include "device/cuda/kernels.hpp"
#include "device/cuda/table_ring.hpp"
#include "penstock/box.hpp"

namespace penstock::device {

class BoxRing {
  public:
    static constexpr std::uint32_t kBoxes = 4096;  // in one table
    explicit BoxRing(int device_index) : tables_(device_index, 2 * table_bytes(kBoxes)) {}

    // Queues the upload of a table of boxes and returns what to launch. Requires: the boxes are simplified, and at most
    // kBoxes. The boxes of a fill read `pattern`, which is uploaded too. It is empty for copies. Waits until the oldest
    // table is free.
    BoxLaunch upload(std::span<const Box> boxes, std::span<const std::byte> pattern, cudaStream_t stream);
    void used(cudaStream_t stream) { tables_.used(stream); }  // marks the last table as read by all work queued so far

  private:
    // A table consists of its pattern, then works, then first units.
    static constexpr std::size_t kWorksOffset = kFillItemBytes;
    static constexpr std::size_t table_bytes(std::size_t boxes) {
        return kWorksOffset + boxes * (sizeof(BoxWork) + 8) + 8;
    }
    TableRing tables_;
};

}  // namespace penstock::device
