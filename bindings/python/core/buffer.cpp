// Buffer: memory of a context, which NumPy, CuPy, PyTorch and others use without a copy.
//
// Buffers that the CPU can address export the buffer protocol: all buffers of the host device, and pinned, managed and
// system ones of a GPU. Device and managed buffers of a GPU have __cuda_array_interface__. All have DLPack. An export
// keeps the buffer alive, and the buffer keeps its context alive.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include "core.hpp"

namespace penstock::python {
namespace {

int export_buffer(PyObject* self, Py_buffer* view, int flags) {
    const auto* buffer = nb::inst_ptr<PythonBuffer>(self);
    if (!buffer->emulated && buffer->part.kind == MemoryKind::device) {
        PyErr_SetString(PyExc_BufferError,
                        "the CPU cannot address GPU memory; use copy_to_host, or an array library of the GPU");
        return -1;
    }
    return PyBuffer_FillInfo(view, self, buffer->part.data, static_cast<Py_ssize_t>(buffer->part.bytes), 0, flags);
}

PyType_Slot kBufferSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&export_buffer)}, {0, nullptr}};

nb::dict cuda_array(const PythonBuffer& buffer) {
    if (buffer.emulated || (buffer.part.kind != MemoryKind::device && buffer.part.kind != MemoryKind::managed)) {
        throw nb::attribute_error("__cuda_array_interface__: this is not GPU memory");
    }
    nb::dict description;
    description["shape"] = nb::make_tuple(buffer.part.bytes);
    description["typestr"] = "|u1";
    description["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(buffer.part.data), false);
    description["version"] = 3;
    return description;
}

std::pair<int, int> dlpack_place(const PythonBuffer& buffer) {
    constexpr int kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13;  // DLDeviceType
    if (buffer.emulated || buffer.part.kind == MemoryKind::system) return {kCpu, 0};
    if (buffer.part.kind == MemoryKind::pinned) return {kCudaHost, 0};
    return {buffer.part.kind == MemoryKind::managed ? kCudaManaged : kCuda, buffer.device_index};
}

nb::object dlpack(nb::handle self, const nb::kwargs& keywords) {
    const auto& buffer = nb::cast<const PythonBuffer&>(self);
    const auto [type, index] = dlpack_place(buffer);
    const std::size_t shape = buffer.part.bytes;
    nb::ndarray<std::uint8_t, nb::ndim<1>> array(buffer.part.data, 1, &shape, self, nullptr, nb::dtype<std::uint8_t>(),
                                                 type, index);
    const nb::object exported = nb::cast(array);  // a capsule; from nanobind 2.8 on, an object that makes one
    return nb::hasattr(exported, "__dlpack__") ? exported.attr("__dlpack__")(**keywords) : exported;
}

// Any integer of Python, NumPy's too.
std::int64_t number_at(const nb::tuple& numbers, std::size_t at) {
    const Py_ssize_t number =
        PyNumber_AsSsize_t(PyTuple_GET_ITEM(numbers.ptr(), static_cast<Py_ssize_t>(at)), PyExc_OverflowError);
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return number;
}

// In C order, without gaps.
bool is_dense(const nb::tuple& shape, const nb::tuple& strides, std::int64_t item_bytes) {
    std::int64_t next = item_bytes;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        const auto extent = number_at(shape, axis);
        if (extent == 0) return true;
        if (extent != 1 && number_at(strides, axis) != next) return false;
        next *= extent;
    }
    return true;
}

// What NumPy asks an array for. `element`: (offset in the buffer, type as NumPy writes it, bytes). None: the CPU cannot
// address the memory.
nb::object array_interface(const PythonBuffer& buffer, const nb::tuple& shape, const nb::tuple& strides,
                           const nb::tuple& element) {
    if (!buffer.emulated && (buffer.part.kind == MemoryKind::device || buffer.part.kind == MemoryKind::managed)) {
        return nb::none();
    }
    const auto* const first = static_cast<const std::byte*>(buffer.part.data) + number_at(element, 0);
    const bool dense = is_dense(shape, strides, number_at(element, 2));
    nb::list members;
    members.append(nb::make_tuple("", element[1]));
    nb::dict described;
    described["shape"] = shape;
    described["typestr"] = element[1];
    described["descr"] = members;
    described["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(first), false);
    described["strides"] = dense ? nb::none() : nb::object(strides);
    described["version"] = 3;
    return described;
}

PythonBuffer allocate(const Context& context, nb::handle size, nb::handle kind_name, nb::handle touch_name) {
    const std::uint64_t bytes = byte_count("bytes", size);
    const auto kind = option<std::string>("kind", kind_name);
    const auto touch = option<std::string>("first_touch", touch_name);
    const auto memory = memory_kind_from_string(kind);
    const auto first = first_touch_from_string(touch);
    if (!memory) {
        throw Error(ErrorCode::invalid_argument, "allocate", "there is no memory kind '" + kind + "'",
                    "use one of device, pinned, managed, system");
    }
    if (!first) {
        throw Error(ErrorCode::invalid_argument, "allocate", "there is no first touch '" + touch + "'",
                    "use one of none, cpu, gpu");
    }
    const GilReleased release;
    PythonBuffer buffer;
    buffer.context = context;
    buffer.owner = context.allocate(bytes, *memory, *first);
    buffer.part = buffer.owner.view();
    const DeviceInfo info = context.device().info();
    buffer.emulated = info.emulated;
    buffer.device_index = info.index;
    return buffer;
}

PythonBuffer slice(const PythonBuffer& whole, nb::handle offset_bytes, nb::handle bytes) {
    PythonBuffer part = whole;
    part.part = whole.part.slice(byte_count("offset_bytes", offset_bytes), byte_count("bytes", bytes));
    return part;
}

}  // namespace

void bind_buffer(nb::module_& module) {
    nb::class_<PythonBuffer>(module, "Buffer", nb::type_slots(kBufferSlots),
                             "Memory of a context, made by Context.allocate(); freed with the last user of it.\n\n"
                             "It is an array of bytes to other libraries: cupy.asarray(buffer) and\n"
                             "torch.from_dlpack(buffer) share it, and on the host device numpy.asarray(buffer).")
        .def_prop_ro(
            "context", [](const PythonBuffer& self) { return *self.context; },
            "The context of the core that it was allocated by.")
        .def_prop_ro(
            "bytes", [](const PythonBuffer& self) { return self.part.bytes; }, "How long it is.")
        .def_prop_ro(
            "kind", [](const PythonBuffer& self) { return to_string(self.part.kind); },
            "Of memory: device, pinned, managed or system.")
        .def_prop_ro("address",
                     [](const PythonBuffer& self) { return reinterpret_cast<std::uintptr_t>(self.part.data); })
        .def_prop_ro("__cuda_array_interface__", &cuda_array)
        .def("__len__", [](const PythonBuffer& self) { return self.part.bytes; })
        .def("__dlpack_device__", &dlpack_place)
        .def("__dlpack__", &dlpack)
        .def("slice", &slice, any("offset_bytes"), any("bytes"),
             "A part of it, without a copy. ValueError where it would leave the buffer.");
    module.def("array_interface", &array_interface, nb::arg("buffer"), nb::arg("shape"), nb::arg("strides"),
               nb::arg("element"));
    module.def("allocate", &allocate, nb::arg("context"), any("bytes"), any("kind"), any("first_touch"));
}

}  // namespace penstock::python
