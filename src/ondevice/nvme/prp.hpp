// NVMe's physical region pages: where the bytes of a command are, as the controller reads it. Also how the memory's
// owner writes the lists of pages.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

struct PrpSpan {
    u8* data;
    u64 bytes;
};

// The process's address of `bytes` bytes at an I/O address; null when they are not memory of the controller's.
using Translate = std::function<u8*(u64 io, u64 bytes)>;

struct PrpRequest {
    u64 prp1;
    u64 prp2;
    u64 bytes;
    u64 page_bytes;
};

// The spans in order. Empty: an address is not allowed by the specification or not mapped.
std::vector<PrpSpan> prp_spans(const PrpRequest& request, const Translate& translate);

// Bytes a list for `pages` pages needs when it may not cross a page; a power of two, so lists laid one after another
// from a page's start never do. 0: a list would need a second page.
u64 prp_list_bytes(u64 pages, u64 page_bytes);

}  // namespace penstock::ondevice
