// Chunks encoded on the cores of the host: their elements come as a table of boxes. Every row is checked before the
// first byte is read.
#include "data/encode/encode_chunks.hpp"

#include "context/crew.hpp"
#include "data/encode/chunk_files.hpp"
#include "python/core/box_table.hpp"
#include "python/core/chunks/stop.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

constexpr const char* kEncodeOperation = "encode chunks";
constexpr const char* kWriteOperation = "write chunks";

struct EncodeArguments {
    const Context& context;
    const data::Encoder& encoder;
    nb::handle source, boxes;
    std::uint64_t item_bytes;
    nb::handle target;           // None: each chunk becomes a file
    std::uint64_t stride_bytes;
    std::uint32_t swap_bytes;
    nb::bytes fill;
    const Stop& stop;
    Deadline deadline;
};

// What encode_chunks() is given. Made without the GIL.
struct Chunks {
    std::vector<data::PlainChunk> chunks{};
    std::vector<data::GatheredBox> boxes{};
    std::vector<std::uint64_t> sizes{};
};

std::uint64_t bytes_of(const std::vector<data::GatheredBox>& boxes, std::size_t first) {
    std::uint64_t sum = 0;
    for (std::size_t i = first; i < boxes.size(); ++i) {
        std::uint64_t bytes = boxes[i].box.item_bytes;
        for (std::size_t d = 0; d < boxes[i].box.dimensions; ++d) bytes *= boxes[i].box.extents[d];
        sum += bytes;
    }
    return sum;
}

void check_room(const EncodeArguments& given, std::uint64_t rows, const MemoryView& target) {
    const std::uint64_t most = given.encoder.most_bytes();
    const bool fits = rows == 0 || (target.bytes >= most && (target.bytes - most) / given.stride_bytes >= rows - 1);
    if (given.stride_bytes >= most && fits) return;
    throw Error(ErrorCode::invalid_argument, kEncodeOperation,
                std::to_string(target.bytes) + " bytes in steps of " + std::to_string(given.stride_bytes),
                "give " + std::to_string(most) + " for each of the " + std::to_string(rows) + " chunks");
}

// `target`: where the rooms of the chunks are; none for chunks that become files.
Chunks chunks_of(const EncodeArguments& given, const BoxTable& boxes, const MemoryView& source,
                 const MemoryView& target) {
    const std::uint64_t most = given.encoder.most_bytes(), rows = boxes.rows();
    if (!given.target.is_none()) check_room(given, rows, target);
    const std::uint64_t chunk_bytes = given.encoder.chunk_bytes();
    const MemoryView chunk{nullptr, chunk_bytes, MemoryKind::system};
    const Side into = boxes.side(0, "destination", chunk), out = boxes.side(1, "source", source);
    Chunks all;
    all.sizes.resize(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        Box item;
        item.source = boxes.place(row, out, given.item_bytes);
        item.item_bytes = given.item_bytes;
        item.swap_bytes = given.swap_bytes;
        const std::uint64_t to = boxes.offset(row, into, given.item_bytes);
        // The pieces of a box are told by where they lie behind its first item, so that begins at an address.
        std::byte nowhere{};
        std::byte* const origin = given.target.is_none() ? &nowhere : static_cast<std::byte*>(target.data);
        item.destination = origin;
        const std::size_t first = all.boxes.size();
        boxes.split(row, item, [&](const Box& piece) {
            const auto behind = static_cast<std::uint64_t>(static_cast<std::byte*>(piece.destination) - origin);
            all.boxes.push_back({piece, to + behind});
        });
        const std::span<std::byte> room =
            given.target.is_none() ? std::span<std::byte>{} : std::span(origin + row * given.stride_bytes, most);
        all.chunks.push_back({first, all.boxes.size() - first, bytes_of(all.boxes, first) < chunk_bytes, room});
    }
    return all;
}

data::CoreOptions options_of(const EncodeArguments& given) {
    return {.deadline = given.deadline,
            .stopped = &given.stop.flag(),
            .crew = &context::crew_of(given.context)};
}

std::span<const std::byte> fill_of(const EncodeArguments& given) {
    return {reinterpret_cast<const std::byte*>(given.fill.c_str()), given.fill.size()};
}

nb::bytes bytes_of(const std::vector<std::uint64_t>& sizes) {
    return nb::bytes(sizes.data(), sizes.size() * sizeof(std::uint64_t));
}

std::vector<std::string> file_names(nb::handle list, std::size_t rows) {
    std::vector<std::string> names;
    for (const nb::handle one : nb::cast<nb::sequence>(list)) {
        names.push_back(file_name(one, kWriteOperation));
    }
    if (names.size() == rows) return names;
    throw Error(ErrorCode::invalid_argument, kWriteOperation,
                std::to_string(names.size()) + " names for " + std::to_string(rows) + " chunks",
                "give one for each");
}

// Returns (chunks that are in their files, number of one that cannot be encoded or -1, why, sizes, calls that wrote).
nb::tuple write_chunk_files(const EncodeArguments& given, nb::handle files) {
    need_own_process(given.context);
    const BoxTable boxes(given.boxes, kWriteOperation, 2);
    const BorrowedMemory source(given.context, given.source, Use::read_from);
    need_host(kWriteOperation, given.context, source.view());
    const std::vector<std::string> names = file_names(files, boxes.rows());
    Chunks work;
    data::FilesWritten result;
    {
        const GilReleased release;
        work = chunks_of(given, boxes, source.view(), {});
        result = data::write_chunk_files({given.encoder, work.chunks, work.boxes, fill_of(given), work.sizes}, {names},
                                         options_of(given));
    }
    if (!result.refused.ok()) throw Error(result.refused);
    const auto& [done, fault] = result.encoded;
    return nb::make_tuple(done, fault ? static_cast<std::int64_t>(fault->first) : -1, fault ? fault->second : "",
                          bytes_of(work.sizes), result.calls);
}

// Returns (chunks that were encoded, number of one that cannot be or -1, why, sizes).
nb::tuple encode_chunks(const EncodeArguments& given) {
    need_own_process(given.context);
    const BoxTable boxes(given.boxes, kEncodeOperation, 2);
    const BorrowedMemory source(given.context, given.source, Use::read_from);
    const BorrowedMemory target(given.context, given.target, Use::write_into);
    need_host(kEncodeOperation, given.context, source.view());
    need_host(kEncodeOperation, given.context, target.view());
    Chunks work;
    data::CoreResult result;
    {
        const GilReleased release;
        work = chunks_of(given, boxes, source.view(), target.view());
        result = data::encode_chunks({given.encoder, work.chunks, work.boxes, fill_of(given), work.sizes},
                                     options_of(given));
    }
    const nb::bytes sizes = bytes_of(work.sizes);
    if (!result.fault) return nb::make_tuple(result.done, -1, "", sizes);
    return nb::make_tuple(result.done, result.fault->first, result.fault->second, sizes);
}

}  // namespace

void bind_encode(nb::module_& module) {
    using nb::arg;
    nb::class_<data::Encoder>(module, "Encoder")
        .def_prop_ro("chunk_bytes", &data::Encoder::chunk_bytes)
        .def_prop_ro("most_bytes", &data::Encoder::most_bytes);
    module.def(
        "make_encoder",
        [](nb::handle filters, nb::handle chunk_bytes) {
            const std::vector<data::Filter> all = filters_of(filters);
            return std::make_unique<data::Encoder>(all, byte_count("chunk_bytes", chunk_bytes));
        },
        arg("filters"), arg("chunk_bytes"));
    module.def(
        "encode_chunks",
        [](const Context& context, const data::Encoder& encoder, nb::tuple from, nb::tuple to, nb::handle swap_bytes,
           nb::bytes fill, const Stop& stop, nb::handle timeout_s) {
            return encode_chunks({context, encoder, from[0], from[1], option<std::uint64_t>("item_bytes", from[2]),
                                  to[0], byte_count("stride_bytes", to[1]),
                                  option<std::uint32_t>("swap_bytes", swap_bytes), fill, stop,
                                  deadline_after("timeout_s", timeout_s)});
        },
        arg("context"), arg("encoder"), arg("source"), arg("target"), arg("swap_bytes"), arg("fill"), arg("stop"),
        arg("timeout_s").none() = nb::none());
    module.def(
        "write_chunk_files",
        [](const Context& context, const data::Encoder& encoder, nb::tuple from, nb::handle files,
           nb::handle swap_bytes, nb::bytes fill, const Stop& stop, nb::handle timeout_s) {
            return write_chunk_files({context, encoder, from[0], from[1],
                                      option<std::uint64_t>("item_bytes", from[2]), nb::none(), 0,
                                      option<std::uint32_t>("swap_bytes", swap_bytes), fill, stop,
                                      deadline_after("timeout_s", timeout_s)},
                                     files);
        },
        arg("context"), arg("encoder"), arg("source"), arg("files"), arg("swap_bytes"), arg("fill"), arg("stop"),
        arg("timeout_s").none() = nb::none());
    module.def(
        "takes_files",
        [](nb::handle folder, nb::handle bytes) {
            const std::string name = file_name(folder, kWriteOperation);
            const std::uint64_t count = byte_count("bytes", bytes);
            const GilReleased release;
            return data::takes_files(name, count);
        },
        arg("folder"), arg("bytes"));
    module.def("encoded_filters", &data::encoder_names);
    module.def(
        "encoding_libraries",
        [](nb::handle filters) {
            std::vector<std::string> found;
            for (const data::Filter& one : filters_of(filters)) found.push_back(data::encoder_library(one));
            return found;
        },
        arg("filters"));
}

}  // namespace penstock::python
