// See global_heap.hpp.
#include "formats/create/hdf5/global_heap.hpp"

#include <algorithm>
#include <utility>

namespace penstock::formats {
namespace {

// The HDF5 library reads this much of a collection before it knows how long that is.
constexpr std::uint64_t kCollectionMultiple = 4096;
constexpr std::uint64_t kHeadBytes = 16;       // of a collection, and of an object in one
constexpr std::uint64_t kMostObjects = 65535;  // of a collection; the number 0 is its free space

}  // namespace

std::size_t GlobalHeap::add(const std::vector<Hdf5Reference>& list) { return keep({.list = list}); }
std::size_t GlobalHeap::add_text(const std::string& text) { return keep({.text = text}); }

std::size_t GlobalHeap::keep(HeapValue value) {
    kept_.push_back(std::move(value));
    places_.emplace_back();
    return kept_.size() - 1;
}

void GlobalHeap::place_in(FileRoom& room) {
    for (std::size_t begin = 0; begin < kept_.size(); begin += kMostObjects) {
        const std::size_t end = std::min(kept_.size(), begin + kMostObjects);
        std::uint64_t bytes = kHeadBytes;
        for (std::size_t i = begin; i < end; ++i) bytes += kHeadBytes + rounded_up(kept_[i].bytes(), 8);
        const std::uint64_t at = room.take(rounded_up(bytes, kCollectionMultiple), 8);
        for (std::size_t i = begin; i < end; ++i) places_[i] = {at, static_cast<std::uint32_t>(i - begin + 1)};
    }
}

std::vector<FileChange> GlobalHeap::collections(std::span<const std::uint64_t> objects) const {
    std::vector<FileChange> made;
    for (std::size_t begin = 0; begin < kept_.size(); begin += kMostObjects) {
        const std::size_t end = std::min(kept_.size(), begin + kMostObjects);
        Hdf5Encoder body;
        for (std::size_t i = begin; i < end; ++i) {
            body.number(places_[i].index, 2).number(1, 2).number(0, 4).number(kept_[i].bytes(), 8);
            for (const Hdf5Reference& one : kept_[i].list) body.address(objects[one.object]);
            body.text(kept_[i].text).pad_to(8);
        }
        const std::uint64_t bytes = rounded_up(kHeadBytes + body.size(), kCollectionMultiple);
        const std::uint64_t left = bytes - kHeadBytes - body.size();
        if (left >= kHeadBytes) body.number(0, 8).number(left, 8);
        Hdf5Encoder out;
        out.text("GCOL").number(1, 1).number(0, 3).number(bytes, 8).copy(body.take()).pad_to(kCollectionMultiple);
        made.push_back({places_[begin].collection, out.take()});
    }
    return made;
}

}  // namespace penstock::formats
