// See join.hpp.
#include "python/shared/join.hpp"

#include "python/shared/dlpack.hpp"

namespace penstock::python {

std::string shared_layout() {
    std::string layout = PENSTOCK_VERSION;
    for (const std::size_t bytes : {sizeof(Context), sizeof(PythonBuffer), sizeof(PythonFile), sizeof(PythonTransfer),
                                    sizeof(DLPackMemory)}) {
        layout += " " + std::to_string(bytes);
    }
    return layout;
}

void join_core(const char* module) {
    const nb::module_ core = nb::module_::import_("penstock._core");
    const auto theirs = nb::cast<std::string>(core.attr("shared_layout"));
    if (theirs == shared_layout()) return;
    throw nb::import_error((std::string(module) + " and penstock._core are of two builds (" + shared_layout() +
                            " and " + theirs + "): install penstock again, all of it")
                               .c_str());
}

}  // namespace penstock::python
