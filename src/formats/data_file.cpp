// See data_file.hpp. The list of formats is here.
#include "formats/data_file.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "formats/faults.hpp"
#include "formats/hdf5/hdf5_file.hpp"
#include "formats/raw/raw_history.hpp"
#include "formats/zarr/zarr_store.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kFirstBytes = 64;
constexpr std::string_view kRawHistory = "raw-history";

class FileSource final : public ByteSource {
  public:
    explicit FileSource(File file) : file_(std::move(file)) {}
    const std::string& name() const override { return file_.name(); }
    std::uint64_t size_bytes() const override { return file_.size_bytes(); }
    std::vector<std::byte> read(std::uint64_t offset_bytes, std::uint64_t bytes) const override {
        const std::uint64_t there = size_bytes();
        std::vector<std::byte> found(offset_bytes >= there ? 0 : std::min(bytes, there - offset_bytes));
        if (found.empty()) return found;
        const Outcome outcome = file_.read({found.data(), found.size(), MemoryKind::system}, offset_bytes,
                                           {.path = PathKind::buffered, .caller_waits = true});
        outcome.or_throw();
        found.resize(outcome.bytes);
        return found;
    }

  private:
    File file_;
};

struct Format {
    const char* name;
    std::vector<StoredDataset> (*parse)(const ByteSource&);
    std::string_view begin;  // of its files; empty: the suffix tells
    std::string_view suffix;
};
constexpr Format kFormats[] = {
    {"npy", &parse_npy, "\x93NUMPY", ".npy"},
    {"netcdf3", &parse_netcdf3, "CDF", ".nc"},
    {"safetensors", &parse_safetensors, "", ".safetensors"},
};

std::string known_formats() {
    std::string names;
    for (const Format& one : kFormats) names += std::string(one.name) + ", ";
    return names + "hdf5, netcdf4, zarr, raw-history, raw";
}

const Format& format_named(const std::string& name) {
    const auto* found =
        std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& one) { return name == one.name; });
    if (found != std::end(kFormats)) return *found;
    throw Error(ErrorCode::invalid_argument, "open", "there is no format " + shown(name),
                "use one of " + known_formats());
}

// Null: it is HDF5.
const Format* format_of(const ByteSource& source) {
    const std::vector<std::byte> begin = source.read(0, kFirstBytes);
    const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
    for (const Format& one : kFormats) {
        if (!one.begin.empty() && text.starts_with(one.begin)) return &one;
    }
    const bool begins_as_json = text.size() > 8 && text[8] == '{' && text[7] == '\0';  // behind the length of a header
    if (!begins_as_json && is_hdf5(source)) return nullptr;
    for (const Format& one : kFormats) {
        if (one.begin.empty() && (begins_as_json || source.name().ends_with(one.suffix))) return &one;
    }
    throw foreign(source.name(), "known", begin);
}

ContainerPtr open_file(const File& file, const std::string& name, const std::string& format) {
    auto source = std::make_unique<const FileSource>(file);
    const bool is_told = format == "hdf5" || format == "netcdf4";
    const Format* flat = is_told ? nullptr : format.empty() ? format_of(*source) : &format_named(format);
    if (flat == nullptr) return open_hdf5(std::move(source));
    return make_flat(flat->name, name, flat->parse(*source));
}

// What a folder is opened as; null: the name is a file's.
ContainerPtr open_folder(const std::string& name, const std::string& format) {
    std::error_code ignored;
    const bool is_told = format == "zarr" || format == kRawHistory;
    if (!is_told && (!format.empty() || !std::filesystem::is_directory(name, ignored))) return nullptr;
    return format == kRawHistory || (!is_told && is_raw_history(name)) ? open_raw_history(name) : open_zarr(name);
}

void need_writer(const Container& container, const std::string& name, bool writable) {
    if (!writable || container.format() != kRawHistory) return;
    throw unsupported({name}, "a folder of raw files is written step by step, by a running model",
                      "open it without writable; penstock_history_open with format \"raw\" writes one");
}

}  // namespace

DataFile::DataFile(const Context& context, const std::string& name, const DataFileOptions& options)
    : context_(context),
      name_(name),
      writable_(options.writable),
      chunk_files_(std::make_unique<ChunkFiles>(context, options.writable)) {
    container_ = open_folder(name, options.format);
    if (container_ != nullptr) {
        need_writer(*container_, name, writable_);
        return;
    }
    file_ = context.open(name, {.mode = writable_ ? OpenMode::read_write : OpenMode::read});
    if (options.raw)
        container_ = make_flat("raw", name, describe_raw(FileSource(*file_), *options.raw));
    else
        container_ = open_file(*file_, name, options.format);
}

File DataFile::file_of(const ChunkPlace& place) const {
    if (place.file.empty()) return *file_;
    return chunk_files_->of(place.file);
}

}  // namespace penstock::formats
