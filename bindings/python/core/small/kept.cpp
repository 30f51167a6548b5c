// See kept.hpp.
#include "python/core/small/kept.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <tuple>
#include <utility>

namespace penstock::python {
namespace {

using Given = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

int export_chunk(PyObject* self, Py_buffer* view, int flags) {
    if (!nb::inst_ready(self)) {  // made by __new__() alone
        view->obj = nullptr;
        PyErr_SetString(PyExc_BufferError, "there is no chunk");
        return -1;
    }
    const auto* chunk = nb::inst_ptr<data::DecodedChunk>(self);
    constexpr int kReadOnly = 1;
    void* const bytes = const_cast<std::byte*>(chunk->data.get());
    return PyBuffer_FillInfo(view, self, bytes, static_cast<Py_ssize_t>(chunk->bytes), kReadOnly, flags);
}

PyType_Slot kChunkSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&export_chunk)}, {0, nullptr}};

// Kind, offset, bytes and mask of the filters that were skipped.
using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t>;

data::ChunkKey key_of(const Key& told) {
    const auto& [kind, offset, bytes, skipped] = told;
    return {kind, offset, bytes, skipped};
}

nb::object find(const PythonKeptChunks& self, const Key& key) {
    data::DecodedChunk found = self.chunks->find(key_of(key));
    return found.data == nullptr ? nb::none() : nb::cast(std::move(found));
}

// A copy of it.
void keep(const PythonKeptChunks& self, const Key& key, const Given& chunk) {
    auto memory = std::make_unique_for_overwrite<std::byte[]>(chunk.size());
    std::memcpy(memory.get(), chunk.data(), chunk.size());
    self.chunks->keep(key_of(key), {std::move(memory), chunk.size()});
}

}  // namespace

void bind_kept(nb::module_& module) {
    nb::class_<data::DecodedChunk>(module, "DecodedChunk", nb::type_slots(kChunkSlots));
    nb::class_<PythonKeptChunks>(module, "KeptChunks")
        .def(nb::new_([](std::uint64_t bytes, std::uint64_t chunks) {
                 return PythonKeptChunks{std::make_shared<data::KeptChunks>(data::KeptLimits{bytes, chunks})};
             }),
             nb::arg("bytes"), nb::arg("chunks"))
        .def("find", &find, nb::arg("key"))
        .def("keep", &keep, nb::arg("key"), nb::arg("chunk"))
        .def("close", [](const PythonKeptChunks& self) { self.chunks->close(); })
        .def("__len__", [](const PythonKeptChunks& self) { return self.chunks->size(); });
}

}  // namespace penstock::python
