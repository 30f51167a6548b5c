// See rows.hpp.
#include "python/core/small/rows.hpp"

#include <cstring>
#include <string_view>

#include "python/core/int_table.hpp"

namespace penstock::python {
namespace {

class Exported {
  public:
    explicit Exported(nb::handle object)
        : there_(PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) == 0) {
        if (!there_) PyErr_Clear();
    }
    ~Exported() {
        if (there_) PyBuffer_Release(&view_);
    }
    Exported(const Exported&) = delete;
    Exported& operator=(const Exported&) = delete;
    const Py_buffer* view() const noexcept { return there_ ? &view_ : nullptr; }

  private:
    Py_buffer view_{};
    bool there_;
};

bool add_number(std::int64_t number, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (number < 0) number += extent;
    if (number < 0 || number >= extent) return false;
    numbers.push_back(number);
    return true;
}

bool of_list(PyObject* list, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    const Py_ssize_t count = PyList_GET_SIZE(list);
    numbers.reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t at = 0; at < count; ++at) {
        PyObject* const one = PyList_GET_ITEM(list, at);
        if (!PyLong_CheckExact(one)) return false;
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(one, &overflow);
        if (overflow != 0 || !add_number(number, extent, numbers)) return false;
    }
    return count != 0;
}

template <typename Number>
bool of_integers(const Py_buffer& view, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (view.itemsize != sizeof(Number)) return false;
    numbers.reserve(static_cast<std::size_t>(view.shape[0]));
    for (Py_ssize_t at = 0; at < view.shape[0]; ++at) {
        Number number;
        std::memcpy(&number, static_cast<const char*>(view.buf) + at * view.strides[0], sizeof number);
        if (!add_number(number, extent, numbers)) return false;
    }
    return true;
}

// Without a jump for each mark, which no processor foresees: those would take longer than reading ten rows.
// Another process may have the marks too, so the second look at them may find more or fewer than were counted.
bool of_mask(const Py_buffer& view, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (view.shape[0] != extent) return false;
    const auto* const marks = static_cast<const char*>(view.buf);
    const Py_ssize_t stride = view.strides[0];
    std::size_t count = 0, found = 0;
    for (Py_ssize_t at = 0; at < extent; ++at) count += marks[at * stride] != 0;
    numbers.resize(count + 1);  // one more, which is written and not kept
    for (Py_ssize_t at = 0; at < extent && found < count; ++at) {
        numbers[found] = at;
        found += marks[at * stride] != 0;
    }
    numbers.resize(found);
    return true;
}

}  // namespace

data::Stored stored_of(const nb::dict& stored) {
    data::Stored described;
    described.shape = nb::cast<std::vector<std::int64_t>>(stored["shape"]);
    described.chunk_shape = nb::cast<std::vector<std::int64_t>>(stored["chunk_shape"]);
    described.item_bytes = nb::cast<std::uint64_t>(stored["item_bytes"]);
    described.edge_cut = nb::cast<bool>(stored["edge_cut"]);
    if (const nb::object chunks = stored["chunks"]; PyLong_CheckExact(chunks.ptr())) {
        described.cells = {0};
        described.offsets = {nb::cast<std::uint64_t>(chunks)};
    } else {
        const IntTable table(chunks, "describe a dataset");
        for (std::size_t row = 0; row < table.rows(); ++row) {
            described.cells.push_back(static_cast<std::int64_t>(table.count(row, 0, "number of the chunk")));
            described.offsets.push_back(table.count(row, 1, "file offset"));
        }
    }
    return described;
}

bool ask_rows(nb::handle index, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (PyTuple_CheckExact(index.ptr()) && PyTuple_GET_SIZE(index.ptr()) == 1) {
        index = PyTuple_GET_ITEM(index.ptr(), 0);
    }
    if (PyList_CheckExact(index.ptr())) return of_list(index.ptr(), extent, numbers);
    if (std::string_view(Py_TYPE(index.ptr())->tp_name) != "numpy.ndarray") return false;
    const Exported exported(index);
    const Py_buffer* const view = exported.view();
    if (view == nullptr || view->ndim != 1 || view->format == nullptr) return false;
    const std::string_view format = view->format;
    bool known = false;
    if (format == "l" || format == "q") known = of_integers<std::int64_t>(*view, extent, numbers);
    if (format == "i") known = of_integers<std::int32_t>(*view, extent, numbers);
    if (format == "?") known = of_mask(*view, extent, numbers);
    return known && !numbers.empty();
}

std::optional<std::uint64_t> bytes_of_rows(const data::Layout& layout, const data::WantedRows& rows) {
    std::uint64_t bytes = layout.item_bytes();
    if (__builtin_mul_overflow(bytes, rows.numbers.size(), &bytes)) return std::nullopt;
    for (std::size_t axis = 1; axis < layout.dimensions(); ++axis) {
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(rows.box.count[axis]), &bytes))
            return std::nullopt;
    }
    return bytes;
}

bool read_rows(const File& file, const data::Layout& layout, const data::WantedRows& rows,
               const data::RunsInto& into) {
    const data::ReadRanges read = [&](const MemoryView& memory, std::span<const Range> ranges) {
        return file.try_small_reads(memory, ranges);
    };
    return data::read_rows(read, layout, rows, into);
}

}  // namespace penstock::python
