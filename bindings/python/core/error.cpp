// Converts penstock::Error to penstock.Error with the same attributes, so that Python code can use code and range and
// need not parse text.
#include <cxxabi.h>

#include <string_view>
#include <utility>

#include "core.hpp"

namespace penstock::python {

namespace {

// A name in the advice of the C++ API, and its name in Python.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"open it for writing (OpenMode::read_write)", "open it with mode=\"r+\""},
    {"OpenMode::read_write", "write=True"},
    {"Context::allocate or wrap", "Context.allocate"},
};

ErrorInfo in_words_of_python(ErrorInfo info) {
    for (const auto& [theirs, ours] : kWords) {
        const auto at = info.advice.find(theirs);
        if (at != std::string::npos) info.advice.replace(at, theirs.size(), ours);
    }
    return info;
}

}  // namespace

nb::dict error_to_dict(const ErrorInfo& given) {
    const ErrorInfo info = in_words_of_python(given);
    nb::dict fields;
    fields["code"] = to_string(info.code);
    fields["operation"] = info.operation;
    fields["file"] = text(info.file);
    fields["offset_bytes"] = info.offset_bytes;
    fields["length_bytes"] = info.length_bytes;
    fields["cause"] = text(info.cause);
    fields["advice"] = info.advice;
    fields["system_code"] = info.system_code;
    return fields;
}

namespace {

// Makes the exception, in code of Python. The interpreter may end there, which unwinds this thread (see gil.hpp). While
// a thread handles an exception of C++, its runtime library ends the process sooner than let it catch the unwinding: it
// is shown none for so long. And no frame between here and Python has an object to destroy, which would take the GIL.
PyObject* call_by_handler(nb::handle type, const nb::tuple& arguments, const nb::dict& fields) {
    void*& handled = *reinterpret_cast<void**>(abi::__cxa_get_globals());  // caughtExceptions, of the Itanium ABI
    void* const shown = std::exchange(handled, nullptr);
    PyObject* const made = in_python([&] { return PyObject_Call(type.ptr(), arguments.ptr(), fields.ptr()); });
    handled = shown;
    return made;
}

void raise_error(nb::handle type, const ErrorInfo& info) {
    try {
        const nb::tuple arguments = nb::make_tuple(text(in_words_of_python(info).message()));
        const nb::dict fields = error_to_dict(info);
        PyObject* const made = call_by_handler(type, arguments, fields);
        if (made == nullptr) return;  // Python's own error is set
        PyErr_SetObject(type.ptr(), nb::steal(made).ptr());
    } catch (nb::python_error& failure) {
        failure.restore();
    }
}

void translate(const std::exception_ptr& exception, void* type) {
    try {
        std::rethrow_exception(exception);
    } catch (const Error& error) {
        raise_error(static_cast<PyObject*>(type), error.info());
    }
}

}  // namespace

// The type is never released: arrays may be destroyed at the interpreter's end, when no module can be imported.
void bind_errors(nb::module_&) {
    nb::object type = nb::module_::import_("penstock._error").attr("Error");
    nb::register_exception_translator(&translate, type.release().ptr());
}

}  // namespace penstock::python
