// See index.hpp.
#include "python/core/small/index.hpp"

namespace penstock::python {
namespace {

// Sets one dimension. False: it steps backwards, has no elements, or is an index that is wrong.
bool ask_one(PyObject* part, std::int64_t extent, std::size_t axis, Asked& asked) {
    Py_ssize_t start = 0, count = 1, step = 1;
    if (PySlice_Check(part)) {
        Py_ssize_t stop = 0;
        if (PySlice_Unpack(part, &start, &stop, &step) != 0) throw nb::python_error();
        if (step < 1) return false;
        count = PySlice_AdjustIndices(extent, &start, &stop, step);
    } else if (PyIndex_Check(part) != 0 && !PyBool_Check(part)) {  // arrays of one number, too; others refuse
        start = PyNumber_AsSsize_t(part, PyExc_IndexError);
        if (start == -1 && PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            return false;
        }
        if (start < 0) start += extent;
        if (start < 0 || start >= extent) return false;
        asked.dropped[axis] = true;
    } else {
        return false;
    }
    asked.box.start[axis] = start;
    asked.box.count[axis] = count;
    asked.box.step[axis] = count > 1 ? step : 1;
    asked.elements *= static_cast<std::uint64_t>(count);
    return count > 0;
}

void ask_whole(std::int64_t extent, std::size_t axis, Asked& asked) {
    asked.box.count[axis] = extent;
    asked.elements *= static_cast<std::uint64_t>(extent);
}

}  // namespace

bool ask(nb::handle index, const data::Layout& layout, bool backwards, Asked& asked) {
    PyObject* const single = index.ptr();
    const bool many = PyTuple_CheckExact(single);
    PyObject* const* parts = many ? &PyTuple_GET_ITEM(single, 0) : &single;
    const std::size_t count = many ? static_cast<std::size_t>(PyTuple_GET_SIZE(single)) : 1;
    const std::size_t dimensions = layout.dimensions();
    const auto stored = [&](std::size_t axis) { return backwards ? dimensions - 1 - axis : axis; };
    std::size_t axis = 0;
    bool spread = false;
    for (std::size_t at = 0; at < count; ++at) {
        if (parts[at] == Py_Ellipsis) {
            if (spread || count - 1 > dimensions) return false;
            spread = true;
            for (std::size_t left = dimensions - (count - 1); left > 0; --left, ++axis) {
                ask_whole(layout.extent(stored(axis)), stored(axis), asked);
            }
        } else if (axis == dimensions || !ask_one(parts[at], layout.extent(stored(axis)), stored(axis), asked)) {
            return false;
        } else {
            ++axis;
        }
    }
    for (; axis < dimensions; ++axis) ask_whole(layout.extent(stored(axis)), stored(axis), asked);
    return asked.elements != 0;
}

nb::object tuple_of(const std::array<std::int64_t, data::kMostDimensions>& numbers, const Asked& asked,
                    std::size_t dimensions, bool backwards) {
    Py_ssize_t kept = 0;
    for (std::size_t axis = 0; axis < dimensions; ++axis) kept += asked.dropped[axis] ? 0 : 1;
    PyObject* const tuple = PyTuple_New(kept);
    if (tuple == nullptr) throw nb::python_error();
    Py_ssize_t at = 0;
    for (std::size_t turn = 0; turn < dimensions; ++turn) {
        const std::size_t axis = backwards ? dimensions - 1 - turn : turn;
        if (!asked.dropped[axis]) PyTuple_SET_ITEM(tuple, at++, PyLong_FromLongLong(numbers[axis]));
    }
    return nb::steal(tuple);
}

HostOut::HostOut(nb::handle out, int flags) : there_(PyObject_GetBuffer(out.ptr(), &exported_, flags) == 0) {
    if (!there_) PyErr_Clear();
}

HostOut::~HostOut() {
    if (there_) PyBuffer_Release(&exported_);
}

bool HostOut::fits(const data::Layout& layout, const Asked& asked) const noexcept {
    if (!there_ || static_cast<std::uint64_t>(exported_.itemsize) != layout.item_bytes()) return false;
    int left = 0;
    for (std::size_t axis = 0; axis < layout.dimensions(); ++axis) {
        if (asked.dropped[axis]) continue;
        if (left == exported_.ndim || exported_.shape[left] != asked.box.count[axis]) return false;
        ++left;
    }
    return left == exported_.ndim;
}

bool has_device_shape(const nb::object& description, const data::Layout& layout, const Asked& asked) {
    if (description.is_none()) return false;
    const nb::tuple shape = nb::borrow<nb::tuple>(description["shape"]);
    std::size_t left = 0;
    for (std::size_t axis = 0; axis < layout.dimensions(); ++axis) {
        if (asked.dropped[axis]) continue;
        if (left == shape.size() || nb::cast<std::int64_t>(shape[left]) != asked.box.count[axis]) return false;
        ++left;
    }
    return left == shape.size();
}

}  // namespace penstock::python
