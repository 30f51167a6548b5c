// See metadata_blocks.hpp.
#include "formats/hdf5/metadata_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "formats/hdf5/lookup3.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostKeptBytes = std::uint64_t{16} << 20;
constexpr std::size_t kBlockSumBytes = 4;

std::string at_address(std::string_view what, std::uint64_t address) {
    return std::string(what.empty() ? "a page" : what) + " at address " + std::to_string(address);
}

}  // namespace

std::uint64_t MetadataBlocks::place(std::uint64_t address, std::uint64_t bytes) const {
    const std::uint64_t room = frame_.end - frame_.base;
    if (address > room || bytes > room - address) {
        throw_damaged(std::to_string(bytes) + " bytes at address " + std::to_string(address) +
                      " lie behind the end of the file, which its superblock says is at " + std::to_string(room));
    }
    return frame_.base + address;
}

BlockBytes MetadataBlocks::fetch(const Key& key, std::string_view what) const {
    const std::uint64_t offset = place(key.address, key.bytes);
    {
        const std::scoped_lock lock(mutex_);
        const auto found = kept_.find(key);
        if (found != kept_.end()) return found->second;
    }
    auto bytes = std::make_shared<const std::vector<std::byte>>(source_.read(offset, key.bytes));
    if (bytes->size() < key.bytes) {
        throw BadStructure{BadStructure::Wrong::cut_short, "the file ends in " + at_address(what, key.address)};
    }
    if (key.is_checked) {
        const std::span all(*bytes);
        StructureFields sum(all.last(kBlockSumBytes), frame_.sizes, what);
        if (sum.number(kBlockSumBytes) != lookup3(all.first(all.size() - kBlockSumBytes)))
            throw_damaged("the checksum of " + at_address(what, key.address) + " is wrong");
    }
    const std::scoped_lock lock(mutex_);
    if (kept_bytes_ + key.bytes > kMostKeptBytes) kept_.clear(), kept_bytes_ = 0;
    if (kept_.emplace(key, bytes).second) kept_bytes_ += key.bytes;
    return bytes;
}

BlockBytes MetadataBlocks::block(std::uint64_t address, std::uint64_t bytes, std::string_view what) const {
    return fetch({address, bytes, false}, what);
}

BlockBytes MetadataBlocks::begin_of(std::uint64_t address, std::uint64_t most_bytes, std::string_view what) const {
    place(address, 0);
    return fetch({address, std::min(most_bytes, frame_.end - frame_.base - address), false}, what);
}

BlockBytes MetadataBlocks::checked(std::uint64_t address, std::uint64_t bytes, std::string_view signature) const {
    if (bytes < signature.size() + kBlockSumBytes) throw_damaged(at_address(signature, address) + " is too short");
    BlockBytes found = fetch({address, bytes, true}, signature);
    StructureFields fields = this->fields(found, signature);
    need_signature(fields, signature);
    return found;
}

void need_signature(StructureFields& fields, std::string_view signature) {
    const std::span<const std::byte> found = fields.take(signature.size());
    if (std::memcmp(found.data(), signature.data(), signature.size()) != 0)
        fields.wrong("does not begin with " + std::string(signature));
}

}  // namespace penstock::formats
