// See prp.hpp.
#include "ondevice/nvme/prp.hpp"

#include <algorithm>

namespace penstock::ondevice {
namespace {

// Adds the pages of the last `left` bytes, as the list at prp2 names them. The last entry of a full list page names the
// next list.
bool follow(const PrpRequest& request, u64 left, const Translate& translate, std::vector<PrpSpan>& spans) {
    const u64 page_bytes = request.page_bytes;
    for (u64 list = request.prp2; left > 0;) {
        if (list % 8 != 0) return false;
        const u64 room = (page_bytes - list % page_bytes) / 8;
        const u64 needed = (left + page_bytes - 1) / page_bytes;
        const u64 here = needed > room ? room - 1 : needed;
        const u64 read = needed > room ? room : needed;
        const u8* const memory = translate(list, read * 8);
        if (memory == nullptr) return false;
        const auto* const entries = reinterpret_cast<const u64*>(memory);
        for (u64 at = 0; at < here; ++at) {
            const u64 bytes = std::min(left, page_bytes);
            u8* const data = entries[at] % page_bytes == 0 ? translate(entries[at], bytes) : nullptr;
            if (data == nullptr) return false;
            spans.push_back({data, bytes});
            left -= bytes;
        }
        if (left == 0) return true;
        list = entries[here];
        if (list % page_bytes != 0) return false;
    }
    return true;
}

}  // namespace

std::vector<PrpSpan> prp_spans(const PrpRequest& request, const Translate& translate) {
    std::vector<PrpSpan> spans;
    if (request.bytes == 0 || request.prp1 % 4 != 0) return spans;
    const u64 first = std::min(request.bytes, request.page_bytes - request.prp1 % request.page_bytes);
    u8* const data = translate(request.prp1, first);
    if (data == nullptr) return spans;
    spans.push_back({data, first});
    const u64 left = request.bytes - first;
    if (left == 0) return spans;
    if (left <= request.page_bytes) {
        u8* const second = request.prp2 % request.page_bytes == 0 ? translate(request.prp2, left) : nullptr;
        if (second == nullptr) return {};
        spans.push_back({second, left});
        return spans;
    }
    if (!follow(request, left, translate, spans)) return {};
    return spans;
}

u64 prp_list_bytes(u64 pages, u64 page_bytes) {
    u64 bytes = 8;
    while (bytes < pages * 8) bytes *= 2;
    return bytes <= page_bytes ? bytes : 0;
}

}  // namespace penstock::ondevice
