// Tables of numbers, and transfers given as tables: 10 000 ranges reach C++ as one array and not as 10 000 tuples.
#include <cstring>
#include <utility>

#include "int_table.hpp"

namespace penstock::python {
namespace {

class Export {
  public:
    explicit Export(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FULL_RO) != 0) throw nb::python_error();
    }
    ~Export() { PyBuffer_Release(&view_); }
    Export(const Export&) = delete;
    Export& operator=(const Export&) = delete;
    const Py_buffer& view() const noexcept { return view_; }

  private:
    Py_buffer view_{};
};

bool signed_64_bits(const Py_buffer& view) {
    const char* format = view.format == nullptr ? "B" : view.format;
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    return view.itemsize == 8 && (*format == 'l' || *format == 'q') && format[1] == 0;
}

// Returns the ranges of one memory. A row has file, file offset, memory offset, bytes.
std::vector<Range> ranges_of(const IntTable& table, const std::vector<const PythonFile*>& files,
                             const MemoryView& memory) {
    std::vector<Range> ranges(table.rows());
    for (std::size_t i = 0; i < table.rows(); ++i) {
        const std::uint64_t file = table.count(i, 0, "file index"), offset = table.count(i, 1, "file offset");
        const std::uint64_t at = table.count(i, 2, "memory offset"), bytes = table.count(i, 3, "number of bytes");
        if (file >= files.size()) {
            table.refuse(i, "there is no file " + std::to_string(file) + " in a list of " +
                                std::to_string(files.size()));
        }
        if (at > memory.bytes || bytes > memory.bytes - at) {
            table.refuse(i, std::to_string(bytes) + " bytes at " + std::to_string(at) + " leave the " +
                                std::to_string(memory.bytes) + " bytes of the memory");
        }
        ranges[i] = {&files[file]->file, offset, static_cast<std::byte*>(memory.data) + at, bytes};
    }
    return ranges;
}

Direction direction_of(const std::string& name) {
    if (name == "read") return Direction::read;
    if (name == "write") return Direction::write;
    throw Error(ErrorCode::invalid_argument, "start transfer", "there is no direction '" + name + "'",
                "use read or write");
}

struct TableArguments {
    const Context& context;
    Direction direction;
    nb::handle files, memory, table;
};

std::unique_ptr<PythonTransfer> start_table(const TableArguments& given, const nb::kwargs& keywords) {
    const bool reads = given.direction == Direction::read;
    const IntTable table(given.table, "start transfer");
    if (table.columns() != 4) {
        throw Error(ErrorCode::invalid_argument, "start transfer",
                    "a table of " + std::to_string(table.columns()) + " columns",
                    "give 4: file index, file offset, memory offset, bytes");
    }
    std::vector<const PythonFile*> files;
    for (const nb::handle file : given.files) files.push_back(&nb::cast<const PythonFile&>(file));
    auto memory = std::make_shared<BorrowedMemory>(
        given.context, given.memory, reads ? BorrowedMemory::Use::write_into : BorrowedMemory::Use::read_from);
    const TransferOptions options = transfer_options(keywords);
    Transfer transfer;
    {
        const GilReleased release;
        const std::vector<Range> ranges = ranges_of(table, files, memory->view());
        transfer = given.context.start(given.direction, ranges, memory->view().kind, options);
    }
    for (const nb::handle file : given.files) nb::cast<PythonFile&>(file).began(transfer);
    return std::make_unique<PythonTransfer>(std::move(transfer), std::vector<SharedMemory>{std::move(memory)},
                                            options.deadline);
}

}  // namespace

IntTable::IntTable(nb::handle object, const char* operation) : operation_(operation) {
    const auto refused = [&](const std::string& cause) {
        throw Error(ErrorCode::invalid_argument, operation, cause,
                    "give a two-dimensional C-contiguous array of int64, as numpy.ascontiguousarray(table, "
                    "dtype=numpy.int64)");
    };
    if (!PyObject_CheckBuffer(object.ptr())) {
        refused(std::string("a ") + Py_TYPE(object.ptr())->tp_name + " is no table of numbers");
    }
    const Export exported(object);
    const Py_buffer& view = exported.view();
    if (!signed_64_bits(view)) refused("the numbers of the table are not int64");
    if (view.ndim != 2) refused("a table of " + std::to_string(view.ndim) + " dimensions");
    if (PyBuffer_IsContiguous(&view, 'C') == 0) refused("the table is not contiguous");
    rows_ = static_cast<std::size_t>(view.shape[0]);
    columns_ = static_cast<std::size_t>(view.shape[1]);
    numbers_.resize(rows_ * columns_);
    if (!numbers_.empty()) std::memcpy(numbers_.data(), view.buf, numbers_.size() * sizeof(std::int64_t));
}

void IntTable::refuse(std::size_t row, const std::string& cause, const std::string& advice) const {
    throw Error(ErrorCode::invalid_argument, operation_, "row " + std::to_string(row) + ": " + cause, advice);
}

std::uint64_t IntTable::count(std::size_t row, std::size_t column, const char* name) const {
    const std::int64_t number = this->row(row)[column];
    if (number < 0) refuse(row, std::string("the ") + name + " is " + std::to_string(number));
    return static_cast<std::uint64_t>(number);
}

void bind_table(nb::module_& module) {
    using nb::arg;
    module.def(
        "start_table",
        [](const Context& context, const std::string& direction, nb::list files, nb::handle memory, nb::handle table,
           const nb::kwargs& options) {
            return start_table({context, direction_of(direction), files, memory, table}, options);
        },
        arg("context"), arg("direction"), arg("files"), arg("memory").none(), arg("table").none(), arg("options"));
}

}  // namespace penstock::python
