// Small reads of plain files, without a transfer: load_small, of all bytes into new memory, and read_small, of some
// into memory of the caller. Both answer None where a transfer must be made, which tells the error. Whether a file is
// plain load_small is told by marks, so that one call opens it, looks and reads.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "context/crew.hpp"
#include "python/core/small/rows.hpp"

namespace penstock::python {
namespace {

constexpr std::uint64_t kMostMark = 16, kKnownBytes = 8 * kKiB + kMostMark;

// Text of at most kMostMark bytes, and the places, ascending, where it may stand.
using Marks = std::vector<std::pair<std::string, std::vector<std::uint64_t>>>;

// Whether a mark stands in the file, or none of the bytes there can be had by a small read.
bool may_have(const File& file, const Marks& marks) {
    const std::uint64_t size = file.size_bytes();
    std::array<char, kKnownBytes> first;
    const auto read = [&](std::span<char> into, std::uint64_t offset) {
        return file.try_small_read({into.data(), into.size(), MemoryKind::system}, offset).has_value();
    };
    const std::span<char> known = std::span(first).first(std::min(size, kKnownBytes));
    if (!known.empty() && !read(known, 0)) return true;
    for (const auto& [text, places] : marks) {
        for (const std::uint64_t place : places) {
            if (place >= size || size - place < text.size()) break;
            std::array<char, kMostMark> there;
            if (place + text.size() <= known.size()) {
                std::copy_n(known.begin() + static_cast<std::ptrdiff_t>(place), text.size(), there.begin());
            } else if (!read(std::span(there).first(text.size()), place)) {
                return true;
            }
            if (std::string_view(there.data(), text.size()) == text) return true;
        }
    }
    return false;
}

// False: a transfer has to say why it cannot be read, or to read it; or the file may have one of the marks.
bool load(const Context& context, const std::string& name, const Marks& marks, PythonBuffer& buffer) {
    const File file = context.open(name);
    const std::uint64_t bytes = file.size_bytes();
    if (bytes == 0 || bytes > data::kMostCached || (!marks.empty() && may_have(file, marks))) return false;
    buffer.owner = context.allocate(bytes);
    buffer.part = buffer.owner.view();
    const data::FileRun whole{0, 0, bytes};
    data::RunsMoved done;
    os::Crew& crew = context::crew_of(context);
    return data::read_box(file, {&whole, 1}, {{buffer.part.data, bytes, MemoryKind::system}, done, 0, &crew});
}

Marks marks_of(nb::handle listed) {
    Marks marks;
    for (const nb::handle one : nb::cast<nb::sequence>(listed)) {
        const auto text = nb::cast<nb::bytes>(one[0]);
        if (text.size() > kMostMark) throw nb::value_error("a mark has at most 16 bytes");
        marks.emplace_back(std::string(text.c_str(), text.size()), nb::cast<std::vector<std::uint64_t>>(one[1]));
    }
    return marks;
}

// None: as load(). `listed`: marks, as (text, places). Only the emulated device has memory that the host reaches.
nb::object load_small(const Context& context, nb::handle path, nb::handle listed) {
    const DeviceInfo info = context.device().info();
    if (!info.emulated) return nb::none();
    const std::string name = file_name(path, "open");
    PythonBuffer buffer;
    buffer.context = context;
    buffer.emulated = info.emulated;
    buffer.device_index = info.index;
    const Marks marks = marks_of(listed);
    bool loaded = false;
    {
        const GilReleased release;
        try {
            loaded = load(context, name, marks, buffer);
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
    module.def("load_small", &load_small, nb::arg("context"), nb::arg("name").none(),
               nb::arg("marks") = nb::make_tuple());
    module.def("write_small", &write_small, nb::arg("file"), nb::arg("memory").none(), nb::arg("offset_bytes").none());
    module.def("read_small", &read_small, nb::arg("file"), nb::arg("memory").none(), nb::arg("offset_bytes").none());
}

}  // namespace penstock::python
