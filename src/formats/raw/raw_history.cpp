// See raw_history.hpp.
#include "formats/raw/raw_history.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "formats/faults.hpp"
#include "formats/json/json_document.hpp"
#include "formats/npy/numpy_type.hpp"

namespace penstock::formats {
namespace {

constexpr const char* kRawIndex = "penstock.json";
constexpr const char* kRawKind = "penstock raw history";
constexpr const char* kRawAdvice = "give a folder that a history of format \"raw\" wrote, or copy it again, whole";

struct RawVariable {
    StoredDataset dataset;
    std::string file;
};

struct stat status_of(const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) throw Error(errno_info("open", path, errno));
    return found;
}

const Value& needed(const Value& document, const char* name) {
    const Value* found = document.member(name);
    if (found == nullptr) throw BadDocument{std::string("it has no ") + name};
    return *found;
}

const std::string& text_member(const Value& document, const char* name) {
    const std::string* text = needed(document, name).text();
    if (text == nullptr) throw BadDocument{std::string(name) + " is no text"};
    return *text;
}

std::int64_t count_member(const Value& document, const char* name) {
    const auto count = needed(document, name).integer();
    if (!count || *count < 0) throw BadDocument{std::string(name) + " is no count"};
    return *count;
}

std::string file_member(const Value& entry) {
    const std::string& file = text_member(entry, "file");
    const bool leads_out = file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
                           file.find('\0') != std::string::npos;
    if (leads_out) throw BadDocument{"its file is " + shown(file) + ", which is no name of a file in the folder"};
    return file;
}

RawVariable variable_of(const Member& member, std::int64_t steps) {
    const Value& entry = member.value;
    const bool* grows = needed(entry, "grows").boolean();
    if (grows == nullptr) throw BadDocument{"grows is neither true nor false"};
    const List* lengths = needed(entry, "shape").list();
    auto shape = lengths != nullptr ? integers(*lengths, 1) : std::nullopt;
    if (!shape) throw BadDocument{"its shape is no list of lengths"};
    if (*grows) shape->insert(shape->begin(), steps);
    StoredDataset dataset = contiguous(member.name, numpy_type(text_member(entry, "dtype")), *shape, 0);
    data::check_grid(dataset.grid);
    return {std::move(dataset), file_member(entry)};
}

class RawHistory final : public Container {
  public:
    explicit RawHistory(std::string folder) : folder_(std::move(folder)), seen_(status_of(folder_)) {
        const std::string index = folder_ + "/" + kRawIndex;
        const auto document = json_document(index, {});
        if (!document) {
            throw unsupported({folder_}, std::string("the folder has no ") + kRawIndex, kRawAdvice);
        }
        try {
            read_index(*document);
        } catch (const BadDocument& bad) {
            throw damaged({index}, bad.cause, kRawAdvice);
        }
    }

    const char* format() const override { return "raw-history"; }
    std::vector<std::string> names() const override {
        std::vector<std::string> names;
        for (const RawVariable& one : variables_) names.push_back(one.dataset.name);
        return names;
    }
    StoredDataset dataset(const std::string& name) const override { return variable(name).dataset; }

    std::optional<ChunkPlace> place(const StoredDataset& dataset, std::span<const std::int64_t>) const override {
        const std::string path = folder_ + "/" + variable(dataset.name).file;
        const struct stat file = status_of(path), now = status_of(folder_);
        if (now.st_dev != seen_.st_dev || now.st_ino != seen_.st_ino) {
            throw unsupported({folder_, dataset.name}, "the folder was replaced after it was opened here",
                              "open it again");
        }
        if (!S_ISREG(file.st_mode)) throw damaged({path, dataset.name}, "it is not a regular file");
        const std::uint64_t wanted = extent_bytes(dataset), there = static_cast<std::uint64_t>(file.st_size);
        if (wanted > there) {
            throw cut_short({path, dataset.name}, shown(dataset.grid.shape) + " of " + dataset.type.name + " are " +
                                                      std::to_string(wanted) + " bytes, the file has " +
                                                      std::to_string(there));
        }
        return ChunkPlace{path, 0, wanted};
    }

  private:
    void read_index(const Value& document) {
        const std::string& kind = text_member(document, "format");
        if (kind != kRawKind) throw BadDocument{"its format is " + shown(kind)};
        if (count_member(document, "version") != 1) {
            throw unsupported({folder_}, "a raw history of another version", "version 1 is known");
        }
        const std::int64_t steps = count_member(document, "steps");
        const Members* members = needed(document, "variables").members();
        if (members == nullptr) throw BadDocument{"variables is no object"};
        for (const Member& one : *members) {
            try {
                variables_.push_back(variable_of(one, steps));
            } catch (const BadDocument& bad) {
                throw BadDocument{"variable " + shown(one.name) + ": " + bad.cause};
            } catch (const Error& error) {
                throw BadDocument{"variable " + shown(one.name) + ": " + error.info().cause};
            }
            numbers_.emplace(one.name, variables_.size() - 1);
        }
    }

    const RawVariable& variable(const std::string& name) const {
        const auto found = numbers_.find(name);
        if (found == numbers_.end()) throw unknown(folder_, name, names());
        return variables_[found->second];
    }

    std::string folder_;
    struct stat seen_;
    std::vector<RawVariable> variables_;
    std::map<std::string, std::size_t> numbers_;
};

}  // namespace

bool is_raw_history(const std::string& folder) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(folder + "/" + kRawIndex, ignored);
}

ContainerPtr open_raw_history(const std::string& folder) { return std::make_unique<RawHistory>(folder); }

}  // namespace penstock::formats
