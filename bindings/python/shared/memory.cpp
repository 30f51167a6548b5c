// Memory named by Python objects, as a MemoryView that stays valid while BorrowedMemory lives.
//
// The order of the checks matters. A penstock Buffer is known exactly, __cuda_array_interface__ means device memory,
// and the buffer protocol means host memory. If a library has work under way on its GPU memory, Penstock waits for
// that: the array names the stream, or DLPack orders the work. Only contiguous arrays are accepted, because a strided
// view would need a hidden copy.
#include <string_view>
#include <utility>

#include "python/shared/binding.hpp"

namespace penstock::python {
namespace {

[[noreturn]] void refuse_memory(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "use memory", cause, advice);
}

// The elements are addresses in this process. A read into them would put addresses from a file there.
void refuse_objects(nb::handle object) {
    bool found = false;
    if (PyMemoryView_Check(object.ptr())) {
        const char* format = PyMemoryView_GET_BUFFER(object.ptr())->format;
        found = format != nullptr && std::string_view(format).find('O') != std::string_view::npos;
    } else if (const nb::object type = nb::getattr(object, "dtype", nb::none()); nb::hasattr(type, "hasobject")) {
        found = nb::cast<bool>(type.attr("hasobject"));
    }
    if (found) refuse_memory("its elements are Python objects, which are no bytes of a file", "make numbers of them");
}

// Says why an object does not lend its memory, in Penstock's words: each library has its own. The object is asked again
// for whatever it has. Requires: Python has an exception of the first refusal.
[[noreturn]] void refuse_export(nb::handle object, BorrowedMemory::Use use) {
    const nb::python_error first;
    Py_buffer whatever{};
    if (PyObject_GetBuffer(object.ptr(), &whatever, PyBUF_FULL_RO) != 0) {
        PyErr_Clear();
        throw first;
    }
    const bool is_read_only = whatever.readonly != 0, is_contiguous = PyBuffer_IsContiguous(&whatever, 'C') != 0;
    PyBuffer_Release(&whatever);
    if (use == BorrowedMemory::Use::write_into && is_read_only) {
        refuse_memory("it is read-only", "pass memory that can be written, such as a bytearray");
    }
    if (!is_contiguous) refuse_memory("it is not contiguous", "pass numpy.ascontiguousarray(x)");
    throw first;
}

std::uint64_t item_bytes(nb::handle type_string) {
    std::uint64_t bytes = 0;
    const char* const letters = nb::cast<const char*>(type_string);
    for (const char* at = letters; *at != 0; ++at) {
        if (at - letters < 2) continue;  // byte order and kind
        if (*at < '0' || *at > '9') {
            refuse_memory("array item type '" + std::string(letters) + "' is not understood", "pass a view of bytes");
        }
        bytes = bytes * 10 + static_cast<std::uint64_t>(*at - '0');
    }
    return bytes;
}

// `strides`: nothing or None where elements lie side by side.
std::uint64_t array_bytes(std::uint64_t item, nb::handle shape, nb::handle strides) {
    const nb::tuple extents = nb::borrow<nb::tuple>(shape);
    std::uint64_t bytes = item;
    for (const nb::handle extent : extents) bytes *= nb::cast<std::uint64_t>(extent);
    if (!strides.is_valid() || strides.is_none()) return bytes;
    std::uint64_t expected = item;
    for (std::size_t i = extents.size(); i-- > 0;) {
        if (nb::cast<std::int64_t>(strides[i]) != static_cast<std::int64_t>(expected)) {
            refuse_memory("the device array is not contiguous", "pass a contiguous copy");
        }
        expected *= nb::cast<std::uint64_t>(extents[i]);
    }
    return bytes;
}

// Its memory is the host's. To ask it for the interfaces of device memory takes longer than to read it.
bool is_numpy_array(nb::handle object) { return std::string_view(Py_TYPE(object.ptr())->tp_name) == "numpy.ndarray"; }

}  // namespace

void need_own_process(const Context& context) {
    std::byte here{};
    // the cheapest call that checks the process
    static_cast<void>(context.wrap(&here, sizeof(here), MemoryKind::system));
}

void need_known(const Context& context, const MemoryView& view) {
    if (view.bytes == 0) return;
    need_own_process(context);
    const PointerInfo info = context.device().pointer_info(view.data);
    if (info.known && (info.kind != MemoryKind::device || info.device_index == context.device().info().index)) return;
    ErrorInfo refusal;
    refusal.code = ErrorCode::invalid_argument;
    refusal.operation = "use memory";
    refusal.length_bytes = view.bytes;
    refusal.cause = "the buffer belongs to another context, whose memory this one's device does not know";
    refusal.advice = "use the context that allocated it, or allocate one here";
    throw Error(std::move(refusal));
}

BorrowedMemory::BorrowedMemory(const Context& context, nb::handle object, Loan loan) {
    if (nb::isinstance<PythonBuffer>(object)) {
        const auto& buffer = nb::cast<const PythonBuffer&>(object);
        const bool host = buffer.part.kind == MemoryKind::pinned || buffer.part.kind == MemoryKind::system;
        if (!host && &buffer.context->device() != &context.device()) need_known(context, buffer.part);
        view_ = buffer.part;
        owner_ = nb::borrow(object);
        foreign_ = false;
        return;
    }
    in_python([&] {  // the array's library may run Python code
        if (is_numpy_array(object)) return from_buffer_protocol(object, loan.use);
        // Asked for once: an array of CuPy makes its description anew each time, in as long as a small read takes.
        if (!loan.description.is_valid()) {
            loan.description = nb::getattr(object, "__cuda_array_interface__", nb::none());
        }
        const Given given = given_of(object, std::move(loan.description));
        if (from_dlpack(context, given, loan.use) || from_cuda_array(context, given, loan)) return;
        from_buffer_protocol(object, loan.use);
    });
}

BorrowedMemory::~BorrowedMemory() {
    if (exported_) PyBuffer_Release(&*exported_);
}

// One pass over it takes a third of the time of a look-up for each name.
BorrowedMemory::Given BorrowedMemory::given_of(nb::handle object, nb::object description) {
    Given given{object, {}, {}, {}, {}, {}};
    if (description.is_none()) return given;
    given.description = std::move(description);
    if (!PyDict_Check(given.description.ptr())) {
        const nb::dict copy;
        if (PyDict_Update(copy.ptr(), given.description.ptr()) != 0) throw nb::python_error();
        given.description = copy;
    }
    const std::pair<std::string_view, nb::object*> wanted[] = {{"data", &given.data},
                                                               {"typestr", &given.typestr},
                                                               {"shape", &given.shape},
                                                               {"strides", &given.strides},
                                                               {"stream", &given.stream}};
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(given.description.ptr(), &at, &key, &value) != 0;) {
        Py_ssize_t bytes = 0;
        const char* const letters = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &bytes) : "";
        if (letters == nullptr) throw nb::python_error();
        const std::string_view name(letters, static_cast<std::size_t>(bytes));
        for (const auto& [one, place] : wanted) {
            if (one == name) *place = nb::borrow(value);
        }
    }
    return given;
}

bool BorrowedMemory::from_cuda_array(const Context& context, const Given& given, const Loan& loan) {
    if (!given.description.is_valid()) return false;
    if (!given.data.is_valid() || !given.typestr.is_valid() || !given.shape.is_valid()) {
        refuse_memory("its description says no data, typestr or shape", "pass an array of a GPU");
    }
    const nb::tuple data = nb::borrow<nb::tuple>(given.data);
    if (loan.use == Use::write_into && nb::cast<bool>(data[1]))
        refuse_memory("the device array is read-only", "pass a writable one");
    const std::uint64_t bytes = array_bytes(item_bytes(given.typestr), given.shape, given.strides);
    auto* pointer = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0]));
    view_ = bytes == 0 ? MemoryView{pointer, 0, MemoryKind::device} : context.wrap(pointer, bytes, MemoryKind::device);
    owner_ = nb::borrow(given.object);
    // Work that the array's library has begun on this memory comes first. None means that there is nothing to wait for.
    const nb::handle stream = given.stream;
    if (bytes != 0 && stream.is_valid() && !stream.is_none()) {
        const auto number = nb::cast<std::uintptr_t>(stream);
        if (!loan.waits) {
            after_ = number;
            return true;
        }
        const GilReleased release;
        context.synchronize_stream(number);
    }
    return true;
}

void BorrowedMemory::from_buffer_protocol(nb::handle object, Use use) {
    if (!PyObject_CheckBuffer(object.ptr())) {
        refuse_memory(std::string("a ") + Py_TYPE(object.ptr())->tp_name + " is not memory",
               "pass a penstock Buffer, an array with __cuda_array_interface__, or an object with the buffer protocol");
    }
    refuse_objects(object);
    Py_buffer exported{};
    const int flags = use == Use::write_into ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(object.ptr(), &exported, flags) != 0) refuse_export(object, use);
    exported_ = exported;
    view_ = MemoryView{exported.buf, static_cast<std::uint64_t>(exported.len), MemoryKind::system};
}

}  // namespace penstock::python
