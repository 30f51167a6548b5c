// See zarr_store.hpp.
#include "formats/zarr/zarr_store.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "formats/json/json_document.hpp"
#include "formats/zarr/zarr_array.hpp"

namespace penstock::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char *kDocument = "zarr.json", *kArray2 = ".zarray", *kGroup2 = ".zgroup";

bool is_file(const std::string& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

enum class Node : std::uint8_t { none, group, array };

class ZarrStore final : public Container {
  public:
    explicit ZarrStore(std::string root) : root_(std::move(root)) {}

    const char* format() const override { return "zarr"; }

    // Folders of arrays hold chunks, not nodes. A node whose document cannot be read is listed as an array, so that
    // opening it tells why.
    std::vector<std::string> names() const override {
        std::vector<std::string> found, waiting{""};
        while (!waiting.empty()) {
            const std::string name = std::move(waiting.back());
            waiting.pop_back();
            Node node = Node::array;
            bool is_broken = false;
            try {
                node = node_of(name);
            } catch (const Error&) {
                is_broken = true;
            }
            if (node == Node::array) found.push_back(name);
            if (node == Node::group || is_broken) add_folders(name, waiting);
        }
        std::sort(found.begin(), found.end());
        return found;
    }

    StoredDataset dataset(const std::string& name) const override { return array_of(name).dataset; }

    std::optional<ChunkPlace> place(const StoredDataset& dataset, std::span<const std::int64_t> cell) const override {
        const ZarrArray array = array_of(dataset.name);
        const InShard in_shard(array.sharding, cell);
        const std::string at = folder(dataset.name), leaf = array.keys.path(in_shard.shard), path = at + "/" + leaf;
        std::error_code error;
        const fs::file_status status = fs::status(path, error);
        if (status.type() == fs::file_type::not_found) {
            if (fs::is_symlink(path, error))
                throw damaged({path, dataset.name}, "the chunk is a link that leads nowhere");
            return std::nullopt;
        }
        if (error) refuse_read(path, error);
        if (!fs::is_regular_file(status))
            throw damaged({path, dataset.name}, "it has the name of a chunk and is no file");
        std::optional<ChunkPlace> place;
        if (array.sharding.shares_files()) {
            place = indexes_.place({path, dataset.name}, array.sharding, in_shard.chunk);
        } else {
            place = ChunkPlace{path, 0, fs::file_size(path, error)};
            if (error) refuse_read(path, error);
        }
        if (place) place->is_behind_link = is_behind_link(at, leaf);
        return place;
    }

  private:
    // A chunk's shard, and its number there, in C order; the chunk itself where it shares its file with no other.
    struct InShard {
        InShard(const Sharding& sharding, std::span<const std::int64_t> cell) : shard(cell.begin(), cell.end()) {
            for (std::size_t axis = 0; axis < sharding.chunks.size(); ++axis) {
                const std::int64_t extent = sharding.chunks[axis];
                chunk = chunk * static_cast<std::uint64_t>(extent) + static_cast<std::uint64_t>(cell[axis] % extent);
                shard[axis] = cell[axis] / extent;
            }
        }
        std::vector<std::int64_t> shard;
        std::uint64_t chunk = 0;
    };

    std::string folder(const std::string& name) const { return name.empty() ? root_ : root_ + "/" + name; }

    static bool is_behind_link(std::string path, const std::string& leaf) {
        std::error_code ignored;
        for (const fs::path& part : fs::path(leaf)) {
            path += "/" + part.string();
            if (fs::is_symlink(path, ignored)) return true;
        }
        return false;
    }

    // Whether a name stays in the store.
    bool is_inside(const std::string& name) const {
        std::string path = root_;
        for (const fs::path& part : fs::path(name)) {
            const std::string text = part.string();
            if (text.empty() || text == "." || text == ".." || text == "/" || text.find('\0') != std::string::npos)
                return false;
            path += "/" + text;
            std::error_code ignored;
            if (fs::is_symlink(path, ignored)) return false;
        }
        return true;
    }

    Node node_of(const std::string& name) const {
        if (!is_inside(name)) return Node::none;
        const std::string at = folder(name);
        if (const auto document = json_document(at + "/" + kDocument, name)) {
            const Value* type = document->member("node_type");
            const std::string text = type != nullptr && type->text() != nullptr ? *type->text() : "";
            if (text == "group") return Node::group;
            if (text == "array") return Node::array;
            throw damaged({at, name}, "node_type is neither 'array' nor 'group'");
        }
        if (is_file(at + "/" + kArray2)) return Node::array;
        return is_file(at + "/" + kGroup2) ? Node::group : Node::none;
    }

    void add_folders(const std::string& name, std::vector<std::string>& waiting) const {
        std::error_code error;
        for (fs::directory_iterator entry(folder(name), error), end; !error && entry != end; entry.increment(error)) {
            const std::string leaf = entry->path().filename().string();
            std::error_code ignored;
            if (entry->is_symlink(ignored) || !entry->is_directory(ignored)) continue;
            waiting.push_back(name.empty() ? leaf : name + "/" + leaf);
        }
        if (error) refuse_read(folder(name), error);
    }

    ZarrArray array_of(const std::string& name) const {
        const std::scoped_lock lock(mutex_);
        const auto kept = arrays_.find(name);
        if (kept != arrays_.end()) return kept->second;
        if (node_of(name) != Node::array) throw unknown(root_, name, names());
        const Subject subject{folder(name), name};
        const auto document = json_document(folder(name) + "/" + kDocument, name);
        const auto older = document ? std::nullopt : json_document(folder(name) + "/" + kArray2, name);
        if (!document && !older) throw damaged(subject, "its document went away");
        ZarrArray array = document ? parse_zarr3(subject, *document) : parse_zarr2(subject, *older);
        array.dataset.name = name;
        return arrays_.emplace(name, std::move(array)).first->second;
    }

    std::string root_;
    mutable ShardIndexes indexes_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, ZarrArray> arrays_;  // that were asked for; guarded by mutex_
};

}  // namespace

bool is_zarr(const std::string& folder) {
    return is_file(folder + "/" + kDocument) || is_file(folder + "/" + kArray2) || is_file(folder + "/" + kGroup2);
}

ContainerPtr open_zarr(const std::string& folder) {
    if (!is_zarr(folder)) {
        throw unsupported({folder},
                          "the folder has neither zarr.json, .zgroup or .zarray of a Zarr store nor penstock.json of a "
                          "history of raw files",
                          "give the folder that has one of them, or copy the store again, whole");
    }
    return std::make_unique<ZarrStore>(folder);
}

}  // namespace penstock::formats
