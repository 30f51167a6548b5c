// Small reads of plain files, without a transfer: load_small, of all bytes into new memory, and read_small, of some
// into memory of the caller. Both answer None where a transfer must be made, which tells the error.
#include "python/core/small/rows.hpp"

namespace penstock::python {
namespace {

// False: a transfer has to say why it cannot be read, or to read it.
bool load(const Context& context, const std::string& name, PythonBuffer& buffer) {
    const File file = context.open(name);
    const std::uint64_t bytes = file.size_bytes();
    if (bytes == 0 || bytes > data::kMostCached) return false;
    buffer.owner = context.allocate(bytes);
    buffer.part = buffer.owner.view();
    const data::FileRun whole{0, 0, bytes};
    data::RunsMoved done;
    return data::read_box(file, {&whole, 1}, {{buffer.part.data, bytes, MemoryKind::system}, done});
}

// None: as load(). Only the emulated device has memory that the host reaches.
nb::object load_small(const Context& context, nb::handle path) {
    const DeviceInfo info = context.device().info();
    if (!info.emulated) return nb::none();
    const std::string name = file_name(path, "open");
    PythonBuffer buffer;
    buffer.context = context;
    buffer.emulated = info.emulated;
    buffer.device_index = info.index;
    bool loaded = false;
    {
        const GilReleased release;
        try {
            loaded = load(context, name, buffer);
        } catch (const Error&) {
            loaded = false;
        }
    }
    return loaded ? nb::cast(std::move(buffer)) : nb::none();
}

nb::object read_small(PythonFile& self, nb::handle memory, nb::handle offset_bytes) {
    std::optional<SmallRead> done;
    try {
        const std::uint64_t offset = byte_count("offset_bytes", offset_bytes);
        const BorrowedMemory borrowed(self.context, memory, {BorrowedMemory::Use::write_into, false});
        const GilReleased release;
        done = self.file.try_small_read(borrowed.view(), offset, borrowed.after());
    } catch (const Error&) {
        return nb::none();
    }
    return done ? nb::cast(std::move(*done)) : nb::none();
}

nb::object write_small(PythonFile& self, nb::handle memory, nb::handle offset_bytes) {
    std::optional<SmallWrite> done;
    try {
        const std::uint64_t offset = byte_count("offset_bytes", offset_bytes);
        const BorrowedMemory borrowed(self.context, memory, BorrowedMemory::Use::read_from);
        const GilReleased release;
        done = self.file.try_small_write(borrowed.view(), offset);
    } catch (const Error&) {
        return nb::none();
    }
    return done ? nb::cast(std::move(*done)) : nb::none();
}

}  // namespace

void bind_small_load(nb::module_& module) {
    module.def("load_small", &load_small, nb::arg("context"), nb::arg("name").none());
    module.def("write_small", &write_small, nb::arg("file"), nb::arg("memory").none(), nb::arg("offset_bytes").none());
    module.def("read_small", &read_small, nb::arg("file"), nb::arg("memory").none(), nb::arg("offset_bytes").none());
}

}  // namespace penstock::python
