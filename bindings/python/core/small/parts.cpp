// read_parts: ranges of one file that hold whole datasets, as Arrays that share a buffer. A small model is loaded so.
//
// It answers None where a transfer must be made, as all small reads do, and then nothing has happened that counts.
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "context/crew.hpp"
#include "context/state.hpp"
#include "context/transfer/small/named_file.hpp"
#include "data/rows/run_reads.hpp"
#include "python/core/array.hpp"
#include "python/core/small/tally.hpp"
#include "python/core/small/watched.hpp"

namespace penstock::python {
namespace {

struct Parts {
    std::vector<data::FileRun> runs;
    std::uint64_t bytes = 0;         // of the buffer
    std::uint64_t wanted_bytes = 0;  // of all parts
};

Parts parts_in(const nb::list& told) {
    Parts parts;
    for (const nb::handle one : told) {
        const auto part = nb::cast<nb::tuple>(one);
        const data::FileRun run{nb::cast<std::uint64_t>(part[0]), nb::cast<std::uint64_t>(part[1]),
                                nb::cast<std::uint64_t>(part[2])};
        parts.bytes = std::max(parts.bytes, run.memory_offset + run.bytes);
        parts.wanted_bytes += run.bytes;
        if (run.bytes != 0) parts.runs.push_back(run);
    }
    return parts;
}

bool read(const Context& context, const Watched& watched, const Parts& parts,
          std::pair<PythonBuffer*, data::RunsMoved*> made) {
    try {
        const auto file = context::NamedFile::open(context, watched.name);
        if (!file || !watched.is(file->status())) return false;
        made.first->owner = context.allocate(std::max<std::uint64_t>(1, parts.bytes));
        made.first->part = made.first->owner.view();
        const MemoryView memory{made.first->part.data, made.first->part.bytes, MemoryKind::system};
        const auto read = [&](const MemoryView& part, std::span<const Range> ranges) {
            return file->read_many(part, ranges);
        };
        const auto cached = [&](const MemoryView& part, std::span<const Range> ranges) {
            return file->read_many(part, ranges, true);
        };
        os::Crew& crew = context::crew_of(context);
        return data::read_box({read, cached}, parts.runs, {memory, *made.second, 0, &crew});
    } catch (const Error&) {
        return false;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// The array of one part: (offset in the file, in the buffer, bytes, type, its bytes, shape).
nb::object array_of(nb::handle array_class, const nb::object& buffer, const nb::tuple& part) {
    const auto shape = nb::cast<nb::tuple>(part[5]);
    auto stride = nb::cast<std::int64_t>(part[4]);
    nb::tuple strides = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        PyTuple_SET_ITEM(strides.ptr(), static_cast<Py_ssize_t>(axis), PyLong_FromLongLong(stride));
        stride *= nb::cast<std::int64_t>(shape[axis]);
    }
    const nb::object dtype = part[3];
    return make_array(array_class, {buffer, dtype, shape, strides, nb::cast<std::uint64_t>(part[1])});
}

nb::object read_parts(const Context& context, const std::shared_ptr<SmallTally>& tally, const nb::tuple& watched,
                      const nb::tuple& wanted) {
    const auto& state = context::ContextState::of(context);
    if (!tally->open || !state.emulated) return nb::none();
    const auto told = nb::cast<nb::list>(wanted[1]);
    const Parts parts = parts_in(told);
    const Watched file = watched_of(watched);
    PythonBuffer buffer;
    buffer.context = context;
    buffer.emulated = state.emulated;
    buffer.device_index = state.device_index;
    data::RunsMoved done;
    {
        const GilReleased release;
        if (!read(context, file, parts, {&buffer, &done})) return nb::none();
    }
    done.requested_bytes = parts.wanted_bytes;
    tally->add(done);
    const nb::object shared = nb::cast(std::move(buffer));
    nb::list arrays;
    for (const nb::handle one : told) arrays.append(array_of(wanted[0], shared, nb::cast<nb::tuple>(one)));
    return arrays;
}

}  // namespace

void bind_parts(nb::module_& module) {
    module.def("read_parts", &read_parts, nb::arg("context"), nb::arg("tally"), nb::arg("watched"), nb::arg("wanted"));
}

}  // namespace penstock::python
