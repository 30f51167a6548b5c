// See box_moves.hpp.
#include "formats/move/box_moves.hpp"

#include "device/host/box_host.hpp"

namespace penstock::formats {

void move_boxes(const Context& context, std::span<const Box> boxes, MemoryKind kind) {
    if (boxes.empty()) return;
    if (kind != MemoryKind::system) {
        context.copy_boxes(boxes, kind);
        return;
    }
    for (const Box& box : boxes) simplify_box(box, &device::copy_box_on_host);
}

void fill_boxes(const Context& context, std::span<const Box> boxes, std::span<const std::byte> item, MemoryKind kind) {
    if (boxes.empty()) return;
    if (kind != MemoryKind::system) {
        context.fill_boxes(boxes, item, kind);
        return;
    }
    device::BoxFill fill = device::plan_fill(boxes, item);
    for (Box& box : fill.boxes) {
        box.source = fill.pattern.data();
        device::copy_box_on_host(box);
    }
}

}  // namespace penstock::formats
