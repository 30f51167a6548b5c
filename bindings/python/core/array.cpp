// See array.hpp. What must stay true: an export is of all elements in C order, lies in the buffer, and keeps that. What
// cannot be exported is left to `_refuse_export` of the class, which raises BufferError with the reason.
#include "python/core/array.hpp"

#include <structmember.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace penstock::python {
namespace {

struct ArrayParts {
    PyObject_HEAD
    PyObject* buffer;
    PyObject* dtype;
    PyObject* offset_bytes;
    PyObject* shape;
    PyObject* strides;
    PyObject* weak_references;
};

constexpr PyObject* ArrayParts::* kParts[] = {&ArrayParts::buffer, &ArrayParts::dtype, &ArrayParts::offset_bytes,
                                              &ArrayParts::shape, &ArrayParts::strides};

ArrayParts* parts_of(PyObject* self) noexcept { return reinterpret_cast<ArrayParts*>(self); }

int visit_parts(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    for (const auto part : kParts) Py_VISIT(parts_of(self)->*part);
    return 0;
}

int clear_parts(PyObject* self) {
    for (const auto part : kParts) Py_CLEAR(parts_of(self)->*part);
    return 0;
}

void free_array(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (parts_of(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
    clear_parts(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// What an export describes. It ends with its view.
struct ExportedArray {
    nb::object buffer;
    nb::object letters;  // bytes
    Py_ssize_t shape[PyBUF_MAX_NDIM];
    Py_ssize_t strides[PyBUF_MAX_NDIM];
};

int refuse(PyObject* self) {
    PyErr_Clear();
    PyObject* const told = PyObject_CallMethod(self, "_refuse_export", nullptr);
    if (told != nullptr) PyErr_SetString(PyExc_BufferError, "the array cannot be exported");
    Py_XDECREF(told);
    return -1;
}

// Numbers of a tuple. False: it is none of that length, or holds what is no such number.
bool numbers_of(PyObject* tuple, Py_ssize_t count, Py_ssize_t* numbers) {
    if (tuple == nullptr || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) return false;
    for (Py_ssize_t at = 0; at < count; ++at) {
        numbers[at] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(tuple, at), PyExc_OverflowError);
        if (numbers[at] == -1 && PyErr_Occurred() != nullptr) return false;
    }
    return true;
}

// Bytes of all elements. 0: there are none, they are not in C order, or too many.
Py_ssize_t bytes_in_order(const ExportedArray& made, Py_ssize_t dimensions, Py_ssize_t item_bytes) {
    Py_ssize_t bytes = item_bytes;
    for (Py_ssize_t axis = dimensions; axis-- > 0;) {
        if (made.shape[axis] < 1 || (made.shape[axis] != 1 && made.strides[axis] != bytes)) return 0;
        if (__builtin_mul_overflow(bytes, made.shape[axis], &bytes)) return 0;
    }
    return bytes;
}

bool is_reached_by_host(const PythonBuffer& buffer) {
    if (buffer.emulated) return true;
    return buffer.part.kind == MemoryKind::pinned || buffer.part.kind == MemoryKind::system;
}

// Fills the view but for its owner. False: the elements cannot be exported.
bool describe(const ArrayParts& array, ExportedArray& made, Py_buffer& view) {
    if (array.buffer == nullptr || array.dtype == nullptr || array.offset_bytes == nullptr) return false;
    if (!nb::isinstance<PythonBuffer>(nb::handle(array.buffer))) return false;
    const PythonBuffer& buffer = *nb::inst_ptr<PythonBuffer>(nb::handle(array.buffer));
    if (!is_reached_by_host(buffer) || array.shape == nullptr || !PyTuple_Check(array.shape)) return false;
    const Py_ssize_t dimensions = PyTuple_GET_SIZE(array.shape);
    if (dimensions > PyBUF_MAX_NDIM) return false;
    if (!numbers_of(array.shape, dimensions, made.shape) || !numbers_of(array.strides, dimensions, made.strides)) {
        return false;
    }
    PyObject* const letters = PyObject_GetAttrString(array.dtype, "export_letters");
    made.letters = nb::steal(letters);
    if (letters == nullptr || !PyBytes_Check(letters) || PyBytes_GET_SIZE(letters) == 0) return false;
    const nb::object item = nb::steal(PyObject_GetAttrString(array.dtype, "itemsize"));
    const Py_ssize_t item_bytes = item.is_valid() ? PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError) : -1;
    const Py_ssize_t offset = PyNumber_AsSsize_t(array.offset_bytes, PyExc_OverflowError);
    if (PyErr_Occurred() != nullptr || item_bytes < 1 || offset < 0) return false;
    const Py_ssize_t bytes = bytes_in_order(made, dimensions, item_bytes);
    const auto there = static_cast<Py_ssize_t>(buffer.part.bytes);
    if (bytes == 0 || offset > there || bytes > there - offset) return false;
    made.buffer = nb::borrow(array.buffer);
    view.buf = static_cast<std::byte*>(buffer.part.data) + offset;
    view.len = bytes;
    view.itemsize = item_bytes;
    view.ndim = static_cast<int>(dimensions);
    return true;
}

int export_array(PyObject* self, Py_buffer* view, int flags) {
    auto made = std::make_unique<ExportedArray>();
    view->obj = nullptr;
    if (!describe(*parts_of(self), *made, *view)) return refuse(self);
    view->readonly = 0;
    view->format = (flags & PyBUF_FORMAT) != 0 ? PyBytes_AS_STRING(made->letters.ptr()) : nullptr;
    view->shape = (flags & PyBUF_ND) != 0 && view->ndim > 0 ? made->shape : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && view->ndim > 0 ? made->strides : nullptr;
    view->suboffsets = nullptr;
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && view->ndim > 1) return refuse(self);
    if ((flags & PyBUF_ND) == 0) view->ndim = 1;  // as a line of bytes
    view->internal = made.release();
    view->obj = Py_NewRef(self);
    return 0;
}

void end_export(PyObject*, Py_buffer* view) {
    const std::unique_ptr<ExportedArray> made(static_cast<ExportedArray*>(view->internal));
}

PyMemberDef kMembers[] = {
    {"buffer", T_OBJECT_EX, offsetof(ArrayParts, buffer), 0, nullptr},
    {"dtype", T_OBJECT_EX, offsetof(ArrayParts, dtype), 0, nullptr},
    {"offset_bytes", T_OBJECT_EX, offsetof(ArrayParts, offset_bytes), 0, nullptr},
    {"shape", T_OBJECT_EX, offsetof(ArrayParts, shape), 0, nullptr},
    {"strides", T_OBJECT_EX, offsetof(ArrayParts, strides), 0, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayParts, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot kSlots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&free_array)},
    {Py_tp_traverse, reinterpret_cast<void*>(&visit_parts)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear_parts)},
    {Py_tp_members, kMembers},
    {Py_bf_getbuffer, reinterpret_cast<void*>(&export_array)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&end_export)},
    {0, nullptr},
};

PyType_Spec kArrayBase = {"penstock._core.ArrayBase", sizeof(ArrayParts), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kSlots};

}  // namespace

nb::object make_array(nb::handle array_class, ArrayContent content) {
    auto* const type = reinterpret_cast<PyTypeObject*>(array_class.ptr());
    PyObject* const made = type->tp_alloc(type, 0);
    if (made == nullptr) throw nb::python_error();
    ArrayParts& array = *parts_of(made);
    array.buffer = content.buffer.release().ptr();
    array.dtype = nb::borrow(content.dtype).release().ptr();
    array.offset_bytes = PyLong_FromUnsignedLongLong(content.offset_bytes);
    array.shape = content.shape.release().ptr();
    array.strides = content.strides.release().ptr();
    return nb::steal(made);
}

void bind_array(nb::module_& module) {
    PyObject* const type = PyType_FromSpec(&kArrayBase);
    if (type == nullptr) throw nb::python_error();
    module.attr("ArrayBase") = nb::steal(type);
}

}  // namespace penstock::python
