// See history_target.hpp. The list of formats is here.
#include "history/target/history_target.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/create/check_schema.hpp"
#include "formats/create/hdf5/growing.hpp"
#include "formats/create/netcdf/cdf_writer.hpp"
#include "formats/create/raw/raw_documents.hpp"
#include "formats/create/zarr/zarr_documents.hpp"
#include "formats/faults.hpp"
#include "history/target/history_file.hpp"
#include "history/target/store/history_store.hpp"

namespace penstock::history {
namespace {

using formats::ByteSink;
using formats::CdfVersion;
using formats::FileSchema;

// Makes the names and texts of one kind of store.
using MakeDocuments = formats::StoreDocumentsPtr (*)(const FileSchema&, const std::string& store);

struct HistoryFormat {
    const char* name;
    bool big_endian;
    MakeGrowing make;         // null: a store
    MakeDocuments documents;  // of a store
};
constexpr HistoryFormat kHistoryFormats[] = {
    {"cdf5", true, [](const FileSchema& schema, ByteSink& sink) { return make_cdf(schema, sink, CdfVersion::cdf5); },
     nullptr},
    {"netcdf4", false,
     [](const FileSchema& schema, ByteSink& sink) { return make_hdf5(schema, sink, {.is_netcdf4 = true}); }, nullptr},
    {"hdf5", false,
     [](const FileSchema& schema, ByteSink& sink) { return make_hdf5(schema, sink, {.is_netcdf4 = false}); }, nullptr},
    {"cdf2", true, [](const FileSchema& schema, ByteSink& sink) { return make_cdf(schema, sink, CdfVersion::cdf2); },
     nullptr},
    {"zarr", false, nullptr,
     [](const FileSchema& schema, const std::string& store) -> formats::StoreDocumentsPtr {
         return std::make_unique<formats::ZarrDocuments>(schema, store);
     }},
    {"raw", false, nullptr,
     [](const FileSchema& schema, const std::string& store) -> formats::StoreDocumentsPtr {
         return std::make_unique<formats::RawDocuments>(schema, store);
     }},
};

const HistoryFormat& format_named(const std::string& name) {
    std::string known;
    for (const HistoryFormat& one : kHistoryFormats) {
        if (name == one.name) return one;
        known += (known.empty() ? "" : ", ") + std::string(one.name);
    }
    throw Error(ErrorCode::invalid_argument, "open history", "there is no format " + formats::shown(name),
                "use one of " + known);
}

std::vector<formats::StoreBlock> growing_blocks(const FileSchema& schema) {
    std::vector<formats::StoreBlock> blocks;
    for (std::size_t i = 0; i < schema.variables.size(); ++i) {
        if (formats::grows(schema, schema.variables[i])) blocks.push_back({i});
    }
    return blocks;
}

}  // namespace

bool stores_big_endian(const std::string& format) { return format_named(format).big_endian; }
bool makes_store(const std::string& format) { return format_named(format).make == nullptr; }
bool has_blocks(const std::string& format) {
    return makes_store(format) && format_named(format).documents({}, "")->has_blocks();
}

std::unique_ptr<FileDraft> make_draft(const std::string& name, const std::string& format, const FileSchema& schema) {
    const MakeGrowing make = format_named(format).make;
    return make == nullptr ? nullptr : std::make_unique<FileDraft>(name, schema, make);
}

std::uint64_t digest_of_store(const std::string& format, const FileSchema& schema) {
    SummingSink sink("history");
    const std::string root = format_named(format).documents(schema, "history")->root(0);
    sink.write(0, std::as_bytes(std::span(root)));
    return sink.sum();
}

std::vector<formats::DataPlace> first_places(const HistoryTargetOptions& options, const FileSchema& schema) {
    formats::check_schema(schema, options.name);
    std::vector<formats::DataPlace> places;
    for (const formats::StoreBlock& one : options.blocks.value_or(growing_blocks(schema))) {
        places.push_back({0, formats::block_bytes(schema, schema.variables[one.variable])});
    }
    return places;
}

std::unique_ptr<HistoryTarget> make_target(const Context& context, const HistoryTargetOptions& options,
                                           const FileSchema& schema, std::unique_ptr<FileDraft> draft) {
    const HistoryFormat& format = format_named(options.format);
    if (format.make != nullptr) {
        if (!draft) draft = make_draft(options.name, options.format, schema);
        return std::make_unique<HistoryFile>(context, options, std::move(draft));
    }
    HistoryTargetOptions wanted = options;
    if (!wanted.blocks) wanted.blocks = growing_blocks(schema);
    return std::make_unique<HistoryStore>(context, wanted, schema, format.documents(schema, options.name));
}

std::vector<std::byte> stored_numbers(std::span<const double> numbers, bool big_endian) {
    std::vector<std::byte> bytes(numbers.size_bytes());
    if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    if (big_endian == (std::endian::native == std::endian::big)) return bytes;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(double)) {
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        std::reverse(first, first + sizeof(double));
    }
    return bytes;
}

void refuse_target(const std::string& name, std::string cause, std::string advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = "open history";
    info.file = name;
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    throw Error(std::move(info));
}

void refuse_second_writer(const std::string& name) {
    refuse_target(name, "another history, of this process or another one, writes it",
                  "close that one, or give this one another name");
}

}  // namespace penstock::history
