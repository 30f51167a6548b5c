// See object_header.hpp.
#include "formats/hdf5/object_header.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <string>

namespace penstock::formats {
namespace {

constexpr const char* kHeaderWhat = "an object header";
constexpr std::size_t kMostHeaderBlocks = 1 << 16;
constexpr std::uint64_t kMostPrefixBytes = 64, kSumBytesOfHeader = 4;

// Messages of one block.
struct MessageBlock {
    BlockBytes bytes;
    std::uint64_t address = 0;         // of the block
    std::uint64_t begin = 0, end = 0;  // of the messages, in the block
};

class HeaderReader {
  public:
    explicit HeaderReader(const MetadataBlocks& blocks) : blocks_(blocks) {}

    ObjectHeader read(std::uint64_t address) {
        const BlockBytes begin = blocks_.begin_of(address, kMostPrefixBytes, kHeaderWhat);
        StructureFields fields = blocks_.fields(begin, kHeaderWhat);
        is_new_ = begin->size() >= 4 && std::equal(begin->begin(), begin->begin() + 4, kSignature.begin(),
                                                   [](std::byte one, char other) { return std::byte(other) == one; });
        is_new_ ? add_first_new(fields, address) : add_first_old(fields, address);
        while (!waiting_.empty()) {
            const MessageBlock block = waiting_.front();
            waiting_.pop_front();
            add_messages(block);
        }
        return std::move(found_);
    }

  private:
    static constexpr std::string_view kSignature = "OHDR", kContinued = "OCHK";

    void add_first_old(StructureFields& fields, std::uint64_t address) {
        constexpr std::uint64_t kPrefixBytes = 16;
        if (const std::uint64_t version = fields.number(1); version != 1)
            throw_damaged("an object header at address " + std::to_string(address) + " has version " +
                          std::to_string(version));
        fields.skip(7);
        const std::uint64_t bytes = fields.number(4);
        add_block({blocks_.block(address + kPrefixBytes, bytes, kHeaderWhat), address + kPrefixBytes, 0, bytes});
    }

    void add_first_new(StructureFields& fields, std::uint64_t address) {
        constexpr std::uint64_t kOrdered = 4, kPhases = 0x10, kTimes = 0x20;
        fields.skip(kSignature.size());
        if (const std::uint64_t version = fields.number(1); version != 2)
            fields.wrong("has version " + std::to_string(version) + " behind OHDR");
        const std::uint64_t flags = fields.number(1);
        is_ordered_ = (flags & kOrdered) != 0;
        if ((flags & kTimes) != 0) fields.skip(16);
        if ((flags & kPhases) != 0) fields.skip(4);
        const std::uint64_t bytes = fields.number(std::uint64_t{1} << (flags & 3)), begin = fields.at();
        if (bytes > ~std::uint64_t{0} - 2 * kMostPrefixBytes) fields.wrong("has a size that no file has");
        add_block(
            {blocks_.checked(address, begin + bytes + kSumBytesOfHeader, kSignature), address, begin, begin + bytes});
    }

    void add_continued(StructureFields fields) {
        const std::uint64_t address = fields.needed_address(), bytes = fields.length();
        if (!is_new_) {
            add_block({blocks_.block(address, bytes, kHeaderWhat), address, 0, bytes});
            return;
        }
        const BlockBytes block = blocks_.checked(address, bytes, kContinued);
        add_block({block, address, kContinued.size(), bytes - kSumBytesOfHeader});
    }

    void add_block(MessageBlock block) {
        if (!seen_.insert(block.address).second || seen_.size() > kMostHeaderBlocks)
            throw_damaged("an object header continues in itself");
        found_.blocks.push_back(block.bytes);
        waiting_.push_back(std::move(block));
    }

    void add_messages(const MessageBlock& block) {
        constexpr std::uint64_t kShared = 2, kFailIfUnknown = 0x80, kMostKnown = 0x18;
        const std::uint64_t head_bytes = is_new_ ? (is_ordered_ ? 6 : 4) : 8;
        const auto bytes = std::span(*block.bytes).subspan(block.begin, block.end - block.begin);
        StructureFields fields(bytes, blocks_.sizes(), kHeaderWhat);
        while (fields.left() >= head_bytes) {
            ObjectMessage message;
            message.type = static_cast<std::uint16_t>(fields.number(is_new_ ? 1 : 2));
            const std::uint64_t length = fields.number(2), flags = fields.number(1);
            if (!is_new_) fields.skip(3);
            if (is_ordered_) message.order = fields.number(2);
            message.is_shared = (flags & kShared) != 0;
            message.address = block.address + block.begin + fields.at();
            message.body = fields.take(length);
            if ((flags & kFailIfUnknown) != 0 && message.type > kMostKnown)
                throw_unsupported("it has a message of type " + std::to_string(message.type) +
                                  ", which readers must know");
            if (message.type == kContinuationMessage)
                add_continued({message.body, blocks_.sizes(), kHeaderWhat});
            else if (message.type != 0)
                found_.messages.push_back(message);
        }
    }

    const MetadataBlocks& blocks_;
    bool is_new_ = false, is_ordered_ = false;
    ObjectHeader found_{};
    std::deque<MessageBlock> waiting_{};
    std::set<std::uint64_t> seen_{};
};

}  // namespace

const ObjectMessage* ObjectHeader::find(std::uint16_t type) const noexcept {
    const auto found =
        std::find_if(messages.begin(), messages.end(), [&](const ObjectMessage& one) { return one.type == type; });
    return found == messages.end() ? nullptr : &*found;
}

ObjectHeader read_object(const MetadataBlocks& blocks, std::uint64_t address) {
    return HeaderReader(blocks).read(address);
}

StructureFields message_fields(const MetadataBlocks& blocks, const ObjectMessage& message, ObjectHeader& holder) {
    if (!message.is_shared) return {message.body, blocks.sizes(), kHeaderWhat};
    constexpr std::uint64_t kInTable = 1;
    StructureFields fields(message.body, blocks.sizes(), kHeaderWhat);
    const std::uint64_t version = fields.number(1), kind = fields.number(1);
    if (version != 2 && version != 3)
        throw_unsupported("a message is shared in version " + std::to_string(version), "h5repack writes a newer one");
    if (version == 3 && kind == kInTable) throw_unsupported("its objects share messages in a table");
    holder = read_object(blocks, fields.needed_address());
    const ObjectMessage* shared = holder.find(message.type);
    if (shared == nullptr || shared->is_shared) fields.wrong("shares a message with an object that has none");
    return {shared->body, blocks.sizes(), kHeaderWhat};
}

}  // namespace penstock::formats
