// Chunks decoded on the cores of the host: their streams and boxes come as tables of numbers. Every row is checked
// before the first byte is written.
#include "data/decode/decode_chunks.hpp"

#include <utility>

#include "python/core/box_table.hpp"
#include "python/core/chunks/stop.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

constexpr const char* kDecodeOperation = "decode chunks";

struct DecodeArguments {
    const Context& context;
    const data::Pipeline& pipeline;
    nb::handle source, streams, target, boxes;
    std::uint64_t item_bytes;
    std::uint32_t swap_bytes;
    const Stop& stop;
    Deadline deadline;
};

// What decode_chunks() is given. Made without the GIL.
struct Work {
    std::vector<data::StoredChunk> chunks{};
    std::vector<data::PlacedBox> boxes{};
};

std::size_t boxes_of(const IntTable& streams, std::size_t row) {
    return streams.columns() == 3 ? 1 : streams.count(row, 3, "number of boxes");
}

void check_counts(const IntTable& streams, const BoxTable& boxes) {
    std::size_t left = boxes.rows();
    bool fits = streams.columns() == 3 || streams.columns() == 4;
    for (std::size_t row = 0; fits && row < streams.rows(); ++row) {
        const std::size_t own = boxes_of(streams, row);
        fits = own <= left;
        left -= own;
    }
    if (fits && left == 0) return;
    throw Error(ErrorCode::invalid_argument, kDecodeOperation, "the table of streams does not fit that of boxes",
                "give a row for each chunk: offset, bytes, skipped filters, and its boxes where they are not one each");
}

// Rows of streams: offset in the source, bytes, filters that were skipped, and how many of the boxes are of the chunk,
// where that is not one.
Work work_of(const DecodeArguments& given, const IntTable& streams, const BoxTable& boxes,
             std::pair<const MemoryView&, const MemoryView&> memory) {
    const auto& [source, target] = memory;
    check_counts(streams, boxes);
    const MemoryView chunk{nullptr, given.pipeline.chunk_bytes(), MemoryKind::system};
    const Side into = boxes.side(0, "destination", target), out = boxes.side(1, "source", chunk);
    Work work;
    work.chunks.reserve(streams.rows());
    work.boxes.reserve(boxes.rows());
    for (std::size_t row = 0, next = 0; row < streams.rows(); ++row) {
        const std::uint64_t at = streams.count(row, 0, "offset"), bytes = streams.count(row, 1, "number of bytes");
        if (at > source.bytes || bytes > source.bytes - at) {
            streams.refuse(row, "it ends beyond the " + std::to_string(source.bytes) + " bytes there are");
        }
        // The pieces of a box are told by where they lie behind its first item, so that begins at an address.
        const std::byte* const origin = static_cast<const std::byte*>(source.data);
        const std::size_t first = work.boxes.size();
        for (const std::size_t end = next + boxes_of(streams, row); next < end; ++next) {
            Box item;
            item.destination = boxes.place(next, into, given.item_bytes);
            item.item_bytes = given.item_bytes;
            item.swap_bytes = given.swap_bytes;
            const std::uint64_t from = boxes.offset(next, out, given.item_bytes);
            item.source = origin;
            boxes.split(next, item, [&](const Box& piece) {
                const auto behind = static_cast<std::uint64_t>(static_cast<const std::byte*>(piece.source) - origin);
                work.boxes.push_back({piece, from + behind});
            });
        }
        work.chunks.push_back({{origin + at, bytes},
                               static_cast<std::uint32_t>(streams.count(row, 2, "mask")),
                               first,
                               work.boxes.size() - first});
    }
    return work;
}

// Returns (chunks that were decoded, number of a damaged one or -1, what is wrong with it).
nb::tuple decode_chunks(const DecodeArguments& given) {
    need_own_process(given.context);
    const IntTable streams(given.streams, kDecodeOperation);
    const BoxTable boxes(given.boxes, kDecodeOperation, 2);
    const BorrowedMemory source(given.context, given.source, Use::read_from);
    const BorrowedMemory target(given.context, given.target, Use::write_into);
    need_host(kDecodeOperation, given.context, source.view());
    need_host(kDecodeOperation, given.context, target.view());
    data::CoreResult result;
    {
        const GilReleased release;
        const Work work = work_of(given, streams, boxes, {source.view(), target.view()});
        result = data::decode_chunks(given.pipeline, work.chunks, work.boxes,
                                     {.deadline = given.deadline, .stopped = &given.stop.flag()});
    }
    if (!result.fault) return nb::make_tuple(result.done, -1, "");
    return nb::make_tuple(result.done, result.fault->first, result.fault->second);
}

}  // namespace

std::vector<data::Filter> filters_of(nb::handle list) {
    std::vector<data::Filter> filters;
    for (const nb::handle one : nb::cast<nb::sequence>(list)) {
        filters.push_back({nb::cast<std::string>(one[0]), nb::cast<std::vector<std::uint32_t>>(one[1])});
    }
    return filters;
}

void need_host(const char* operation, const Context& context, const MemoryView& view) {
    if (view.kind != MemoryKind::device || context.device().info().emulated) return;
    throw Error(ErrorCode::invalid_argument, operation, "the host cannot use memory of a GPU",
                "use pinned memory, and copy boxes between it and the GPU");
}

void bind_decode(nb::module_& module) {
    using nb::arg;
    nb::class_<Stop>(module, "Stop").def(nb::init<>()).def("stop", &Stop::stop);
    nb::class_<data::Pipeline>(module, "Pipeline")
        .def_prop_ro("chunk_bytes", &data::Pipeline::chunk_bytes);
    module.def(
        "make_pipeline",
        [](nb::handle filters, nb::handle chunk_bytes) {
            const std::vector<data::Filter> all = filters_of(filters);
            return std::make_unique<data::Pipeline>(all, byte_count("chunk_bytes", chunk_bytes));
        },
        arg("filters"), arg("chunk_bytes"));
    module.def(
        "decode_chunks",
        [](const Context& context, const data::Pipeline& pipeline, nb::tuple from, nb::tuple to, nb::handle swap_bytes,
           const Stop& stop, nb::handle timeout_s) {
            return decode_chunks({context, pipeline, from[0], from[1], to[0], to[1],
                                  option<std::uint64_t>("item_bytes", to[2]),
                                  option<std::uint32_t>("swap_bytes", swap_bytes), stop,
                                  deadline_after("timeout_s", timeout_s)});
        },
        arg("context"), arg("pipeline"), arg("source"), arg("target"), arg("swap_bytes"), arg("stop"),
        arg("timeout_s").none() = nb::none());
    module.def("decoded_filters", &data::filter_names);
}

}  // namespace penstock::python
