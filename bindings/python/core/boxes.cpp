// Strided copies, fills and checksums in device memory, as tables of numbers. Every row is checked before the first
// byte moves.
#include <algorithm>
#include <utility>

#include "box_table.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

constexpr std::size_t kBatch = 16 * 1024;  // boxes handed to the device at a time, which bounds the memory on the host

MemoryKind hardest(const MemoryView& one, const MemoryView& other) {
    return one.kind == MemoryKind::system || other.kind == MemoryKind::system ? MemoryKind::system
                                                                              : MemoryKind::device;
}

// Goes through the rows twice: first to check all of them, then to move them in batches.
void move_rows(const BoxTable& table, const std::function<Box(std::size_t row)>& item_of,
               const std::function<void(std::span<const Box>)>& move) {
    for (std::size_t row = 0; row < table.rows(); ++row) table.split(row, item_of(row), [](const Box&) {});
    std::vector<Box> batch;
    batch.reserve(std::min(table.rows(), kBatch));
    const auto add = [&](const Box& box) {
        batch.push_back(box);
        if (batch.size() < kBatch) return;
        move(batch);
        batch.clear();
    };
    for (std::size_t row = 0; row < table.rows(); ++row) table.split(row, item_of(row), add);
    if (!batch.empty()) move(batch);
}

struct CopyArguments {
    const Context& context;
    nb::handle destination, source, table;
    std::uint64_t item_bytes;
    std::uint32_t swap_bytes;
};

void copy_boxes(const CopyArguments& given) {
    const BoxTable table(given.table, "copy boxes", 2);
    const BorrowedMemory to(given.context, given.destination, Use::write_into);
    const BorrowedMemory from(given.context, given.source, Use::read_from);
    const GilReleased release;
    const Side into = table.side(0, "destination", to.view()), out = table.side(1, "source", from.view());
    const auto item_of = [&](std::size_t row) {
        Box item;
        item.destination = table.place(row, into, given.item_bytes);
        item.source = table.place(row, out, given.item_bytes);
        item.item_bytes = given.item_bytes;
        item.swap_bytes = given.swap_bytes;
        return item;
    };
    const MemoryKind kind = hardest(to.view(), from.view());
    move_rows(table, item_of, [&](std::span<const Box> boxes) { given.context.copy_boxes(boxes, kind); });
}

void fill_boxes(const Context& context, nb::handle destination, nb::handle table_of_boxes, nb::handle item_of_fill) {
    const BoxTable table(table_of_boxes, "fill boxes", 1);
    const BorrowedMemory to(context, destination, Use::write_into);
    const nb::bytes bytes = nb::steal<nb::bytes>(PyBytes_FromObject(item_of_fill.ptr()));
    if (!bytes.is_valid()) throw nb::python_error();
    const std::span<const std::byte> item(reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size());
    if (item.empty() || item.size() > kFillItemBytes) {
        throw Error(ErrorCode::invalid_argument, "fill boxes", "an item of " + std::to_string(item.size()) + " bytes",
                    "give 1 to " + std::to_string(kFillItemBytes) + " bytes");
    }
    const GilReleased release;
    const Side into = table.side(0, "destination", to.view());
    const auto item_at = [&](std::size_t row) {
        Box box;
        box.destination = table.place(row, into, item.size());
        box.item_bytes = item.size();
        return box;
    };
    move_rows(table, item_at,
              [&](std::span<const Box> boxes) { context.fill_boxes(boxes, item, hardest(to.view(), to.view())); });
}

// Rows of int64: offset, bytes. Returns the sums as uint32 in the machine's byte order.
ChecksumKind kind_of_checksum(const std::string& name, const char* operation) {
    for (const ChecksumKind kind : {ChecksumKind::adler32, ChecksumKind::crc32, ChecksumKind::fletcher32}) {
        if (name == to_string(kind)) return kind;
    }
    throw Error(ErrorCode::invalid_argument, operation, "no kind \"" + name + "\"",
                "use adler32, crc32 or fletcher32");
}

nb::bytes checksums(const Context& context, nb::handle memory, nb::handle table_of_ranges, const std::string& kind) {
    constexpr const char* kOperation = "take checksums";
    const ChecksumKind summed = kind_of_checksum(kind, kOperation);
    const IntTable table(table_of_ranges, kOperation);
    if (table.columns() != 2) {
        throw Error(ErrorCode::invalid_argument, kOperation,
                    "a table of " + std::to_string(table.columns()) + " columns", "give 2: offset, bytes");
    }
    const BorrowedMemory from(context, memory, Use::read_from);
    if (from.view().kind == MemoryKind::system) {
        throw Error(ErrorCode::unsupported, kOperation, "ordinary host memory", "use memory of a device");
    }
    std::vector<ChecksumRange> ranges;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const std::uint64_t offset = table.count(row, 0, "offset"), bytes = table.count(row, 1, "bytes");
        if (offset > from.view().bytes || bytes > from.view().bytes - offset) {
            table.refuse(row, "it ends beyond the " + std::to_string(from.view().bytes) + " bytes there are");
        }
        ranges.push_back({static_cast<const std::byte*>(from.view().data) + offset, bytes});
    }
    std::vector<std::uint32_t> found;
    {
        const GilReleased release;
        found = context.checksums(summed, ranges);
    }
    return nb::bytes(reinterpret_cast<const char*>(found.data()), found.size() * sizeof(std::uint32_t));
}

}  // namespace

void bind_boxes(nb::module_& module) {
    using nb::arg;
    module.def(
        "copy_boxes",
        [](const Context& context, nb::handle destination, nb::handle source, nb::handle table, nb::handle item_bytes,
           nb::handle swap_bytes) {
            copy_boxes({context, destination, source, table, option<std::uint64_t>("item_bytes", item_bytes),
                        option<std::uint32_t>("swap_bytes", swap_bytes)});
        },
        arg("context"), arg("destination").none(), arg("source").none(), arg("table").none(), arg("item_bytes").none(),
        arg("swap_bytes") = 0);
    module.def("fill_boxes", &fill_boxes, arg("context"), arg("destination").none(), arg("table").none(),
               arg("item").none());
    module.def("checksums", &checksums, arg("context"), arg("memory").none(), arg("table").none(), arg("kind"));
    module.def(
        "synchronize_stream",
        [](const Context& context, nb::handle handle) {
            const std::uintptr_t stream = handle.is_none() ? 0 : option<std::uintptr_t>("handle", handle);
            const GilReleased release;
            context.synchronize_stream(stream);
        },
        arg("context"), arg("handle").none());
}

}  // namespace penstock::python
