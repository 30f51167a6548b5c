// Exports a part of a Buffer as a DLPack tensor of any type, shape and strides. Arrays with a dtype are made of it.
//
// The capsule keeps the buffer alive, and the buffer keeps the context alive. The caller waits for transfers into the
// buffer. All other work here waits for itself, so a consumer's stream has nothing to wait for.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <utility>

#include "core.hpp"
#include "python/shared/dlpack.hpp"

namespace penstock::python {
namespace {

constexpr std::uint64_t kMinorVersion = 1;  // the first version with the codes of float8

[[noreturn]] void refuse(const std::string& cause, const std::string& advice = {}) {
    throw Error(ErrorCode::invalid_argument, "export a tensor", cause, advice);
}

[[noreturn]] void refuse_export(const char* cause) {
    PyErr_SetString(PyExc_BufferError, cause);
    throw nb::python_error();
}

// The layout of the exported tensor.
struct TensorLayout {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;  // in items
    DlType type{};
    std::uint64_t item_bytes() const noexcept { return std::uint64_t{type.bits} * type.lanes / 8; }
};

std::vector<std::int64_t> c_order(const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::uint64_t next = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = static_cast<std::int64_t>(next);
        next *= static_cast<std::uint64_t>(std::max<std::int64_t>(shape[i], 1));
    }
    return strides;
}

TensorLayout tensor_layout_of(nb::handle shape, nb::handle strides, nb::handle dtype) {
    TensorLayout layout;
    layout.shape = nb::cast<std::vector<std::int64_t>>(shape);
    if (std::any_of(layout.shape.begin(), layout.shape.end(), [](std::int64_t extent) { return extent < 0; })) {
        refuse("a negative extent");
    }
    layout.strides =
        strides.is_none() ? c_order(layout.shape) : nb::cast<std::vector<std::int64_t>>(strides);
    if (layout.strides.size() != layout.shape.size()) {
        refuse(std::to_string(layout.strides.size()) + " strides for " + std::to_string(layout.shape.size()) +
               " extents");
    }
    const auto parts = nb::cast<std::vector<std::uint16_t>>(dtype);
    if (parts.size() != 3 || parts[0] > 255 || parts[1] > 255) refuse("a type that is no (code, bits, lanes)");
    layout.type = {static_cast<std::uint8_t>(parts[0]), static_cast<std::uint8_t>(parts[1]), parts[2]};
    if (layout.item_bytes() == 0 || std::uint64_t{parts[1]} * parts[2] % 8 != 0) {
        refuse("a type of " + std::to_string(parts[1]) + " bits and " + std::to_string(parts[2]) + " lanes",
               "items must be whole bytes");
    }
    return layout;
}

void check_inside(const TensorLayout& layout, std::uint64_t offset_bytes, std::uint64_t buffer_bytes) {
    std::vector<std::uint64_t> extents(layout.shape.begin(), layout.shape.end());
    std::vector<std::int64_t> strides;
    for (const std::int64_t stride : layout.strides) {
        std::int64_t bytes = 0;
        if (__builtin_mul_overflow(stride, static_cast<std::int64_t>(layout.item_bytes()), &bytes)) {
            refuse("a stride of " + std::to_string(stride) + " items");
        }
        strides.push_back(bytes);
    }
    const ByteSpan span = byte_span(layout.item_bytes(), extents, strides);
    const std::uint64_t before = 0 - static_cast<std::uint64_t>(span.low);
    if (before > offset_bytes || offset_bytes > buffer_bytes ||
        static_cast<std::uint64_t>(span.high) > buffer_bytes - offset_bytes) {
        refuse("items from byte " + std::to_string(offset_bytes) + " down by " + std::to_string(before) +
               " and up by " + std::to_string(span.high) + " leave the " + std::to_string(buffer_bytes) +
               " bytes of the buffer");
    }
}

// Copies the items in C order to a new buffer of the same kind of memory.
nb::object copied(const PythonBuffer& buffer, std::uint64_t offset_bytes, TensorLayout& layout) {
    Box item{.source = static_cast<std::byte*>(buffer.part.data) + offset_bytes, .item_bytes = layout.item_bytes()};
    const std::vector<std::int64_t> target = c_order(layout.shape);
    const auto size = static_cast<std::int64_t>(item.item_bytes);
    std::vector<BoxDimension> dimensions;
    std::uint64_t bytes = item.item_bytes;
    for (std::size_t i = 0; i < layout.shape.size(); ++i) {
        const auto extent = static_cast<std::uint64_t>(layout.shape[i]);
        dimensions.push_back({extent, target[i] * size, layout.strides[i] * size});
        if (__builtin_mul_overflow(bytes, extent, &bytes)) refuse("the extents are no number of bytes");
    }
    layout.strides = target;
    PythonBuffer copy = buffer;
    {
        const GilReleased release;
        const Context& context = *buffer.context;
        copy.owner = context.allocate(std::max<std::uint64_t>(bytes, 1), buffer.part.kind);
        copy.part = copy.owner.view();
        item.destination = copy.part.data;
        std::vector<Box> boxes;
        split_box(item, dimensions, [&](const Box& box) { boxes.push_back(box); });
        context.copy_boxes(boxes, buffer.part.kind);
    }
    return nb::cast(std::move(copy));
}

// A tensor with everything that it points to.
template <class Managed>
struct Held {
    Managed managed{};
    TensorLayout layout;
    PyObject* buffer = nullptr;  // a reference that this struct owns
};

template <class Managed>
void let_go(Managed* managed) {
    const std::unique_ptr<Held<Managed>> held(static_cast<Held<Managed>*>(managed->owner));
    if (Py_IsInitialized() == 0) return;
    const GilHeld gil;
    Py_DECREF(held->buffer);
}

template <class Managed>
constexpr const char* kNameOf = kDlName;
template <>
constexpr const char* kNameOf<DlManagedVersioned> = kDlVersionedName;

// Destroys a capsule that was not consumed.
template <class Managed>
void drop(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, kNameOf<Managed>) == 0) return;
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kNameOf<Managed>));
    managed->deleter(managed);
}

template <class Managed>
nb::object capsule_of(nb::handle buffer, std::uint64_t offset_bytes, TensorLayout layout, bool is_copy) {
    const auto [type, id] = nb::cast<std::pair<std::int32_t, std::int32_t>>(buffer.attr("__dlpack_device__")());
    auto held = std::make_unique<Held<Managed>>();
    held->layout = std::move(layout);
    held->managed.owner = held.get();
    held->managed.deleter = &let_go<Managed>;
    if constexpr (std::is_same_v<Managed, DlManagedVersioned>) {
        held->managed.version = {1, kMinorVersion};
        held->managed.flags = is_copy ? kDlCopied : 0;
    }
    held->managed.tensor = {static_cast<std::byte*>(nb::cast<const PythonBuffer&>(buffer).part.data) + offset_bytes,
                            {type, id},
                            static_cast<std::int32_t>(held->layout.shape.size()),
                            held->layout.type,
                            held->layout.shape.data(),
                            held->layout.strides.data(),
                            0};
    PyObject* capsule = PyCapsule_New(&held->managed, kNameOf<Managed>, &drop<Managed>);
    if (capsule == nullptr) throw nb::python_error();
    held->buffer = buffer.inc_ref().ptr();
    static_cast<void>(held.release());  // now owned by the capsule, and later by its consumer
    return nb::steal(capsule);
}

// Keywords of __dlpack__, as the array API names them.
struct Wishes {
    bool versioned = false;
    bool copy = false;
};

Wishes wishes_of(nb::handle buffer, const nb::kwargs& keywords) {
    Wishes wishes;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name != "stream" && name != "max_version" && name != "dl_device" && name != "copy") {
            throw nb::type_error(("__dlpack__ has no keyword '" + name + "'").c_str());
        }
        if (value.is_none() || name == "stream") continue;
        if (name == "max_version") {
            wishes.versioned = nb::cast<std::pair<std::int64_t, std::int64_t>>(value).first >= 1;
        } else if (name == "copy") {
            wishes.copy = nb::cast<bool>(value);
        } else {
            const nb::tuple here = nb::borrow<nb::tuple>(buffer.attr("__dlpack_device__")());
            const nb::tuple there = nb::borrow<nb::tuple>(value);
            if (nb::cast<int>(nb::int_(there[0])) != nb::cast<int>(here[0]) ||
                nb::cast<int>(there[1]) != nb::cast<int>(here[1])) {
                refuse_export("the memory lies on another device; copy it there first, as with Context.copy_to_host");
            }
        }
    }
    return wishes;
}

struct ExportArguments {
    nb::handle buffer;
    std::uint64_t offset_bytes;
    TensorLayout layout;
};

nb::object export_tensor(ExportArguments given, const nb::kwargs& keywords) {
    const auto& buffer = nb::cast<const PythonBuffer&>(given.buffer);
    check_inside(given.layout, given.offset_bytes, buffer.part.bytes);
    const Wishes wishes = wishes_of(given.buffer, keywords);
    nb::object owner = nb::borrow(given.buffer);
    if (wishes.copy) {
        owner = copied(buffer, given.offset_bytes, given.layout);
        given.offset_bytes = 0;
    }
    return wishes.versioned
               ? capsule_of<DlManagedVersioned>(owner, given.offset_bytes, std::move(given.layout), wishes.copy)
               : capsule_of<DlManaged>(owner, given.offset_bytes, std::move(given.layout), wishes.copy);
}

}  // namespace

void bind_dlpack_export(nb::module_& module) {
    using nb::arg;
    module.def(
        "export_dlpack",
        [](nb::handle buffer, nb::handle offset_bytes, nb::handle shape, nb::handle strides, nb::handle dtype,
           const nb::kwargs& keywords) {
            if (!nb::isinstance<PythonBuffer>(buffer)) throw nb::type_error("export_dlpack exports a penstock Buffer");
            return export_tensor({buffer, option<std::uint64_t>("offset_bytes", offset_bytes),
                                  tensor_layout_of(shape, strides, dtype)},
                                 keywords);
        },
        arg("buffer"), arg("offset_bytes"), arg("shape"), arg("strides").none(), arg("dtype"), arg("keywords"));
}

}  // namespace penstock::python
