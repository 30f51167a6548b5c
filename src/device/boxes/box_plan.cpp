// See box_plan.hpp.
#include "device/boxes/box_plan.hpp"

#include <algorithm>

#include "penstock/error.hpp"

namespace penstock::device {
namespace {

// Rows of at least this many elements move by windows, unless the elements are wide.
constexpr std::uint64_t kLongRow = 16;
constexpr unsigned kWide = 8;
constexpr unsigned kMostAlignment = 16;

// Adds a dimension for the pieces of a row, and then the dimensions of the box.
void add_dimensions(BoxWork& work, const Box& box, std::uint64_t in_row, std::uint64_t piece_bytes) {
    const auto stride = static_cast<std::int64_t>(piece_bytes);
    if (in_row > 1 || box.dimensions == 0) add_dimension(work, in_row, stride, stride);
    for (std::uint32_t d = box.dimensions; d-- > 0;) {
        add_dimension(work, box.extents[d], box.destination_strides[d], box.source_strides[d]);
    }
}

void plan_windows(BoxWork& work, const Box& box) {
    work.row_bytes = box.item_bytes;
    add_dimensions(work, box, (box.item_bytes + kWindow - 1) / kWindow + 1, kWindow);
}

void plan_elements(BoxWork& work, const Box& box, unsigned access) {
    work.access_bytes = static_cast<std::uint8_t>(access);
    work.element_bytes = static_cast<std::uint8_t>(std::max(access, box.swap_bytes));
    add_dimensions(work, box, box.item_bytes / work.element_bytes, work.element_bytes);
}

}  // namespace

unsigned common_alignment(const void* pointer, std::span<const std::int64_t> strides) noexcept {
    std::uint64_t bits = kMostAlignment | reinterpret_cast<std::uintptr_t>(pointer);
    for (const std::int64_t stride : strides) bits |= static_cast<std::uint64_t>(stride);
    return static_cast<unsigned>(bits & (~bits + 1));
}

void add_dimension(BoxWork& work, std::uint64_t extent, std::int64_t to_stride, std::int64_t from_stride) noexcept {
    work.extents[work.dimensions] = extent;
    work.to_strides[work.dimensions] = to_stride;
    work.from_strides[work.dimensions] = from_stride;
    ++work.dimensions;
}

void finish_grid(BoxWork& work) noexcept {
    work.pieces = 1;
    for (unsigned d = 0; d < work.dimensions; ++d) work.pieces *= work.extents[d];
    std::uint64_t pieces = kBoxLanes;
    for (unsigned d = 0; d < work.dimensions; ++d) {
        const bool last = d + 1 == work.dimensions;
        const std::uint64_t places = last ? pieces : pieces % work.extents[d];
        work.step[d] = static_cast<std::uint8_t>(places);
        work.to_step += static_cast<std::int64_t>(places) * work.to_strides[d];
        work.from_step += static_cast<std::int64_t>(places) * work.from_strides[d];
        pieces /= work.extents[d];
    }
}

std::vector<Box> simplified(std::span<const Box> boxes) {
    std::vector<Box> all;
    all.reserve(boxes.size());
    for (const Box& box : boxes) {
        simplify_box(box, [&](const Box& simple) {
            if (box.source == nullptr) {
                throw Error(ErrorCode::invalid_argument, "copy boxes", "the source of a box is null");
            }
            all.push_back(simple);
        });
    }
    return all;
}

BoxWork plan_box(const Box& box) {
    const unsigned to = common_alignment(box.destination, {box.destination_strides.data(), box.dimensions});
    const unsigned from = common_alignment(box.source, {box.source_strides.data(), box.dimensions});
    const auto item = static_cast<std::int64_t>(box.item_bytes);
    const unsigned both = std::min({to, from, common_alignment(nullptr, {&item, 1})});
    BoxWork work{};
    work.to = static_cast<unsigned char*>(box.destination);
    work.from = static_cast<const unsigned char*>(box.source);
    work.swap_bytes = static_cast<std::uint8_t>(box.swap_bytes);
    const bool words_aligned = box.swap_bytes == 0 || to % box.swap_bytes == 0;
    if (both < kWide && box.item_bytes >= kLongRow * both && words_aligned) {
        plan_windows(work, box);
    } else {
        plan_elements(work, box, both);
    }
    finish_grid(work);
    return work;
}

std::uint64_t units_of(const BoxWork& work) noexcept {
    return (work.pieces + kPiecesPerUnit - 1) / kPiecesPerUnit;
}

}  // namespace penstock::device
