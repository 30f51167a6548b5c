// Boxes on a GPU: the host plans them and uploads tables, and one kernel moves the boxes of each table.
#include <algorithm>
#include <cstring>
#include <vector>

#include "device/boxes/box_plan.hpp"
#include "device/cuda/box_ring.hpp"
#include "device/cuda/stream.hpp"
#include "device/host/box_host.hpp"

namespace penstock::device {

BoxLaunch BoxRing::upload(std::span<const Box> boxes, std::span<const std::byte> pattern, cudaStream_t stream) {
    std::byte* pinned = tables_.next(table_bytes(boxes.size()));
    if (!pattern.empty()) std::memcpy(pinned, pattern.data(), pattern.size());
    auto* works = reinterpret_cast<BoxWork*>(pinned + kWorksOffset);
    auto* first_units = reinterpret_cast<std::uint64_t*>(works + boxes.size());
    std::uint64_t units = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        Box box = boxes[i];
        if (!pattern.empty()) box.source = tables_.in_memory(pinned);
        works[i] = plan_box(box);
        first_units[i] = units;
        units += units_of(works[i]);
    }
    first_units[boxes.size()] = units;
    const std::size_t begin = pattern.empty() ? kWorksOffset : 0;
    const auto end = static_cast<std::size_t>(reinterpret_cast<std::byte*>(first_units + boxes.size() + 1) - pinned);
    tables_.upload(begin, end, stream);
    return {tables_.in_memory(first_units), tables_.in_memory(works), static_cast<std::uint32_t>(boxes.size()), units};
}

void CudaStream::queue_boxes(std::span<const Box> boxes, std::span<const std::byte> pattern) {
    if (boxes.empty()) return;
    const ScopedCudaDevice scope(facts_.index);
    if (!box_ring_) box_ring_ = std::make_unique<BoxRing>(facts_.index);
    while (!boxes.empty()) {
        const std::size_t count = std::min<std::size_t>(boxes.size(), BoxRing::kBoxes);
        const BoxLaunch launch = box_ring_->upload(boxes.first(count), pattern, stream_);
        cuda_check(launch_move_boxes(launch, facts_.processors, stream_), "launch of a copy of boxes");
        box_ring_->used(stream_);
        boxes = boxes.subspan(count);
    }
}

void CudaStream::copy_boxes(std::span<const Box> boxes) { queue_boxes(simplified(boxes), {}); }

void CudaStream::fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item) {
    const BoxFill fill = plan_fill(boxes, item);
    queue_boxes(fill.boxes, fill.pattern);
}

}  // namespace penstock::device
