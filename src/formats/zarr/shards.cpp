// See shards.hpp.
#include "formats/zarr/shards.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "data/decode/checksums/sums.hpp"

namespace penstock::formats {
namespace {

constexpr std::size_t kMostIndexes = 16;
constexpr std::uint64_t kNotStored = ~std::uint64_t{0};
constexpr std::uint64_t kOfChunk = 16, kOfSum = 4;  // bytes of an index

std::uint64_t word(const std::byte* at, bool big_endian) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return big_endian == (std::endian::native == std::endian::big) ? value : __builtin_bswap64(value);
}

void check_sum(const Subject& shard, std::span<const std::byte> stored) {
    std::uint32_t told = 0;
    const auto body = stored.first(stored.size() - kOfSum);
    for (std::size_t i = kOfSum; i-- > 0;) told = told << 8 | std::to_integer<std::uint32_t>(stored[body.size() + i]);
    if (data::crc32c(body) != told) throw damaged(shard, "the checksum of the shard's index does not fit");
}

}  // namespace

std::uint64_t Sharding::chunks_of_shard() const noexcept {
    std::uint64_t count = 1;
    for (const std::int64_t one : chunks) count *= static_cast<std::uint64_t>(one);
    return count;
}

std::uint64_t Sharding::index_bytes() const noexcept {
    return chunks_of_shard() * kOfChunk + (is_index_summed ? kOfSum : 0);
}

std::optional<ChunkPlace> ShardIndexes::place(const Subject& shard, const Sharding& sharding, std::uint64_t chunk) {
    const std::lock_guard lock(mutex_);
    const Index& index = index_of(shard, sharding);
    const std::uint64_t offset = index.places[2 * chunk], bytes = index.places[2 * chunk + 1];
    if (offset == kNotStored && bytes == kNotStored) return std::nullopt;
    if (offset > index.file_bytes || bytes > index.file_bytes - offset) {
        throw damaged(shard, "its index says that inner chunk " + std::to_string(chunk) + " of " +
                                 std::to_string(bytes) + " bytes lies at byte " + std::to_string(offset) +
                                 "; the shard ends at " + std::to_string(index.file_bytes));
    }
    return ChunkPlace{shard.file, offset, bytes};
}

const ShardIndexes::Index& ShardIndexes::index_of(const Subject& shard, const Sharding& sharding) {
    struct stat found {};
    if (::stat(shard.file.c_str(), &found) != 0) throw Error(errno_info("read", shard.file, errno));
    Index index{shard.file, found.st_dev, found.st_ino, static_cast<std::uint64_t>(found.st_size),
                std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec};
    const auto same = [&](const Index& one) {
        return one.inode == index.inode && one.device == index.device && one.changed_ns == index.changed_ns &&
               one.file_bytes == index.file_bytes && one.file == index.file;
    };
    const auto here = std::find_if(kept_.begin(), kept_.end(), same);
    if (here != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, here);
        return kept_.front();
    }
    read(shard, sharding, index);
    kept_.remove_if([&](const Index& one) { return one.file == index.file; });
    kept_.push_front(std::move(index));
    if (kept_.size() > kMostIndexes) kept_.pop_back();
    return kept_.front();
}

void ShardIndexes::read(const Subject& shard, const Sharding& sharding, Index& index) {
    const std::uint64_t bytes = sharding.index_bytes();
    if (bytes > index.file_bytes) {
        throw cut_short(shard, "the shard has " + std::to_string(index.file_bytes) + " bytes, its index alone has " +
                                   std::to_string(bytes));
    }
    std::vector<std::byte> stored(bytes);
    std::ifstream stream(shard.file, std::ios::binary);
    if (!stream) throw Error(errno_info("read", shard.file, errno));
    stream.seekg(static_cast<std::streamoff>(sharding.is_index_first ? 0 : index.file_bytes - bytes));
    stream.read(reinterpret_cast<char*>(stored.data()), static_cast<std::streamsize>(bytes));
    if (static_cast<std::uint64_t>(stream.gcount()) != bytes)
        throw cut_short(shard, "the index of the shard ends early");
    if (sharding.is_index_summed) check_sum(shard, stored);
    index.places.resize(2 * sharding.chunks_of_shard());
    for (std::size_t i = 0; i < index.places.size(); ++i) {
        index.places[i] = word(&stored[8 * i], sharding.is_index_big_endian);
    }
}

}  // namespace penstock::formats
