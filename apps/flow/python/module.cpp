// The module penstock.flow._flow: the flow model in Python. A field is an address: python/penstock/flow makes arrays of
// it. The calling thread computes without the GIL.
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "flow/model.hpp"
#include "python/shared/binding.hpp"
#include "python/shared/join.hpp"

namespace penstock::python {
namespace {

using HostField = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

using Cells = std::tuple<int, int, int>;         // in x, y, z
using Air = std::tuple<double, double, double>;  // height, wind, warmth of the bubble

void make_model(flow::Model* self, const Context& context, const Cells& cells, const Air& air) {
    flow::ModelOptions options;
    std::tie(options.nx, options.ny, options.nz) = cells;
    std::tie(options.height_m, options.wind, options.bubble_kelvin) = air;
    const GilReleased release;
    new (self) flow::Model(context, options);
}

int number_of_field(std::int64_t number) {
    if (number < 0 || number >= flow::kOutputs) throw nb::index_error("the model has no such field");
    return static_cast<int>(number);
}

void copy_field(flow::Model& self, std::int64_t number, const HostField& to) {
    if (static_cast<std::int64_t>(to.size()) != self.grid().cells()) {
        throw nb::value_error("the array has not the cells of the model, halo included");
    }
    const GilReleased release;
    self.copy_field(number_of_field(number), to.data());
}

nb::list fields() {
    nb::list told;
    for (const flow::FieldInfo& one : flow::Model::fields()) {
        told.append(nb::make_tuple(one.name, one.long_name, one.standard_name, one.units));
    }
    return told;
}

}  // namespace
}  // namespace penstock::python

NB_MODULE(_flow, module) {
    namespace python = penstock::python;
    namespace nb = nanobind;
    using penstock::flow::Model;
    python::join_core("penstock.flow._flow");
    module.attr("HALO") = penstock::flow::kHalo;
    module.def("fields", &python::fields);
    nb::class_<Model>(module, "FlowModel")
        .def("__init__", &python::make_model)
        .def_prop_ro("time", &Model::time)
        .def_prop_ro("stream", &Model::stream)
        .def_prop_ro("time_step", &Model::time_step)
        .def_prop_ro("spacing", [](const Model& self) { return self.grid().spacing_m; })
        .def("address",
             [](const Model& self, std::int64_t number) {
                 return reinterpret_cast<std::uintptr_t>(self.field(python::number_of_field(number)));
             })
        .def("copy_field", &python::copy_field)
        .def("use_default_stream", &Model::use_default_stream)
        .def("restart",
             [](Model& self) {
                 const python::GilReleased release;
                 self.restart();
             })
        .def("advance", [](Model& self, int steps) {
            const python::GilReleased release;
            self.advance(steps);
        });
}
