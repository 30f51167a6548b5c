// See hdf5_file.hpp.
#include "formats/hdf5/hdf5_file.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "formats/faults.hpp"
#include "formats/hdf5/describe_dataset.hpp"
#include "formats/hdf5/groups/group_links.hpp"
#include "formats/hdf5/index/chunk_grid.hpp"
#include "formats/hdf5/superblock.hpp"

namespace penstock::formats {
namespace {

constexpr std::size_t kMostFollowed = 64;                       // soft links of one name
constexpr std::size_t kMostNameBytes = std::size_t{256} << 20;  // of all names of a file

Error told_error(const Subject& subject, const BadStructure& bad) {
    if (bad.kind == BadStructure::Wrong::cut_short) return cut_short(subject, bad.cause);
    if (bad.kind == BadStructure::Wrong::unsupported) return unsupported(subject, bad.cause, bad.advice);
    return damaged(subject, bad.cause);
}

// What an action finds. Throws Error with the file and the dataset.
template <class Action>
auto telling(const Subject& subject, const Action& action) {
    try {
        return action();
    } catch (const BadStructure& bad) {
        throw told_error(subject, bad);
    }
}

// What a path leads to: the address of an object's header, or why it leads nowhere.
struct FoundObject {
    std::optional<std::uint64_t> address{};
    std::string refusal{};  // it leads out of the file
};

class Hdf5File final : public Hdf5Container {
  public:
    explicit Hdf5File(std::unique_ptr<const ByteSource> source)
        : source_(std::move(source)), superblock_(told_superblock(*source_)), blocks_(*source_, superblock_.frame) {
        telling({source_->name()}, [&] {
            check_extension(blocks_, superblock_);
            if (!read_object(blocks_, superblock_.root).is_group()) throw_damaged("its root is no group");
            return 0;
        });
    }

    const char* format() const override { return "hdf5"; }

    std::vector<std::string> names() const override {
        const std::scoped_lock lock(mutex_);
        if (!names_) names_ = telling({source_->name()}, [&] { return all_names(); });
        return *names_;
    }

    StoredDataset dataset(const std::string& name) const override { return described(name)->stored; }

    std::optional<ChunkPlace> place(const StoredDataset& dataset, std::span<const std::int64_t> cell) const override {
        const DescribedPtr known = described(dataset.name);
        return telling({source_->name(), dataset.name}, [&]() -> std::optional<ChunkPlace> {
            const DataLayout& layout = known->layout;
            if (layout.kind != DataLayout::LayoutKind::chunked) {
                if (!layout.address) return std::nullopt;
                return ChunkPlace{.offset_bytes = dataset.offset_bytes, .bytes = extent_bytes(dataset)};
            }
            // An array type adds dimensions, in which a chunk is whole.
            const std::vector<std::uint64_t> own(cell.begin(),
                                                 cell.begin() + static_cast<std::ptrdiff_t>(known->grid.chunk.size()));
            const auto found = find_chunk(blocks_, layout, known->grid, own);
            if (!found) return std::nullopt;
            return ChunkPlace{.offset_bytes = blocks_.place(found->address, found->bytes),
                              .bytes = found->bytes,
                              .skipped = found->skipped};
        });
    }

    std::optional<LaidDataset> laid_dataset(const std::string& name) const override {
        try {
            const FoundObject found = resolve(name);
            if (!found.address) return std::nullopt;
            const ObjectHeader header = read_object(blocks_, *found.address);
            if (!header.is_dataset()) return std::nullopt;
            return laid(describe_dataset(blocks_, header, name));
        } catch (const BadStructure&) {  // what opens it by its name tells
            return std::nullopt;
        }
    }

  private:
    using DescribedPtr = std::shared_ptr<const DescribedDataset>;
    struct KnownLinks {
        explicit KnownLinks(std::vector<GroupLink> all) : links(std::move(all)) {
            for (const GroupLink& one : links) by_name.emplace(one.name, &one);
        }
        KnownLinks(const KnownLinks&) = delete;
        KnownLinks& operator=(const KnownLinks&) = delete;
        const std::vector<GroupLink> links;
        std::unordered_map<std::string_view, const GroupLink*> by_name{};
    };
    using LinksPtr = std::shared_ptr<const KnownLinks>;

    static std::optional<LaidDataset> laid(DescribedDataset described) {
        LaidDataset found{.stored = std::move(described.stored)};
        if (!found.stored.refusal.empty()) return std::nullopt;
        const DataLayout& layout = described.layout;
        found.is_chunked = layout.kind == DataLayout::LayoutKind::chunked;
        const bool is_whole = layout.kind == DataLayout::LayoutKind::contiguous && layout.address.has_value() &&
                              found.stored.filters.empty() && extent_bytes(found.stored) != 0;
        if (!found.is_chunked && !is_whole) return std::nullopt;
        for (const std::uint64_t most : described.grid.most) {
            found.most.push_back(most == kUnlimitedExtent ? std::nullopt : std::optional(most));
        }
        return found;
    }

    static Superblock told_superblock(const ByteSource& source) {
        return telling({source.name()}, [&] {
            const std::optional<std::uint64_t> begin = find_superblock(source);
            if (!begin) throw foreign(source.name(), "HDF5", source.read(0, 64));
            return read_superblock(source, *begin);
        });
    }

    DescribedPtr described(const std::string& name) const {
        {
            const std::scoped_lock lock(mutex_);
            const auto kept = described_.find(name);
            if (kept != described_.end()) return kept->second;
        }
        DescribedPtr made = telling({source_->name(), name}, [&] { return describe(name); });
        const std::scoped_lock lock(mutex_);
        return described_.emplace(name, std::move(made)).first->second;
    }

    DescribedPtr describe(const std::string& name) const {
        const FoundObject found = resolve(name);
        if (!found.refusal.empty()) throw_unsupported(found.refusal, "open that file, or read it from Python");
        if (!found.address) throw unknown(source_->name(), name, names());
        const ObjectHeader header = read_object(blocks_, *found.address);
        if (!header.is_dataset()) throw unknown(source_->name(), name, names());
        return std::make_shared<const DescribedDataset>(describe_dataset(blocks_, header, name));
    }

    LinksPtr links_of(std::uint64_t address) const {
        {
            const std::scoped_lock lock(links_mutex_);
            const auto kept = links_.find(address);
            if (kept != links_.end()) return kept->second;
        }
        const ObjectHeader header = read_object(blocks_, address);
        LinksPtr made = std::make_shared<const KnownLinks>(header.is_group() ? read_links(blocks_, header)
                                                                             : std::vector<GroupLink>{});
        const std::scoped_lock lock(links_mutex_);
        return links_.emplace(address, std::move(made)).first->second;
    }

    static void put_in_front(std::deque<std::string>& steps, const std::string& path) {
        std::vector<std::string> parts;
        for (std::size_t at = 0; at < path.size();) {
            const std::size_t end = std::min(path.find('/', at), path.size());
            const std::string part = path.substr(at, end - at);
            if (!part.empty() && part != ".") parts.push_back(part);
            at = end + 1;
        }
        steps.insert(steps.begin(), parts.begin(), parts.end());
    }

    FoundObject resolve(const std::string& path, std::uint64_t from) const {
        std::deque<std::string> steps;
        put_in_front(steps, path);
        std::uint64_t at = from;
        for (std::size_t followed = 0; !steps.empty();) {
            const LinksPtr known = links_of(at);
            const auto named = known->by_name.find(steps.front());
            if (named == known->by_name.end()) return {};
            const GroupLink* link = named->second;
            steps.pop_front();
            if (link->leads == GroupLink::LinkTarget::elsewhere)
                return {.refusal = "link " + shown(link->name) + " leads to another file"};
            if (link->leads == GroupLink::LinkTarget::to_object) {
                at = link->address;
                continue;
            }
            if (++followed > kMostFollowed) return {.refusal = "its soft links lead in a circle"};
            put_in_front(steps, link->path);
            if (link->path.starts_with('/')) at = superblock_.root;
        }
        return {.address = at};
    }
    FoundObject resolve(const std::string& path) const { return resolve(path, superblock_.root); }

    // What cannot be read is listed as a dataset, so that opening it tells why.
    enum class ObjectKind : std::uint8_t { dataset, group, neither };
    ObjectKind node_at(std::uint64_t address) const {
        try {
            const ObjectHeader header = read_object(blocks_, address);
            if (!header.is_group()) return header.is_dataset() ? ObjectKind::dataset : ObjectKind::neither;
            links_of(address);
            return ObjectKind::group;
        } catch (const BadStructure&) {
            return ObjectKind::dataset;
        }
    }

    // All datasets, each group once; soft links to datasets at the end.
    std::vector<std::string> all_names() const {
        std::vector<std::string> found, soft;
        std::vector<std::pair<std::string, std::uint64_t>> waiting{{"", superblock_.root}};
        std::set<std::uint64_t> seen{superblock_.root};
        std::size_t bytes = 0;
        while (!waiting.empty()) {
            const auto [path, group] = std::move(waiting.back());
            waiting.pop_back();
            const std::size_t first = waiting.size();
            const LinksPtr known = links_of(group);
            for (const GroupLink& link : known->links) {
                std::string full = path + link.name;
                bytes += full.size();
                if (bytes > kMostNameBytes) throw_unsupported("the names of its datasets take more than 256 MiB");
                if (link.leads == GroupLink::LinkTarget::to_path) soft.push_back(full);
                if (link.leads != GroupLink::LinkTarget::to_object) continue;
                const ObjectKind node = node_at(link.address);
                if (node == ObjectKind::dataset)
                    found.push_back(std::move(full));
                else if (node == ObjectKind::group && seen.insert(link.address).second)
                    waiting.emplace_back(full + "/", link.address);
            }
            std::reverse(waiting.begin() + static_cast<std::ptrdiff_t>(first), waiting.end());
        }
        for (std::string& one : soft) {
            if (leads_to_dataset(one)) found.push_back(std::move(one));
        }
        return found;
    }

    bool leads_to_dataset(const std::string& path) const {
        try {
            const FoundObject found = resolve(path);
            return found.address && node_at(*found.address) == ObjectKind::dataset;
        } catch (const BadStructure&) {
            return false;
        }
    }

    const std::unique_ptr<const ByteSource> source_;
    const Superblock superblock_;
    const MetadataBlocks blocks_;
    mutable std::mutex mutex_;
    mutable std::optional<std::vector<std::string>> names_;  // guarded by mutex_
    mutable std::map<std::string, DescribedPtr> described_;  // guarded by mutex_
    mutable std::mutex links_mutex_;
    mutable std::map<std::uint64_t, LinksPtr> links_;  // guarded by links_mutex_
};

}  // namespace

bool is_hdf5(const ByteSource& source) { return find_superblock(source).has_value(); }

std::unique_ptr<const Hdf5Container> open_hdf5(std::unique_ptr<const ByteSource> source) {
    return std::make_unique<Hdf5File>(std::move(source));
}

}  // namespace penstock::formats
