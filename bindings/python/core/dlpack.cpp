// DLPackMemory as a Python class: what a tensor of another library says of itself.
#include "core.hpp"
#include "python/shared/dlpack.hpp"

namespace penstock::python {
namespace {

nb::object or_none(const std::int64_t* numbers, std::int32_t count) {
    if (numbers == nullptr) return nb::none();
    nb::list all;
    for (std::int32_t i = 0; i < count; ++i) all.append(numbers[i]);
    return nb::tuple(all);
}

}  // namespace

void bind_dlpack(nb::module_& module) {
    nb::class_<DLPackMemory>(module, "DLPackMemory")
        .def_prop_ro("pointer", [](const DLPackMemory& self) { return reinterpret_cast<std::uintptr_t>(self.data()); })
        .def_prop_ro("bytes", &DLPackMemory::bytes)
        .def_prop_ro("shape",
                     [](const DLPackMemory& self) { return or_none(self.tensor().shape, self.tensor().dimensions); })
        .def_prop_ro("strides",
                     [](const DLPackMemory& self) { return or_none(self.tensor().strides, self.tensor().dimensions); })
        .def_prop_ro("dtype",
                     [](const DLPackMemory& self) {
                         const DlType& type = self.tensor().type;
                         return nb::make_tuple(type.code, type.bits, type.lanes);
                     })
        .def_prop_ro("device",
                     [](const DLPackMemory& self) {
                         return nb::make_tuple(self.tensor().device.type, self.tensor().device.id);
                     })
        .def_prop_ro("readonly", &DLPackMemory::read_only)
        .def_prop_ro("contiguous", &DLPackMemory::contiguous);
    module.def(
        "describe_dlpack",
        [](nb::handle object, nb::handle stream) { return std::make_unique<DLPackMemory>(object, stream); },
        nb::arg("object").none(), nb::arg("stream") = nb::none());
    bind_dlpack_export(module);
}

}  // namespace penstock::python
