// The module penstock.nbody._nbody: the star cluster in Python. A field is an address: python/penstock/nbody makes
// arrays of it. The calling thread computes without the GIL.
#include <cstdint>

#include "nbody/nbody_model.hpp"
#include "python/shared/binding.hpp"
#include "python/shared/join.hpp"

namespace penstock::python {
namespace {

void make_cluster(nbody::Cluster* self, const Context& context, std::int64_t bodies, std::uint64_t seed) {
    nbody::ClusterOptions options;
    options.bodies = bodies;
    options.seed = seed;
    const GilReleased release;
    new (self) nbody::Cluster(context, options);
}

nb::dict addresses(const nbody::Cluster& self) {
    const nbody::Bodies& all = self.arrays();
    nb::dict found;
    const auto add = [&](const char* name, const void* first) {
        found[name] = reinterpret_cast<std::uintptr_t>(first);
    };
    add("position", all.position);
    add("velocity", all.velocity);
    add("acceleration", all.acceleration);
    add("jerk", all.jerk);
    add("mass", all.mass);
    add("began", all.began);
    add("step", all.step);
    add("id", self.ids());
    return found;
}

}  // namespace
}  // namespace penstock::python

NB_MODULE(_nbody, module) {
    namespace python = penstock::python;
    namespace nb = nanobind;
    using penstock::nbody::Cluster;
    python::join_core("penstock.nbody._nbody");
    nb::class_<Cluster>(module, "ClusterModel")
        .def("__init__", &python::make_cluster)
        .def_prop_ro("time", &Cluster::time)
        .def_prop_ro("bodies", &Cluster::bodies)
        .def_prop_ro("energy", &Cluster::energy)
        .def("addresses", &python::addresses)
        .def("advance", [](Cluster& self, std::int64_t longest_steps) {
            const python::GilReleased release;
            self.advance(longest_steps);
        });
}
