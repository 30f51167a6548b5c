// Boxes, sorts into cells and checksums of a Context: on the device where it can address the memory, on the calling
// thread for plain memory of the emulated device, which is the CPU itself. It sorts plain memory of every device.
#include "context/state.hpp"
#include "device/host/box_host.hpp"
#include "device/host/sort_host.hpp"

namespace penstock {
namespace {

enum class Mover { device, calling_thread };

Mover mover_for(Device& device, MemoryKind kind, const char* operation) {
    if (kind != MemoryKind::system) return Mover::device;
    const DeviceInfo info = device.info();
    if (info.emulated) return Mover::calling_thread;
    if (info.coherent_with_host) return Mover::device;
    throw Error(ErrorCode::unsupported, operation, "a device cannot address ordinary host memory",
                "use memory of kind device, pinned or managed");
}

}  // namespace

void Context::copy_boxes(std::span<const Box> boxes, MemoryKind kind) const {
    state_->check_process();
    if (mover_for(*state_->device, kind, "copy boxes") == Mover::device) {
        state_->streams.run([&](Stream& stream) { stream.copy_boxes(boxes); });
        return;
    }
    for (const Box& box : boxes) simplify_box(box, [](const Box&) {});  // all make sense, or none is moved
    for (const Box& box : boxes) simplify_box(box, &device::copy_box_on_host);
}

void Context::fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item, MemoryKind kind) const {
    state_->check_process();
    if (mover_for(*state_->device, kind, "fill boxes") == Mover::device) {
        state_->streams.run([&](Stream& stream) { stream.fill_boxes(boxes, item); });
        return;
    }
    device::BoxFill fill = device::plan_fill(boxes, item);
    for (Box& box : fill.boxes) {
        box.source = fill.pattern.data();
        device::copy_box_on_host(box);
    }
}

std::vector<std::uint32_t> Context::checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) const {
    state_->check_process();
    std::vector<std::uint32_t> found;
    state_->streams.run([&](Stream& stream) { found = stream.checksums(kind, ranges); });
    return found;
}

CellsFound Context::sort_cells(const CellSort& sort, MemoryKind kind) const {
    state_->check_process();
    if (kind == MemoryKind::system) return device::sort_cells_on_host(sort);
    CellsFound found;
    state_->streams.run([&](Stream& stream) { found = stream.sort_cells(sort); });
    return found;
}

void Context::gather(std::span<const RowGather> gathers, MemoryKind kind) const {
    state_->check_process();
    if (kind == MemoryKind::system) {
        for (const RowGather& one : gathers) device::gather_on_host(one);
        return;
    }
    state_->streams.run([&](Stream& stream) {
        for (const RowGather& one : gathers) stream.gather(one);
    });
}

void Context::synchronize_stream(std::uintptr_t native_handle) const {
    state_->check_process();
    state_->device->synchronize_native(native_handle);
}

}  // namespace penstock
