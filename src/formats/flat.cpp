// Containers of datasets that are one chunk of the file each: what raw files, NPY, safetensors and classic netCDF are.
#include <map>

#include "formats/container.hpp"
#include "formats/faults.hpp"

namespace penstock::formats {
namespace {

class FlatContainer final : public Container {
  public:
    FlatContainer(const char* format, const std::string& file, std::vector<StoredDataset> datasets)
        : format_(format), file_(file), datasets_(std::move(datasets)) {
        for (std::size_t i = 0; i < datasets_.size(); ++i) {
            if (!numbers_.emplace(datasets_[i].name, i).second) {
                throw damaged({file}, "two datasets are named " + shown(datasets_[i].name));
            }
        }
    }

    const char* format() const override { return format_; }
    std::vector<std::string> names() const override {
        std::vector<std::string> names;
        for (const StoredDataset& one : datasets_) names.push_back(one.name);
        return names;
    }
    StoredDataset dataset(const std::string& name) const override {
        const auto found = numbers_.find(name);
        if (found == numbers_.end()) throw unknown(file_, name, names());
        return datasets_[found->second];
    }
    std::optional<ChunkPlace> place(const StoredDataset& dataset, std::span<const std::int64_t>) const override {
        return ChunkPlace{{}, dataset.offset_bytes, extent_bytes(dataset)};
    }

  private:
    const char* format_;
    std::string file_;
    std::vector<StoredDataset> datasets_;
    std::map<std::string, std::size_t> numbers_;
};

}  // namespace

ContainerPtr make_flat(const char* format, const std::string& file, std::vector<StoredDataset> datasets) {
    return std::make_unique<FlatContainer>(format, file, std::move(datasets));
}

}  // namespace penstock::formats
