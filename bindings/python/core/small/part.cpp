// read_part: one range of a file that holds a part of a dataset, as an Array: a chunk of Zarr is a file.
//
// It answers None where a transfer must be made, as all small reads do, and then nothing has happened that counts.
#include <nanobind/stl/shared_ptr.h>

#include <new>

#include "context/state.hpp"
#include "context/transfer/small/named_file.hpp"
#include "python/core/array.hpp"
#include "python/core/small/tally.hpp"

namespace penstock::python {
namespace {

struct Part {
    std::string file;
    std::uint64_t file_bytes = 0;  // which the file must have
    std::uint64_t offset = 0, bytes = 0;
};

std::optional<SmallRead> read(const Context& context, const Part& part, PythonBuffer& buffer) {
    try {
        const auto file = context::NamedFile::open(context, part.file);
        if (!file || static_cast<std::uint64_t>(file->status().st_size) != part.file_bytes) return std::nullopt;
        buffer.owner = context.allocate(part.bytes);
        buffer.part = buffer.owner.view();
        MemoryView memory = buffer.part;
        if (buffer.emulated) memory.kind = MemoryKind::system;  // the host reaches it
        return file->read(memory, part.offset);
    } catch (const Error&) {
        return std::nullopt;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

// `place`: file, its bytes, offset and bytes of the part. `kind`: class, type, shape and strides of the Array.
nb::object read_part(const Context& context, const std::shared_ptr<SmallTally>& tally, const nb::tuple& place,
                     const nb::tuple& kind) {
    if (!tally->open) return nb::none();
    const Part part{python::file_name(place[0], "open"), nb::cast<std::uint64_t>(place[1]),
                    nb::cast<std::uint64_t>(place[2]), nb::cast<std::uint64_t>(place[3])};
    PythonBuffer buffer;
    buffer.context = context;
    buffer.emulated = context::ContextState::of(context).machine().emulated_device;
    buffer.device_index = context::ContextState::of(context).device_index;
    std::optional<SmallRead> done;
    {
        const GilReleased release;
        done = read(context, part, buffer);
    }
    if (!done) return nb::none();
    tally->add(*done);
    ++tally->reads;
    tally->requested_bytes += part.bytes;
    const nb::object dtype = kind[1];
    return make_array(kind[0], {nb::cast(std::move(buffer)), dtype, kind[2], kind[3]});
}

}  // namespace

void bind_part(nb::module_& module) {
    module.def("read_part", &read_part, nb::arg("context"), nb::arg("tally"), nb::arg("place"), nb::arg("kind"));
}

}  // namespace penstock::python
