// See kept_chunks.hpp.
#include "data/kept/kept_chunks.hpp"

#include <algorithm>
#include <utility>

namespace penstock::data {

std::size_t KeptChunks::Hash::operator()(const ChunkKey& key) const noexcept {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // spreads numbers that lie near each other
    std::uint64_t mixed = key.kind;
    for (const std::uint64_t part : {key.offset, key.bytes, static_cast<std::uint64_t>(key.skipped)}) {
        mixed = (mixed ^ (mixed >> 29U)) * kOdd + part;
    }
    return mixed ^ (mixed >> 32U);
}

DecodedChunk KeptChunks::find_locked(const ChunkKey& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return {};
    chunks_.splice(chunks_.end(), chunks_, found->second);
    return found->second->chunk;
}

DecodedChunk KeptChunks::find(const ChunkKey& key) {
    const std::scoped_lock lock(mutex_);
    return find_locked(key);
}

std::vector<DecodedChunk> KeptChunks::find_all(std::span<const ChunkKey> keys) {
    std::vector<DecodedChunk> found;
    found.reserve(keys.size());
    const std::scoped_lock lock(mutex_);
    for (const ChunkKey& key : keys) found.push_back(find_locked(key));
    return found;
}

void KeptChunks::keep(const ChunkKey& key, DecodedChunk chunk) {
    std::list<KeptChunk> one, left;  // behind the lock: to give their memory back takes long
    one.push_back({key, std::move(chunk)});
    const std::scoped_lock lock(mutex_);
    if (is_closed_ || !places_.try_emplace(key, one.begin()).second) return;
    chunks_.splice(chunks_.end(), one);  // from here on nothing needs memory
    bytes_ += chunks_.back().chunk.bytes;
    while (bytes_ > limits_.bytes || chunks_.size() > limits_.chunks) {
        bytes_ -= chunks_.front().chunk.bytes;
        places_.erase(chunks_.front().key);
        left.splice(left.end(), chunks_, chunks_.begin());
    }
}

void KeptChunks::close() {
    std::list<KeptChunk> left;
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
    places_.clear();
    left.swap(chunks_);
    bytes_ = 0;
}

std::size_t KeptChunks::size() const {
    const std::scoped_lock lock(mutex_);
    return chunks_.size();
}

LatelyRead::LatelyRead(std::uint64_t chunk_bytes, const KeptLimits& limits)
    : most_(std::max<std::uint64_t>(1, std::min(limits.bytes / chunk_bytes, limits.chunks) / 2)) {}

std::vector<std::uint64_t> LatelyRead::again(std::span<const std::uint64_t> numbers) {
    std::vector<std::uint64_t> found;
    const std::scoped_lock lock(mutex_);
    for (const std::uint64_t number : numbers) {
        if (now_.contains(number) || before_.contains(number)) found.push_back(number);
    }
    now_.insert(numbers.begin(), numbers.end());
    if (now_.size() > most_) before_ = std::exchange(now_, {});
    return found;
}

std::size_t LatelyRead::size() const {
    const std::scoped_lock lock(mutex_);
    return now_.size() + before_.size();
}

}  // namespace penstock::data
