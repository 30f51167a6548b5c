// Whole numbers from Python. A wrong one is refused in one line: a caller who wrote `offset_bytes=-1` must read what is
// wrong with it, and not the overloads of a compiled function.
#include "python/shared/binding.hpp"

namespace penstock::python {
namespace {

constexpr std::size_t kDigitsShown = 40;

// Writes "2^63-1" in place of twenty digits.
std::string limit_text(std::uint64_t most) {
    if (most <= kMiB || (most & (most + 1)) != 0) return std::to_string(most);
    int bits = 0;
    for (std::uint64_t left = most; left != 0; left >>= 1) ++bits;
    return "2^" + std::to_string(bits) + "-1";
}

// Python refuses to print integers with thousands of digits.
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
    if (PyBool_Check(value.ptr())) refuse_type(name, value, "a whole number");  // Python accepts True as 1
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
