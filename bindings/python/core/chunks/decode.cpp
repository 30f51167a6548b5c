// Chunks decoded on the cores of the host: their streams and boxes come as tables of numbers. Every row is checked
// before the first byte is written.
#include "data/decode/decode_chunks.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <limits>
#include <optional>
#include <utility>

#include "context/crew.hpp"
#include "data/decode/read_chunks.hpp"
#include "python/core/box_table.hpp"
#include "python/core/chunks/stop.hpp"
#include "python/core/small/tally.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

constexpr const char* kDecodeOperation = "decode chunks";

struct DecodeArguments {
    const Context& context;
    const data::Pipeline& pipeline;
    nb::handle source, streams, target, boxes;
    std::uint64_t item_bytes;
    nb::handle staging;  // None: the host reaches the target
    std::uint32_t swap_bytes;
    const Stop& stop;
    Deadline deadline;
    std::size_t most_left = 0;  // chunks, to a transfer: see ChunksOfFile
};

// What decode_chunks() is given. Made without the GIL.
struct Work {
    std::vector<data::StoredChunk> chunks{};
    std::vector<data::StreamPlace> places{};  // in the source
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
    // The pieces of a box are told by where they lie behind its first item, so that begins at an address.
    const std::byte* const origin = static_cast<const std::byte*>(target.data);
    const Side into = boxes.side(0, "destination", target), out = boxes.side(1, "source", chunk);
    Work work;
    work.chunks.reserve(streams.rows());
    work.boxes.reserve(boxes.rows());
    for (std::size_t row = 0, next = 0; row < streams.rows(); ++row) {
        const std::uint64_t at = streams.count(row, 0, "offset"), bytes = streams.count(row, 1, "number of bytes");
        if (at > source.bytes || bytes > source.bytes - at) {
            streams.refuse(row, "it ends beyond the " + std::to_string(source.bytes) + " bytes there are");
        }
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
        work.places.push_back({at, bytes});
        const std::span<const std::byte> there =
            source.data == nullptr ? std::span<const std::byte>{}
                                   : std::span(static_cast<const std::byte*>(source.data) + at, bytes);
        work.chunks.push_back({there,
                               static_cast<std::uint32_t>(streams.count(row, 2, "mask")),
                               first,
                               work.boxes.size() - first,
                               source.bytes - at - bytes >= data::kStreamPadding});
    }
    return work;
}

// Memory of the caller for as long as the call takes.
struct Borrowed {
    explicit Borrowed(const DecodeArguments& given) : target(given.context, given.target, Use::write_into) {
        if (!given.staging.is_none()) staging.emplace(given.context, given.staging, Use::write_into);
        need_host(kDecodeOperation, given.context, staging ? staging->view() : target.view());
        if (!staging) return;
        through.emplace(data::Through{given.context.device(),
                                      {static_cast<std::byte*>(staging->view().data), staging->view().bytes},
                                      context::streams_of(given.context)});
    }

    BorrowedMemory target;
    std::optional<BorrowedMemory> staging;
    std::optional<data::Through> through;
};

data::ChunkWork chunk_work(const DecodeArguments& given, const Work& work, const Borrowed& memory) {
    return {given.pipeline, work.chunks, work.boxes, memory.through ? &*memory.through : nullptr};
}

data::CoreOptions options_of(const DecodeArguments& given) {
    return {.deadline = given.deadline,
            .stopped = &given.stop.flag(),
            .crew = &context::crew_of(given.context)};
}

// Returns (chunks that were decoded, number of a damaged one or -1, what is wrong with it).
nb::tuple decode_chunks(const DecodeArguments& given) {
    need_own_process(given.context);
    const IntTable streams(given.streams, kDecodeOperation);
    const BoxTable boxes(given.boxes, kDecodeOperation, 2);
    const BorrowedMemory source(given.context, given.source, Use::read_from);
    const Borrowed memory(given);
    need_host(kDecodeOperation, given.context, source.view());
    data::CoreResult result;
    {
        const GilReleased release;
        const Work work = work_of(given, streams, boxes, {source.view(), memory.target.view()});
        result = data::decode_chunks(chunk_work(given, work, memory),
                                     options_of(given));
    }
    if (!result.fault) return nb::make_tuple(result.done, -1, "");
    return nb::make_tuple(result.done, result.fault->first, result.fault->second);
}

// As decode_chunks, of chunks in a file, which the threads read that decode them. Returns (a byte for each chunk, 1: it
// is done; whether a transfer has to read others; number of a damaged one or -1; what is wrong with it).
nb::tuple read_chunks(const DecodeArguments& given, SmallTally& tally) {
    need_own_process(given.context);
    const IntTable streams(given.streams, kDecodeOperation);
    const BoxTable boxes(given.boxes, kDecodeOperation, 2);
    const File file = nb::cast<const PythonFile&>(given.source).file;
    const Borrowed memory(given);
    data::ChunksRead result;
    {
        const GilReleased release;
        const MemoryView whole{nullptr, std::numeric_limits<std::uint64_t>::max(), MemoryKind::system};
        const Work work = work_of(given, streams, boxes, {whole, memory.target.view()});
        result = data::read_and_decode({file, work.places, given.most_left},
                                       chunk_work(given, work, memory), options_of(given));
    }
    if (result.reads.operations != 0) tally.add(result.reads);  // what was all left to a transfer is no read
    const nb::bytes done(result.done.data(), result.done.size());
    if (!result.decoded.fault) return nb::make_tuple(done, result.left, -1, "");
    return nb::make_tuple(done, result.left, result.decoded.fault->first, result.decoded.fault->second);
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
                                  option<std::uint64_t>("item_bytes", to[2]), to.size() > 3 ? to[3] : nb::none(),
                                  option<std::uint32_t>("swap_bytes", swap_bytes), stop,
                                  deadline_after("timeout_s", timeout_s)});
        },
        arg("context"), arg("pipeline"), arg("source"), arg("target"), arg("swap_bytes"), arg("stop"),
        arg("timeout_s").none() = nb::none());
    module.def(
        "read_chunks",
        [](const Context& context, const data::Pipeline& pipeline, nb::tuple from, nb::tuple to, nb::handle swap_bytes,
           nb::tuple limits) {
            return read_chunks({context, pipeline, from[0], from[1], to[0], to[1],
                                option<std::uint64_t>("item_bytes", to[2]), to.size() > 3 ? to[3] : nb::none(),
                                option<std::uint32_t>("swap_bytes", swap_bytes), nb::cast<const Stop&>(limits[0]),
                                deadline_after("timeout_s", limits[1]), nb::cast<std::size_t>(limits[2])},
                               nb::cast<SmallTally&>(from[2]));
        },
        arg("context"), arg("pipeline"), arg("source"), arg("target"), arg("swap_bytes"), arg("limits"));
    module.def("decoded_filters", &data::filter_names);
}

}  // namespace penstock::python
