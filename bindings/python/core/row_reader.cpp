// RowReader: rows of one dataset, and boxes of its other dimensions, into memory of the caller.
//
// It answers False where a transfer must be made, as small reads do: the caller starts it, and it tells errors.
#include <nanobind/stl/shared_ptr.h>

#include "context/crew.hpp"
#include "core.hpp"
#include "data/layout/row_runs.hpp"
#include "int_table.hpp"
#include "penstock/box.hpp"
#include "python/core/small/rows.hpp"

namespace penstock::python {
namespace {

constexpr const char* kOperation = "read rows";

class RowReader {
  public:
    RowReader(Context context, std::shared_ptr<SmallTally> tally, data::Layout layout, std::uint32_t swap_bytes)
        : context_(std::move(context)), tally_(std::move(tally)), layout_(std::move(layout)), swap_bytes_(swap_bytes) {}

    // `numbers`: a table of one column. `box`: start and count of each dimension; those of the first are not looked at.
    bool read(const PythonFile& file, nb::handle numbers, nb::handle box, nb::handle memory) const {
        const IntTable rows(numbers, kOperation), ends(box, kOperation);
        data::WantedRows wanted;
        check(rows, ends, wanted.box);
        const std::vector<std::int64_t> all = column(rows);
        wanted.numbers = all;
        data::RunsMoved done;
        try {
            const BorrowedMemory borrowed(context_, memory, BorrowedMemory::Use::write_into);
            const GilReleased release;
            if (bytes_of_rows(layout_, wanted) != borrowed.view().bytes) return false;
            os::Crew& crew = context::crew_of(context_);
            if (!read_rows(file.file, layout_, wanted, {borrowed.view(), done, 0, &crew})) return false;
            if (swap_bytes_ != 0) swap(borrowed.view());
        } catch (const Error&) {
            return false;
        }
        tally_->add(done);
        return true;
    }

  private:
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
    std::shared_ptr<SmallTally> tally_;
    data::Layout layout_;
    std::uint32_t swap_bytes_;
};

std::unique_ptr<RowReader> row_reader_of(const Context& context, std::shared_ptr<SmallTally> tally,
                                         const nb::dict& stored) {
    const auto swap_bytes = nb::cast<std::uint32_t>(stored["swap_bytes"]);
    return std::make_unique<RowReader>(context, std::move(tally), data::Layout(stored_of(stored)), swap_bytes);
}

}  // namespace

void bind_row_reader(nb::module_& module) {
    nb::class_<RowReader>(module, "RowReader")
        .def(nb::new_(&row_reader_of), nb::arg("context"), nb::arg("tally"), nb::arg("stored"))
        .def("read", &RowReader::read, nb::arg("file"), nb::arg("numbers"), nb::arg("box"), nb::arg("memory"));
}

}  // namespace penstock::python
