// Whole numbers from Python, refused in one line: the caller wrote `offset_bytes=-1` and must read what is wrong with
// it, not which overloads of a compiled function there are.
#include "binding.hpp"

namespace penstock::python {
namespace {

constexpr std::size_t kDigitsShown = 40;

// "2^63-1" for what would be twenty digits.
std::string limit_text(std::uint64_t most) {
    if (most <= kMiB || (most & (most + 1)) != 0) return std::to_string(most);
    int bits = 0;
    for (std::uint64_t left = most; left != 0; left >>= 1) ++bits;
    return "2^" + std::to_string(bits) + "-1";
}

// Python refuses to write integers of thousands of digits.
std::string number_text(const nb::object& number) {
    PyObject* text = PyObject_Str(number.ptr());
    if (text == nullptr) PyErr_Clear();
    std::string digits = text == nullptr ? std::string() : nb::cast<std::string>(nb::steal<nb::str>(text));
    return digits.empty() || digits.size() > kDigitsShown ? "a number of many digits" : digits;
}

}  // namespace

void refuse_type(const std::string& name, nb::handle value, const char* wanted) {
    throw nb::type_error((name + " must be " + wanted + ", not " + Py_TYPE(value.ptr())->tp_name).c_str());
}

std::uint64_t whole_number(const std::string& name, nb::handle value, std::uint64_t most) {
    if (PyBool_Check(value.ptr())) refuse_type(name, value, "a whole number");  // Python takes True for 1
    PyObject* index = PyNumber_Index(value.ptr());
    if (index == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
        PyErr_Clear();
        refuse_type(name, value, "a whole number");
    }
    const auto number = nb::steal<nb::object>(index);
    const std::uint64_t found = PyLong_AsUnsignedLongLong(index);
    const bool overflowed = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    if (!overflowed && found <= most) return found;
    throw nb::value_error((name + " is " + number_text(number) + "; it must be from 0 to " + limit_text(most)).c_str());
}

}  // namespace penstock::python
