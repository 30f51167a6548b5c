// See group_links.hpp.
#include "formats/hdf5/groups/group_links.hpp"

#include <algorithm>
#include <set>

#include "formats/hdf5/groups/fractal_heap.hpp"
#include "formats/hdf5/index/version2_tree.hpp"

namespace penstock::formats {
namespace {

std::string link_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GroupLink read_link(StructureFields fields) {
    constexpr std::uint64_t kOrderedLinks = 4, kHasKind = 8, kHasCharacters = 0x10, kHard = 0, kSoft = 1;
    if (const std::uint64_t version = fields.number(1); version != 1)
        fields.wrong("has version " + std::to_string(version));
    const std::uint64_t flags = fields.number(1);
    const std::uint64_t kind = (flags & kHasKind) != 0 ? fields.number(1) : kHard;
    GroupLink link;
    if ((flags & kOrderedLinks) != 0) link.order = fields.number(8);
    if ((flags & kHasCharacters) != 0) fields.skip(1);
    link.name = link_text(fields.take(fields.number(std::uint64_t{1} << (flags & 3))));
    if (kind == kHard) {
        link.address = fields.needed_address();
    } else if (kind == kSoft) {
        link.leads = GroupLink::LinkTarget::to_path;
        link.path = link_text(fields.take(fields.number(2)));
    } else {
        link.leads = GroupLink::LinkTarget::elsewhere;
    }
    return link;
}

// A group of HDF5 1.6 and before: a B-tree of version 1 over names in a local heap.
class SymbolTable {
  public:
    SymbolTable(const MetadataBlocks& blocks, StructureFields message) : blocks_(blocks) {
        tree_ = message.needed_address();
        const std::uint64_t heap = message.needed_address();
        const FieldSizes sizes = blocks.sizes();
        const BlockBytes head = blocks.block(heap, 8 + 2 * sizes.length + sizes.address, "a local heap");
        StructureFields fields = blocks.fields(head, "a local heap");
        need_signature(fields, "HEAP");
        fields.skip(4);
        const std::uint64_t bytes = fields.length();
        fields.skip(sizes.length);
        texts_ = blocks.block(fields.needed_address(), bytes, "a local heap");
    }

    std::vector<GroupLink> links() {
        constexpr std::size_t kMostGroupLevels = 256;
        add_node(tree_, kMostGroupLevels);
        return std::move(links_);
    }

  private:
    static constexpr const char *kGroupNodeWhat = "a B-tree of a group", *kTableWhat = "a symbol table";

    // `above`: the level of the node that names it.
    void add_node(std::uint64_t address, std::uint64_t above) {
        constexpr std::uint64_t kOfGroups = 0;
        if (!seen_.insert(address).second) throw_damaged("a B-tree of a group has a node twice");
        const FieldSizes sizes = blocks_.sizes();
        const std::uint64_t head_bytes = 8 + 2 * sizes.address;
        const BlockBytes first = blocks_.block(address, head_bytes, kGroupNodeWhat);
        StructureFields head = blocks_.fields(first, kGroupNodeWhat);
        need_signature(head, "TREE");
        if (head.number(1) != kOfGroups) head.wrong("has a node of another type");
        const std::uint64_t level = head.number(1), entries = head.number(2);
        if (level >= above) head.wrong("has a node on a wrong level");
        const std::uint64_t bytes = head_bytes + entries * (sizes.length + sizes.address);
        const BlockBytes block = blocks_.block(address, bytes, kGroupNodeWhat);
        StructureFields fields = blocks_.fields(block, kGroupNodeWhat);
        fields.skip(head_bytes);
        for (std::uint64_t i = 0; i < entries; ++i) {
            fields.skip(sizes.length);
            const std::uint64_t child = fields.needed_address();
            level == 0 ? add_table(child) : add_node(child, level);
        }
    }

    void add_table(std::uint64_t address) {
        if (!seen_.insert(address).second) throw_damaged("a B-tree of a group has a symbol table twice");
        const std::uint64_t entry_bytes = 2 * blocks_.sizes().address + 24;
        const BlockBytes first = blocks_.block(address, 8, kTableWhat);
        StructureFields head = blocks_.fields(first, kTableWhat);
        need_signature(head, "SNOD");
        head.skip(2);
        const std::uint64_t entries = head.number(2);
        const BlockBytes block = blocks_.block(address, 8 + entries * entry_bytes, kTableWhat);
        StructureFields fields = blocks_.fields(block, kTableWhat);
        fields.skip(8);
        for (std::uint64_t i = 0; i < entries; ++i) add_entry(fields);
    }

    void add_entry(StructureFields& fields) {
        constexpr std::uint64_t kSoftLink = 2;
        GroupLink link{.name = text_at(fields.number(blocks_.sizes().address))};
        const std::optional<std::uint64_t> object = fields.address();
        const std::uint64_t kind = fields.number(4);
        fields.skip(4);
        const std::uint64_t path = fields.number(4);
        fields.skip(12);
        if (kind == kSoftLink) {
            link.leads = GroupLink::LinkTarget::to_path;
            link.path = text_at(path);
        } else {
            if (!object) fields.wrong("has a link to nothing");
            link.address = *object;
        }
        links_.push_back(std::move(link));
    }

    std::string text_at(std::uint64_t offset) const {
        StructureFields fields = blocks_.fields(texts_, "a local heap");
        fields.skip(offset);
        return fields.text();
    }

    const MetadataBlocks& blocks_;
    std::uint64_t tree_ = 0;
    BlockBytes texts_{};
    std::set<std::uint64_t> seen_{};
    std::vector<GroupLink> links_{};
};

// What a group says of its links: whether it keeps the order in which they were made, and where those are that its
// header has not.
struct LinkInfo {
    bool is_ordered = false;
    std::optional<std::uint64_t> heap{}, names{};
};

LinkInfo read_info(StructureFields fields) {
    constexpr std::uint64_t kOrderedLinks = 1;
    LinkInfo info;
    if (const std::uint64_t version = fields.number(1); version != 0)
        throw_unsupported("a group says of its links in version " + std::to_string(version));
    info.is_ordered = (fields.number(1) & kOrderedLinks) != 0;
    if (info.is_ordered) fields.skip(8);
    info.heap = fields.address();
    info.names = fields.address();
    return info;
}

void add_from_heap(const MetadataBlocks& blocks, const LinkInfo& info, std::vector<GroupLink>& links) {
    constexpr std::uint64_t kByName = 5, kHashBytes = 4;
    if (!info.names) throw_damaged("a group has a heap of links and no index of it");
    const FractalHeap heap(blocks, *info.heap);
    const Version2Tree tree(blocks, *info.names);
    if (tree.type() != kByName || tree.record_bytes() != kHashBytes + heap.id_bytes())
        throw_damaged("the index of a group's links is of another type");
    tree.for_each([&](StructureFields record) {
        record.skip(kHashBytes);
        const std::vector<std::byte> bytes = heap.object(record.take(heap.id_bytes()));
        links.push_back(read_link({bytes, blocks.sizes(), "a link"}));
    });
}

}  // namespace

std::vector<GroupLink> read_links(const MetadataBlocks& blocks, const ObjectHeader& group) {
    std::vector<GroupLink> links;
    bool is_ordered = false;
    ObjectHeader holder;
    if (const ObjectMessage* table = group.find(kTableMessage)) {
        links = SymbolTable(blocks, message_fields(blocks, *table, holder)).links();
    }
    for (const ObjectMessage& message : group.messages) {
        if (message.type != kLinkMessage) continue;
        links.push_back(read_link(message_fields(blocks, message, holder)));
    }
    if (const ObjectMessage* said = group.find(kLinkInfoMessage)) {
        const LinkInfo info = read_info(message_fields(blocks, *said, holder));
        if (info.heap) add_from_heap(blocks, info, links);
        is_ordered = info.is_ordered;
    }
    std::stable_sort(links.begin(), links.end(), [&](const GroupLink& one, const GroupLink& other) {
        return is_ordered ? one.order < other.order : one.name < other.name;
    });
    return links;
}

}  // namespace penstock::formats
