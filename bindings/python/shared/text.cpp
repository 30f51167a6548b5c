// Names and text that Python and the library exchange. See binding.hpp.
#include "python/shared/binding.hpp"

namespace penstock::python {

std::string file_name(nb::handle name, const char* operation) {
    PyObject* bytes = nullptr;
    if (PyUnicode_FSConverter(name.ptr(), &bytes) == 0) throw nb::python_error();
    const nb::bytes encoded = nb::steal<nb::bytes>(bytes);
    if (encoded.size() != 0) return {encoded.c_str(), encoded.size()};
    throw Error(ErrorCode::invalid_argument, operation, "the name is empty", "give the name of a file");
}

nb::object text(const std::string& bytes) {
    PyObject* decoded = PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
    if (decoded == nullptr) throw nb::python_error();
    return nb::steal(decoded);
}

PathKind path_kind(const std::string& name) {
    if (const auto kind = path_from_string(name)) return *kind;
    throw Error(ErrorCode::invalid_argument, "choose path", "there is no path named '" + name + "'",
                "use one of " + known_path_names());
}

}  // namespace penstock::python
