// See gather.hpp.
#include "data/encode/gather.hpp"

#include <algorithm>
#include <cstring>

#include "device/host/box_host.hpp"

namespace penstock::data {

std::span<const std::byte> Gatherer::plain_of(const PlainChunk& chunk) {
    const std::uint64_t size = work_.encoder.chunk_bytes();
    const std::span<const GatheredBox> boxes = work_.boxes.subspan(chunk.first_box, chunk.boxes);
    if (boxes.size() == 1 && is_whole(boxes.front().box)) {
        return {static_cast<const std::byte*>(boxes.front().box.source), size};
    }
    if (own_ == nullptr) own_ = std::make_unique_for_overwrite<std::byte[]>(size);
    if (chunk.filled) fill({own_.get(), size});
    for (const GatheredBox& gathered : boxes) {
        Box box = gathered.box;
        box.destination = own_.get() + gathered.destination_bytes;
        device::copy_box_on_host(box);
    }
    return {own_.get(), size};
}

bool Gatherer::is_whole(const Box& box) const noexcept {
    return box.dimensions == 0 && box.swap_bytes == 0 && box.item_bytes == work_.encoder.chunk_bytes();
}

void Gatherer::fill(std::span<std::byte> chunk) const {
    if (work_.fill.empty()) return static_cast<void>(std::memset(chunk.data(), 0, chunk.size()));
    std::size_t done = std::min(work_.fill.size(), chunk.size());
    std::memcpy(chunk.data(), work_.fill.data(), done);
    while (done < chunk.size()) {
        const std::size_t some = std::min(done, chunk.size() - done);
        std::memcpy(chunk.data() + done, chunk.data(), some);
        done += some;
    }
}

}  // namespace penstock::data
