// See superblock.hpp.
#include "formats/hdf5/superblock.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "formats/hdf5/lookup3.hpp"
#include "formats/hdf5/object_header.hpp"

namespace penstock::formats {
namespace {

constexpr std::string_view kFileSignature = "\x89HDF\r\n\x1a\n";
constexpr std::uint64_t kFirstUserBlock = 512, kMostSuperblockBytes = 128;
constexpr std::uint64_t kDriverMessage = 0x14, kSharedTableMessage = 0x0F, kCacheImageMessage = 0x18;
constexpr const char* kSuperblockWhat = "the superblock";

unsigned checked_size(StructureFields& fields) {
    const std::uint64_t bytes = fields.number(1);
    if (bytes != 2 && bytes != 4 && bytes != 8)
        throw_unsupported("its addresses or lengths have " + std::to_string(bytes) + " bytes",
                          "h5repack makes a file that has 8");
    return static_cast<unsigned>(bytes);
}

[[noreturn]] void refuse_driver() {
    throw_unsupported("it is a part of a file that HDF5's family, split or multi driver wrote",
                      "h5repack makes one file of all parts");
}

// Versions 0 and 1: the root group is the entry of a symbol table.
void read_old(StructureFields& fields, Superblock& found) {
    fields.skip(4);
    FieldSizes& sizes = found.frame.sizes;
    sizes.address = checked_size(fields);
    sizes.length = checked_size(fields);
    fields.skip(1 + 2 + 2 + 4);
    if (found.version == 1) fields.skip(4);
}

// Versions 2 and 3.
void read_new(StructureFields& fields, Superblock& found) {
    FieldSizes& sizes = found.frame.sizes;
    sizes.address = checked_size(fields);
    sizes.length = checked_size(fields);
    const std::uint64_t flags = fields.number(1);
    constexpr std::uint64_t kHasWriter = 1, kManyReaders = 4;
    if (found.version == 3 && (flags & (kHasWriter | kManyReaders)) != 0)
        throw_unsupported("a program has it open for writing, or died with it",
                          "wait until it is closed; h5clear -s after a crash");
}

void check_end(const ByteSource& source, Superblock& found, std::uint64_t begin, std::uint64_t base) {
    std::uint64_t& end = found.frame.end;
    // A user block that was put before the file, or taken away, moves all of it.
    if (base > begin ? end < base - begin : end > ~std::uint64_t{0} - (begin - base))
        throw_damaged("its superblock says that it ends at " + std::to_string(end));
    end = base > begin ? end - (base - begin) : end + (begin - base);
    found.frame.base = begin;
    if (end > source.size_bytes())
        throw BadStructure{
            BadStructure::Wrong::cut_short,
            "it has " + std::to_string(source.size_bytes()) + " bytes, and its superblock says " + std::to_string(end)};
    if (end <= begin) throw_damaged("its superblock says that it ends at " + std::to_string(end));
}

}  // namespace

std::optional<std::uint64_t> find_superblock(const ByteSource& source) {
    const std::uint64_t size = source.size_bytes();
    for (std::uint64_t at = 0; at < size; at = at == 0 ? kFirstUserBlock : 2 * at) {
        const std::vector<std::byte> begin = source.read(at, kFileSignature.size());
        if (begin.size() < kFileSignature.size()) break;
        if (std::memcmp(begin.data(), kFileSignature.data(), begin.size()) == 0) return at;
        if (at > size / 2) break;
    }
    return std::nullopt;
}

Superblock read_superblock(const ByteSource& source, std::uint64_t begin) {
    const std::vector<std::byte> bytes = source.read(begin, kMostSuperblockBytes);
    Superblock found;
    StructureFields head(bytes, {}, kSuperblockWhat);
    try {
        head.skip(kFileSignature.size());
        found.version = static_cast<std::uint8_t>(head.number(1));
        if (found.version > 3)
            throw_unsupported("its superblock has version " + std::to_string(found.version) +
                              "; Penstock knows 0 to 3");
        found.version < 2 ? read_old(head, found) : read_new(head, found);
        const std::span<const std::byte> all(bytes);
        StructureFields fields(all.subspan(head.at()), found.frame.sizes, kSuperblockWhat);
        const std::uint64_t base = fields.needed_address();
        const std::optional<std::uint64_t> second = fields.address();  // of free space, or of the extension
        found.frame.end = fields.needed_address();
        if (found.version < 2) {
            if (fields.address()) refuse_driver();
            fields.skip(found.frame.sizes.address);  // the root's name
        } else {
            found.extension = second;
        }
        found.root = fields.needed_address();
        if (found.version >= 2) {
            const std::size_t summed = head.at() + fields.at();
            if (fields.number(4) != lookup3(all.first(summed)))
                throw_damaged("the checksum of its superblock is wrong");
        }
        check_end(source, found, begin, base);
    } catch (const BadStructure& bad) {
        const bool is_short = bad.kind == BadStructure::Wrong::damaged && bytes.size() < kMostSuperblockBytes;
        if (!is_short) throw;
        throw BadStructure{BadStructure::Wrong::cut_short, bad.cause};
    }
    return found;
}

void check_extension(const MetadataBlocks& blocks, const Superblock& superblock) {
    if (!superblock.extension) return;
    for (const ObjectMessage& message : read_object(blocks, *superblock.extension).messages) {
        if (message.type == kDriverMessage) refuse_driver();
        if (message.type == kSharedTableMessage)
            throw_unsupported("its objects share messages in a table", "h5repack makes a file without");
        if (message.type == kCacheImageMessage)
            throw_unsupported("it holds an image of the HDF5 library's cache", "h5repack makes a file without");
    }
}

}  // namespace penstock::formats
