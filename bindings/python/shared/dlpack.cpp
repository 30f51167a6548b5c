// See dlpack.hpp. Imports tensors of other libraries.
#include "python/shared/dlpack.hpp"

#include <limits>
#include <utility>

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

constexpr std::uintptr_t kDefaultStream = 1;  // the protocol's number for CUDA's legacy default stream
constexpr std::int64_t kUnordered = -1;       // the consumer orders its work itself
constexpr std::uint32_t kMajor = 1;           // major version of DLPack that this code knows

[[noreturn]] void refuse_tensor(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "use memory", cause, advice);
}

bool is_gpu(std::int32_t type) {
    return type == static_cast<std::int32_t>(DlDeviceType::cuda) ||
           type == static_cast<std::int32_t>(DlDeviceType::cuda_managed);
}

bool is_host(std::int32_t type) {
    return type == static_cast<std::int32_t>(DlDeviceType::cpu) ||
           type == static_cast<std::int32_t>(DlDeviceType::cuda_host);
}

// Producers older than versions do not accept max_version.
nb::object ask_for_capsule(nb::handle object, nb::kwargs keywords) {
    const nb::object method = object.attr("__dlpack__");
    keywords["max_version"] = nb::make_tuple(kMajor, 1);
    try {
        return method(**keywords);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_TypeError)) throw;
    }
    PyObject_DelItemString(keywords.ptr(), "max_version");
    return method(**keywords);
}

// By the buffer protocol, which has no bfloat16 for example: an object may have that and refuse.
bool exports_bytes(nb::handle object) {
    if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
    Py_buffer view;
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        return false;
    }
    PyBuffer_Release(&view);
    return true;
}

}  // namespace

DLPackMemory::DLPackMemory(nb::handle object, nb::handle stream) {
    if (!nb::hasattr(object, "__dlpack__") || !nb::hasattr(object, "__dlpack_device__")) {
        refuse_tensor(std::string("a ") + Py_TYPE(object.ptr())->tp_name + " has no __dlpack__",
               "pass a tensor of a library that speaks DLPack");
    }
    const nb::tuple place = nb::borrow<nb::tuple>(object.attr("__dlpack_device__")());
    nb::kwargs keywords = nb::steal<nb::kwargs>(PyDict_New());
    if (is_gpu(nb::cast<std::int32_t>(nb::int_(place[0])))) {
        const std::int64_t number = stream.is_none() ? std::int64_t{kDefaultStream} : nb::cast<std::int64_t>(stream);
        keywords["stream"] = number;
        if (number != kUnordered) pending_ = static_cast<std::uintptr_t>(number);
    }
    take(ask_for_capsule(object, keywords));
}

void DLPackMemory::take(nb::handle capsule) {
    if (PyCapsule_IsValid(capsule.ptr(), kDlVersionedName) != 0) {
        auto* managed = static_cast<DlManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kDlVersionedName));
        if (managed->version.major != kMajor) {
            refuse_tensor("DLPack version " + std::to_string(managed->version.major) + " is not known here",
                   "use a library that speaks DLPack version 1");
        }
        PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
        versioned_ = managed;
    } else if (PyCapsule_IsValid(capsule.ptr(), kDlName) != 0) {
        plain_ = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.ptr(), kDlName));
        PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    } else {
        refuse_tensor("__dlpack__ gave no DLPack capsule, or one already used", "");
    }
}

DLPackMemory::~DLPackMemory() {
    if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
    if (plain_ != nullptr && plain_->deleter != nullptr) plain_->deleter(plain_);
}

const DlTensor& DLPackMemory::tensor() const noexcept {
    return versioned_ != nullptr ? versioned_->tensor : plain_->tensor;
}

bool DLPackMemory::read_only() const noexcept {
    return versioned_ != nullptr && (versioned_->flags & kDlReadOnly) != 0;
}

bool DLPackMemory::on_gpu() const noexcept { return is_gpu(tensor().device.type); }

std::uint64_t DLPackMemory::bytes() const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    std::uint64_t bits = std::uint64_t{tensor().type.bits} * tensor().type.lanes;
    bool overflow = false, empty = false;
    for (std::int32_t i = 0; i < tensor().dimensions; ++i) {
        empty |= tensor().shape[i] == 0;
        overflow |= tensor().shape[i] < 0 ||
                    __builtin_mul_overflow(bits, static_cast<std::uint64_t>(tensor().shape[i]), &bits) || bits > kMost;
    }
    if (empty) return 0;
    if (overflow) refuse_tensor("the extents of the tensor are no number of bytes", "");
    return (bits + 7) / 8;
}

bool DLPackMemory::contiguous() const noexcept {
    const DlTensor& known = tensor();
    if (known.strides == nullptr) return true;
    std::int64_t expected = 1;
    bool regular = true;
    for (std::int32_t i = known.dimensions; i-- > 0;) {
        if (known.shape[i] == 0) return true;
        if (known.shape[i] == 1) continue;
        regular = regular && known.strides[i] == expected;
        expected = static_cast<std::int64_t>(static_cast<std::uint64_t>(expected) *
                                             static_cast<std::uint64_t>(known.shape[i]));
    }
    return regular;
}

void DLPackMemory::settle(const Context& context) {
    if (!pending_) return;
    const std::uintptr_t stream = *pending_;
    {
        const GilReleased release;
        context.synchronize_stream(stream);
    }
    pending_.reset();
}

bool BorrowedMemory::from_dlpack(const Context& context, const Given& given, Use use) {
    const nb::handle object = given.object;
    if (nb::isinstance<DLPackMemory>(object)) {
        owner_ = nb::borrow(object);
    // Where the description names a stream, as those of CuPy and Numba do and that of PyTorch does not, it orders the
    // work.
    } else if (!given.stream.is_valid() && nb::hasattr(object, "__dlpack__") && !exports_bytes(object)) {
        owner_ = nb::cast(std::make_unique<DLPackMemory>(object, nb::none()));
    } else {
        return false;
    }
    auto& memory = nb::cast<DLPackMemory&>(owner_);
    if (use == Use::write_into && memory.read_only()) refuse_tensor("the tensor is read-only", "pass a writable one");
    if (!memory.contiguous()) refuse_tensor("the tensor is not contiguous", "pass a contiguous copy");
    const std::uint64_t bytes = memory.bytes();
    const bool on_host = is_host(memory.tensor().device.type);
    if (!on_host && !memory.on_gpu()) {
        refuse_tensor("the tensor lies on a device of DLPack type " + std::to_string(memory.tensor().device.type),
               "pass a tensor of the CPU or of an NVIDIA GPU");
    }
    if (on_host) {
        const PointerInfo info = context.device().pointer_info(memory.data());
        view_ = {memory.data(), bytes, info.known ? info.kind : MemoryKind::system};
    } else if (bytes == 0) {
        view_ = {memory.data(), 0, MemoryKind::device};
    } else {
        view_ = context.wrap(memory.data(), bytes, MemoryKind::device);
        memory.settle(context);
    }
    return true;
}

}  // namespace penstock::python
