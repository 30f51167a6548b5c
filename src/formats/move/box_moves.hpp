// Boxes and fills within one kind of memory: by the device where it is the device's, by this thread in plain memory of
// the host, which a GPU cannot address.
#pragma once

#include <cstddef>
#include <span>

#include "penstock/context.hpp"

namespace penstock::formats {

void move_boxes(const Context& context, std::span<const Box> boxes, MemoryKind kind);
void fill_boxes(const Context& context, std::span<const Box> boxes, std::span<const std::byte> item, MemoryKind kind);

}  // namespace penstock::formats
