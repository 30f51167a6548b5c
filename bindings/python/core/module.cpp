// The module penstock._core: the C++ API in Python, without policy or convenience of its own. python/penstock/_api.py
// is the typed and documented interface.
#include "core.hpp"
#include "penstock/survey.hpp"
#include "penstock_revision.hpp"
#include "python/shared/join.hpp"

namespace penstock::python {
namespace {

std::vector<std::string> path_names() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kPathKinds; ++i) {
        const auto kind = static_cast<PathKind>(i);
        if (kind != PathKind::null && kind != PathKind::memory) names.emplace_back(to_string(kind));
    }
    return names;
}

nb::dict build_facts() {
    nb::dict facts;
    facts["version"] = PENSTOCK_VERSION;
    facts["revision"] = PENSTOCK_REVISION;
    facts["compiler"] = __VERSION__;
    facts["cuda"] = built_with_cuda();
    return facts;
}

nb::object survey(nb::handle path) {
    const std::string place = file_name(path, "survey");
    std::string found;
    {
        const GilReleased release;
        found = survey_json(place);
    }
    return text(found);
}

nb::tuple cuda_devices() {
    std::string why;
    int count = 0;
    {
        const GilReleased release;
        count = cuda_device_count(why);
    }
    return nb::make_tuple(count, why);
}

}  // namespace
}  // namespace penstock::python

NB_MODULE(_core, module) {
    namespace python = penstock::python;
    namespace nb = nanobind;
    nb::set_leak_warnings(false);
    python::bind_errors(module);
    python::bind_buffer(module);
    python::bind_array(module);
    python::bind_transfer(module);
    python::bind_file(module);
    python::bind_new_file(module);
    python::bind_context(module);
    python::bind_stamp(module);
    python::bind_profile(module);
    python::bind_table(module);
    python::bind_small_read(module);
    python::bind_small_load(module);
    python::bind_header(module);
    python::bind_plain_hdf5(module);
    python::bind_part(module);
    python::bind_parts(module);
    python::bind_row_reader(module);
    python::bind_boxes(module);
    python::bind_decode(module);
    python::bind_encode(module);
    python::bind_device_cache(module);
    python::bind_device_calls(module);
    python::bind_history(module);
    python::bind_snapshot(module);
    python::bind_restart(module);
    python::bind_dlpack(module);
    module.attr("shared_layout") = python::shared_layout();
    module.def("parse_bytes", [](const std::string& text) { return penstock::parse_bytes(text); });
    module.def("path_names", &python::path_names);
    module.def("build_facts", &python::build_facts);
    module.def("cuda_devices", &python::cuda_devices, "(count, why there are none)");
    module.def("survey_json", &python::survey);
}
