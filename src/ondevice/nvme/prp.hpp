// NVMe's physical region pages: how a controller finds the bytes of a command, and how large the lists of pages are
// that the memory's owner writes.
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

// The process's address of `bytes` bytes at an I/O address; null if they are not memory of the controller's.
using Translate = std::function<u8*(u64 io, u64 bytes)>;

struct PrpRequest {
    u64 prp1;
    u64 prp2;
    u64 bytes;
    u64 page_bytes;
};

// The spans in order. Empty: the specification does not allow an address, or it is not mapped.
std::vector<PrpSpan> prp_spans(const PrpRequest& request, const Translate& translate);

// The bytes of a list for `pages` pages: a power of two, so that lists which lie one after another from a page's start
// never cross a page. 0: a list would need a second page.
u64 prp_list_bytes(u64 pages, u64 page_bytes);

}  // namespace penstock::ondevice
