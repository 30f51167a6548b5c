// os::NewFile for the writers of formats in Python, and what their folders need of it.
#include <memory>

#include "core.hpp"
#include "os/new_file/carry.hpp"
#include "os/new_file/late_error.hpp"
#include "os/new_file/new_file.hpp"
#include "os/new_file/target.hpp"
#include "os/new_file/temporary.hpp"
#include "os/new_file/writer_locks.hpp"
#include "os/refusal.hpp"

namespace penstock::python {
namespace {

std::unique_ptr<os::NewFile> make_file(nb::handle name, bool unnamed) {
    const std::string text = file_name(name, "create");
    const GilReleased release;
    return std::make_unique<os::NewFile>(os::real_system(), text, os::NewFileOptions{.unnamed = unnamed});
}

void need_no_late_error(int descriptor, nb::handle name) {
    const std::string file = file_name(name, "write");
    const GilReleased release;
    const bool local = os::is_local_file_system(descriptor);
    const int number = os::late_error(os::real_system(), descriptor, local);
    if (number != 0) os::refuse("write", file, number);
}

nb::object target_of(nb::handle name) {
    const std::string given = file_name(name, "create");
    std::string path;
    {
        const GilReleased release;
        const os::Target target = os::resolve(os::real_system(), given, "create");
        path = os::path_of(target.folder.get(), given, "create") + "/" + target.base;
    }
    return text(path);
}

// `older` and `newer` are descriptors of files or folders.
void carry_rights(int older, int newer, nb::handle name) {
    const std::string file = file_name(name, "create");
    const GilReleased release;
    os::carry(os::attributes_of(older, file), newer, file, os::Carry::all);
}

nb::object temporary_name(nb::handle base, int attempt, int folder) {
    const std::string name = file_name(base, "create");
    return text(os::temporary_name(name, attempt, os::is_local_file_system(folder)));
}

}  // namespace

void bind_new_file(nb::module_& module) {
    using nb::arg;
    const auto release = nb::call_guard<GilReleased>();
    nb::class_<os::NewFile>(module, "NewFile")
        .def(nb::new_(&make_file), any("name"), arg("unnamed") = false)
        .def_prop_ro("descriptor", &os::NewFile::fd)
        .def_prop_ro("path", [](const os::NewFile& self) { return text(self.path()); })
        .def_prop_ro("temporary", [](const os::NewFile& self) { return text(self.temporary()); })
        .def("publish", &os::NewFile::publish, arg("durable"), release)
        .def("abandon", &os::NewFile::abandon, release)
        .def("close", &os::NewFile::close, release);
    module.def("target_of", &target_of, any("name"));
    module.def("carry_rights", &carry_rights, arg("older"), arg("newer"), any("name"));
    module.def("temporary_name", &temporary_name, any("base"), arg("attempt"), arg("folder"));
    module.def("is_of_history", &os::is_of_history, arg("descriptor"), release);
    module.def("need_no_late_error", &need_no_late_error, arg("descriptor"), any("name"));
}

}  // namespace penstock::python
