// The functions of penstock.h for files of named datasets.
#include <algorithm>
#include <limits>

#include "boundary.hpp"
#include "formats/faults.hpp"
#include "formats/move/move_dataset.hpp"
#include "handles.hpp"
#include "requests.hpp"
#include "values.hpp"

using penstock::c::copied;
using penstock::c::free_handle;
using penstock::c::give_handle;
using penstock::c::give_text;
using penstock::c::guarded;
using penstock::c::opened;
using penstock::c::OpenedDataset;
using penstock::c::refuse;
using penstock::c::required;

namespace {

namespace formats = penstock::formats;

static_assert(PENSTOCK_MOST_DIMENSIONS == penstock::data::kMostDimensions);

std::int64_t checked_number(std::uint64_t number, const char* what) {
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        refuse("check arguments", std::string(what) + " is " + std::to_string(number), "no file has so many elements");
    }
    return static_cast<std::int64_t>(number);
}

formats::RawShape raw_shape(const penstock_datafile_options& wanted) {
    formats::RawShape raw;
    const std::string dtype(&required("penstock_datafile_options.dtype", wanted.dtype));
    if (!formats::type_named(dtype, raw.type))
        refuse("open", "there is no dtype '" + dtype + "'", "use \"float32\", \"int64\", ...");
    if (wanted.rank > PENSTOCK_MOST_DIMENSIONS) refuse("open", "rank is " + std::to_string(wanted.rank), "at most 16");
    if (wanted.rank != 0) required("penstock_datafile_options.shape", wanted.shape);
    for (std::uint32_t axis = 0; axis < wanted.rank; ++axis) {
        raw.shape.push_back(checked_number(wanted.shape[axis], "an extent of shape"));
    }
    raw.offset_bytes = wanted.offset_bytes;
    return raw;
}

formats::DataFileOptions datafile_options(const penstock_datafile_options* given) {
    const auto wanted = copied("penstock_datafile_options", given);
    formats::DataFileOptions options{.format = wanted.format == nullptr ? "" : wanted.format,
                                     .writable = wanted.writable != 0};
    const bool is_raw = options.format == "raw";
    if (is_raw) options.raw = raw_shape(wanted);
    if (!is_raw &&
        (wanted.rank != 0 || wanted.dtype != nullptr || wanted.shape != nullptr || wanted.offset_bytes != 0)) {
        refuse("open", "rank, dtype, shape and offset_bytes are of raw files",
               "set format to \"raw\", or leave them zero");
    }
    return options;
}

std::string only_name(const formats::DataFile& file) {
    std::vector<std::string> names = file.container().names();
    if (names.size() == 1) return names.front();
    refuse("open dataset", "the file has " + std::to_string(names.size()) + " datasets", "give the name of one");
}

OpenedDataset open_dataset(const std::shared_ptr<const formats::DataFile>& file, const char* name) {
    const std::string wanted = name != nullptr ? name : only_name(*file);
    OpenedDataset dataset{file, file->container().dataset(wanted)};
    if (dataset.stored.refusal.empty()) return dataset;
    throw formats::unsupported({file->name(), wanted}, dataset.stored.refusal);
}

// All elements that are left behind the start, by the step.
std::int64_t count_left(std::int64_t extent, std::int64_t start, std::int64_t step) {
    return start >= extent || step < 1 ? 0 : (extent - 1 - start) / step + 1;
}

penstock::data::Selection checked_selection(const formats::StoredDataset& dataset, const penstock_selection* given) {
    const auto wanted = copied("penstock_selection", given);
    const std::vector<std::int64_t>& shape = dataset.grid.shape;
    if (given != nullptr && wanted.rank != shape.size()) {
        refuse("select elements",
               "the rank is " + std::to_string(wanted.rank) + ", that of the dataset " + std::to_string(shape.size()),
               "set rank to the dataset's");
    }
    penstock::data::Selection selection;
    auto& box = selection.box;
    std::vector<std::int64_t> counts(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        box.start[axis] = wanted.start == nullptr ? 0 : checked_number(wanted.start[axis], "start");
        box.step[axis] = wanted.step == nullptr ? 1 : checked_number(wanted.step[axis], "step");
        box.count[axis] = wanted.count == nullptr ? count_left(shape[axis], box.start[axis], box.step[axis])
                                                  : checked_number(wanted.count[axis], "count");
        counts[axis] = box.count[axis];
    }
    penstock::data::check_box(dataset.grid, box);
    const std::vector<std::int64_t> plain = penstock::data::c_strides(counts, dataset.grid.item_bytes);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        selection.memory_strides[axis] = wanted.strides_bytes == nullptr ? plain[axis] : wanted.strides_bytes[axis];
    }
    return selection;
}

void clear(penstock_dataset_result* result) {
    if (result == nullptr) return;
    penstock::c::check_struct("penstock_dataset_result", result,
                              {result->struct_size, sizeof(penstock_dataset_result), result->struct_size});
    penstock::c::check_reserved("penstock_dataset_result", *result);
    *result = {result->struct_size, 0, 0, 0, 0, 0, 0, {}, result->evidence};
}

// Fills the result, then throws the error that it ended with, if any.
void give(const formats::DatasetMoved& moved, penstock_dataset_result* result) {
    const penstock::Outcome& outcome = moved.outcome;
    if (result != nullptr) {
        result->bytes = outcome.bytes;
        result->seconds = outcome.seconds;
        result->decoded_bytes = moved.decoded_bytes;
        result->filled_bytes = moved.filled_bytes;
        result->fallbacks = static_cast<std::uint32_t>(outcome.evidence.fallbacks.size());
        penstock::c::copy_text(result->path, sizeof(result->path), outcome.evidence.path_name());
        if (result->evidence != nullptr) give_text(result->evidence, outcome.evidence.to_json());
    }
    outcome.or_throw();
}

using Mover = formats::DatasetMoved (*)(const formats::DataFile&, const formats::StoredDataset&,
                                        const formats::DatasetMove&);

void move(const penstock_dataset* dataset, const penstock_selection* selection, const penstock_request* request,
          std::pair<Mover, penstock_dataset_result*> how) {
    clear(how.second);
    const OpenedDataset& open = opened(dataset);
    auto wanted = penstock::c::checked_request(request);
    if (wanted.offset_bytes != 0)
        refuse("select elements", "the request has an offset of its own", "leave offset_bytes zero");
    const formats::DatasetMove move{checked_selection(open.stored, selection), wanted.memory,
                                    std::move(wanted.options)};
    give(how.first(*open.file, open.stored, move), how.second);
}

}  // namespace

extern "C" {

int penstock_datafile_open(const penstock_context* context, const char* name, const penstock_datafile_options* options,
                           penstock_datafile** datafile, penstock_error* error) {
    return guarded("open", error, [&] {
        give_handle(datafile, [&] {
            const std::string text(&required("the file name", name));
            if (text.empty()) refuse("open", "the name is empty", "give the name of a file");
            return std::make_shared<const formats::DataFile>(opened(context), text, datafile_options(options));
        });
    });
}

void penstock_datafile_close(penstock_datafile* datafile) { free_handle(datafile); }

int penstock_datafile_count(const penstock_datafile* datafile, uint64_t* count, penstock_error* error) {
    return guarded("count datasets", error,
                   [&] { required("the count", count) = opened(datafile)->container().names().size(); });
}

int penstock_datafile_name(const penstock_datafile* datafile, uint64_t index, penstock_text* name,
                           penstock_error* error) {
    return guarded("name dataset", error, [&] {
        const std::vector<std::string> names = opened(datafile)->container().names();
        if (index >= names.size()) {
            refuse("name dataset",
                   "there is no dataset " + std::to_string(index) + " of " + std::to_string(names.size()),
                   "indices begin at 0");
        }
        give_text(name, names[index]);
    });
}

int penstock_dataset_open(const penstock_datafile* datafile, const char* name, penstock_dataset** dataset,
                          penstock_error* error) {
    return guarded("open dataset", error,
                   [&] { give_handle(dataset, [&] { return open_dataset(opened(datafile), name); }); });
}

void penstock_dataset_close(penstock_dataset* dataset) { free_handle(dataset); }

int penstock_dataset_describe(const penstock_dataset* dataset, penstock_dataset_info* info, penstock_error* error) {
    return guarded("describe dataset", error, [&] {
        const OpenedDataset& open = opened(dataset);
        penstock_dataset_info& out = required("penstock_dataset_info", info);
        penstock::c::check_struct("penstock_dataset_info", info,
                                  {out.struct_size, sizeof(penstock_dataset_info), out.struct_size});
        out = {out.struct_size, {}, {}, 0, 0, 0, 0, 0, {}, {}};
        const auto& [shape, chunk_shape, strides, item_bytes] = open.stored.grid;
        penstock::c::copy_text(out.dtype, sizeof(out.dtype), open.stored.type.name);
        penstock::c::copy_text(out.format, sizeof(out.format), open.file->container().format());
        out.item_bytes = out.bytes = item_bytes;
        out.rank = shape.size();
        out.is_encoded = open.stored.filters.empty() ? 0 : 1;
        out.is_swapped = open.stored.type.swap_bytes() != 0 ? 1 : 0;
        std::copy(shape.begin(), shape.end(), out.shape);
        std::copy(chunk_shape.begin(), chunk_shape.end(), out.chunk_shape);
        for (const std::int64_t extent : shape) out.bytes *= static_cast<std::uint64_t>(extent);
    });
}

int penstock_dataset_read(const penstock_dataset* dataset, const penstock_selection* selection,
                          const penstock_request* request, penstock_dataset_result* result, penstock_error* error) {
    return guarded("read dataset", error, [&] { move(dataset, selection, request, {&formats::read_dataset, result}); });
}

int penstock_dataset_write(const penstock_dataset* dataset, const penstock_selection* selection,
                           const penstock_request* request, penstock_dataset_result* result, penstock_error* error) {
    return guarded("write dataset", error, [&] {
        move(dataset, selection, request, {&formats::write_dataset, result});
    });
}

}  // extern "C"
