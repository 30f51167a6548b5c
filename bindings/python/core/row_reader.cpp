// RowReader: many rows of one dataset, read by small reads on the calling thread.
//
// Rows in the page cache cost a system call and a copy each: a plan and a queue would cost more. Rows that make the
// thread wait come from a disk, which is faster when it is asked for many at a time, so the reader gives up then. It
// answers None where a transfer must be made, as small reads do: who asked starts that transfer, which tells errors.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core.hpp"
#include "data/layout/row_runs.hpp"
#include "int_table.hpp"
#include "penstock/box.hpp"

namespace penstock::python {
namespace {

constexpr const char* kOperation = "read rows";

class RowReader {
    static constexpr std::size_t kMostRuns = 8;  // of one row; more are worth a queue
    static constexpr std::size_t kPortion = 64;  // reads between two looks
    static constexpr long kMostWaits = 16;       // of one portion

  public:
    RowReader(Context context, data::Layout layout, std::uint32_t swap_bytes)
        : context_(std::move(context)), layout_(std::move(layout)), swap_bytes_(swap_bytes) {}

    // `numbers`: a table of one column. `box`: start and count of each dimension; those of the first are not looked at.
    // None, or (operations, bytes, seconds, one SmallRead of each size).
    nb::object read(const PythonFile& file, nb::handle numbers, nb::handle box, nb::handle memory) const {
        const IntTable rows(numbers, kOperation), ends(box, kOperation);
        data::WantedRows wanted;
        check(rows, ends, wanted.box);
        const std::vector<std::int64_t> all = column(rows);
        wanted.numbers = all;
        Done done;
        try {
            const BorrowedMemory borrowed(context_, memory, BorrowedMemory::Use::write_into);
            const GilReleased release;
            if (!move(file.file, wanted, borrowed.view(), done)) done.operations = 0;
        } catch (const Error&) {
            return nb::none();
        }
        if (done.operations == 0) return nb::none();
        nb::list samples;
        for (auto& [bytes, sample] : done.samples) samples.append(nb::cast(sample));
        return nb::make_tuple(done.operations, done.bytes, done.seconds, samples);
    }

  private:
    struct Done {
        std::uint64_t operations = 0, bytes = 0;
        double seconds = 0;
        std::map<std::uint64_t, SmallRead> samples;
    };

    static std::vector<std::int64_t> column(const IntTable& rows) {
        std::vector<std::int64_t> numbers(rows.rows());
        for (std::size_t at = 0; at < numbers.size(); ++at) numbers[at] = rows.row(at)[0];
        return numbers;
    }

    void check(const IntTable& rows, const IntTable& ends, data::ElementBox& row) const {
        const auto refuse = [](const char* cause) { throw Error(ErrorCode::invalid_argument, kOperation, cause); };
        if (layout_.dimensions() == 0 || ends.rows() != layout_.dimensions() || ends.columns() != 2) {
            refuse("the box does not fit the dataset");
        }
        if (rows.columns() != 1 || rows.rows() == 0) refuse("there are no numbers of rows");
        for (std::size_t at = 0; at < rows.rows(); ++at) {
            if (rows.row(at)[0] < 0 || rows.row(at)[0] >= layout_.extent(0)) rows.refuse(at, "there is no such row");
        }
        row.count[0] = 1;
        for (std::size_t axis = 1; axis < layout_.dimensions(); ++axis) {
            const std::int64_t start = ends.row(axis)[0], count = ends.row(axis)[1];
            if (start < 0 || count < 1 || count > layout_.extent(axis) - start) refuse("the box leaves the dataset");
            row.start[axis] = start;
            row.count[axis] = count;
        }
    }

    bool move(const File& file, const data::WantedRows& rows, const MemoryView& memory, Done& done) const {
        std::uint64_t bytes = layout_.item_bytes() * rows.numbers.size();
        for (std::size_t axis = 1; axis < layout_.dimensions(); ++axis) {
            bytes *= static_cast<std::uint64_t>(rows.box.count[axis]);
        }
        data::RowRuns found;
        if (bytes != memory.bytes) return false;
        if (!data::find_rows(layout_, rows, {kSmallReadBytes, kMostRuns}, found)) return false;
        if (!read_runs(file, found.runs, memory, done)) return false;
        for (const data::RowCopy& copy : found.copies) {
            auto* const data = static_cast<std::byte*>(memory.data);
            std::memcpy(data + copy.to, data + copy.from, copy.bytes);
        }
        if (swap_bytes_ != 0) swap(memory);
        return true;
    }

    static bool read_runs(const File& file, std::span<const data::FileRun> runs, const MemoryView& memory, Done& done) {
        std::vector<Range> ranges;
        long waits = waits_of_thread();
        while (!runs.empty()) {
            ranges.clear();
            for (const data::FileRun& run : runs.first(std::min(runs.size(), kPortion))) {
                ranges.push_back({nullptr, run.file_offset, static_cast<std::byte*>(memory.data) + run.memory_offset,
                                  run.bytes});
            }
            runs = runs.subspan(ranges.size());
            const auto made = file.try_small_reads(memory, ranges);
            if (!made) return false;
            done.operations += made->operations;
            done.bytes += made->bytes;
            done.seconds += made->seconds;
            for (const SmallRead& sample : made->samples) done.samples.try_emplace(sample.memory.bytes, sample);
            const long now = waits_of_thread();
            if (now - waits > kMostWaits) return false;
            waits = now;
        }
        return true;
    }

    // How often the thread gave its core up, as it does for bytes that are not in the page cache.
    static long waits_of_thread() {
        struct rusage usage {};
        return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
    }

    void swap(const MemoryView& memory) const {
        Box words;
        words.destination = memory.data;
        words.source = memory.data;
        words.item_bytes = words.swap_bytes = swap_bytes_;
        words.dimensions = 1;
        words.extents[0] = memory.bytes / swap_bytes_;
        words.destination_strides[0] = words.source_strides[0] = swap_bytes_;
        context_.copy_boxes({&words, 1});
    }

    Context context_;
    data::Layout layout_;
    std::uint32_t swap_bytes_;
};

// `chunks`: a table of int64, a row a chunk: its number in the grid, and where it begins.
std::unique_ptr<RowReader> row_reader_of(const Context& context, const nb::dict& stored) {
    data::Stored described;
    described.shape = nb::cast<std::vector<std::int64_t>>(stored["shape"]);
    described.chunk_shape = nb::cast<std::vector<std::int64_t>>(stored["chunk_shape"]);
    described.item_bytes = nb::cast<std::uint64_t>(stored["item_bytes"]);
    described.edge_cut = nb::cast<bool>(stored["edge_cut"]);
    const IntTable chunks(stored["chunks"], "describe a dataset");
    for (std::size_t row = 0; row < chunks.rows(); ++row) {
        described.cells.push_back(static_cast<std::int64_t>(chunks.count(row, 0, "number of the chunk")));
        described.offsets.push_back(chunks.count(row, 1, "file offset"));
    }
    const auto swap_bytes = nb::cast<std::uint32_t>(stored["swap_bytes"]);
    return std::make_unique<RowReader>(context, data::Layout(std::move(described)), swap_bytes);
}

}  // namespace

void bind_row_reader(nb::module_& module) {
    nb::class_<RowReader>(module, "RowReader")
        .def(nb::new_(&row_reader_of), nb::arg("context"), nb::arg("stored"))
        .def("read", &RowReader::read, nb::arg("file"), nb::arg("numbers"), nb::arg("box"), nb::arg("memory"));
}

}  // namespace penstock::python
