// Small reads in Python: File.read_small, and SmallReader, which reads small boxes of one dataset.
//
// Both answer None where a transfer must be made, and then nothing has happened that counts. Whoever asked starts that
// transfer, which finds another way or tells the error. So no error is told twice here, and none is lost.
#include <nanobind/stl/shared_ptr.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "core.hpp"
#include "data/layout/layout.hpp"
#include "int_table.hpp"
#include "penstock/box.hpp"

namespace penstock::python {
namespace {

using data::ElementBox;
using data::FileRun;
using data::kMostDimensions;
using data::Layout;

nb::object read_small(PythonFile& self, nb::handle memory, nb::handle offset_bytes) {
    std::optional<SmallRead> done;
    try {
        const std::uint64_t offset = byte_count("offset_bytes", offset_bytes);
        const BorrowedMemory borrowed(self.context, memory, BorrowedMemory::Use::write_into);
        const GilReleased release;
        done = self.file.try_small_read(borrowed.view(), offset);
    } catch (const Error&) {
        return nb::none();
    }
    return done ? nb::cast(std::move(*done)) : nb::none();
}

// Sums over the small reads of one open file. Requires: the GIL, for all of it.
struct SmallTally {
    static constexpr std::size_t kMostSizes = 64;
    bool open = true;  // false: readers of this file answer None
    std::uint64_t reads = 0, operations = 0, bytes = 0;
    std::uint64_t kept_reads = 0, kept_bytes = 0;  // of chunks that an earlier read had decoded
    double seconds = 0;
    std::map<std::uint64_t, SmallRead> by_bytes;  // one read of each size, of the first sizes

    void add(const SmallRead& done) {
        ++operations;
        bytes += done.memory.bytes;
        seconds += done.seconds;
        if (by_bytes.size() < kMostSizes) by_bytes.try_emplace(done.memory.bytes, done);
    }
};

// What must be true of a file's name for what its format said to hold. Absent: may change.
struct Watched {
    std::string name;
    dev_t device = 0;
    ino_t inode = 0;
    std::optional<std::uint64_t> bytes;
    std::optional<std::int64_t> modified_ns, changed_ns;

    bool holds() const noexcept {
        struct stat found {};
        if (::stat(name.c_str(), &found) != 0 || found.st_dev != device || found.st_ino != inode) return false;
        if (bytes && static_cast<std::uint64_t>(found.st_size) != *bytes) return false;
        return (!modified_ns || nanoseconds(found.st_mtim) == *modified_ns) &&
               (!changed_ns || nanoseconds(found.st_ctim) == *changed_ns);
    }
    static std::int64_t nanoseconds(const timespec& time) noexcept {
        return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    }
};

// A box as an index names it, and the shape that NumPy gives it.
struct Asked {
    ElementBox box;
    std::array<bool, kMostDimensions> dropped{};
    std::uint64_t elements = 1;
};

// Sets one dimension. False: a step, no elements, or an index that is wrong.
bool ask_one(PyObject* part, std::int64_t extent, std::size_t axis, Asked& asked) {
    Py_ssize_t start = 0, count = 1;
    if (PySlice_Check(part)) {
        Py_ssize_t stop = 0, step = 0;
        if (PySlice_Unpack(part, &start, &stop, &step) != 0) throw nb::python_error();
        if (step != 1) return false;
        count = PySlice_AdjustIndices(extent, &start, &stop, step);
    } else if (PyIndex_Check(part) != 0 && !PyBool_Check(part)) {  // arrays of one number, too; others refuse
        start = PyNumber_AsSsize_t(part, PyExc_IndexError);
        if (start == -1 && PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            return false;
        }
        if (start < 0) start += extent;
        if (start < 0 || start >= extent) return false;
        asked.dropped[axis] = true;
    } else {
        return false;
    }
    asked.box.start[axis] = start;
    asked.box.count[axis] = count;
    asked.elements *= static_cast<std::uint64_t>(count);
    return count > 0;
}

// False: an index that needs more than a box, or is wrong.
bool ask(nb::handle index, const Layout& layout, Asked& asked) {
    PyObject* const single = index.ptr();
    const bool many = PyTuple_CheckExact(single);
    PyObject* const* parts = many ? &PyTuple_GET_ITEM(single, 0) : &single;
    const std::size_t count = many ? static_cast<std::size_t>(PyTuple_GET_SIZE(single)) : 1;
    const std::size_t dimensions = layout.dimensions();
    std::size_t axis = 0;
    bool spread = false;
    for (std::size_t at = 0; at < count; ++at) {
        if (parts[at] == Py_Ellipsis) {
            if (spread || count - 1 > dimensions) return false;
            spread = true;
            for (std::size_t left = dimensions - (count - 1); left > 0; --left, ++axis) {
                asked.box.count[axis] = layout.extent(axis);
                asked.elements *= static_cast<std::uint64_t>(layout.extent(axis));
            }
        } else if (axis == dimensions || !ask_one(parts[at], layout.extent(axis), axis, asked)) {
            return false;
        } else {
            ++axis;
        }
    }
    for (; axis < dimensions; ++axis) {
        asked.box.count[axis] = layout.extent(axis);
        asked.elements *= static_cast<std::uint64_t>(layout.extent(axis));
    }
    return asked.elements != 0;
}

class SmallReader {
    static constexpr std::size_t kMostReads = 8;  // of one box; more are worth a queue

  public:
    struct Source {
        Layout layout;
        std::uint32_t swap_bytes = 0;  // of each word of an element; 0: they are in this machine's order
        Watched watched;
        // Where chunks must be decoded, the reader takes them from here: a callable that gives a decoded chunk as
        // bytes, or None, by its number among those stored. The layout then counts as if they lay side by side.
        nb::object find_chunk{};
        std::uint64_t chunk_bytes = 0;
    };

    SmallReader(Context context, std::shared_ptr<SmallTally> tally, Source source)
        : context_(std::move(context)),
          emulated_(context_.device().info().emulated),
          device_index_(context_.device().info().index),
          tally_(std::move(tally)),
          source_(std::move(source)),
          layout_(source_.layout),
          watched_(source_.watched) {}
    SmallReader(const SmallReader&) = delete;
    SmallReader& operator=(const SmallReader&) = delete;

    const std::string& file_name() const noexcept { return watched_.name; }

    // Weakly: whoever bounds the number of open files may close it.
    void use(const nb::object& file) {
        PyObject* reference = PyWeakref_NewRef(file.ptr(), nullptr);
        if (reference == nullptr) throw nb::python_error();
        file_ = nb::steal(reference);
    }

    // None: a transfer must be made. False: the file is not open here. Else (buffer, shape, strides).
    nb::object read(nb::handle index) {
        Asked asked;
        data::Runs runs;
        if (!tally_->open || !ask(index, layout_, asked)) return nb::none();
        if (asked.elements > kSmallReadBytes / layout_.item_bytes()) return nb::none();
        if (!layout_.runs(asked.box, runs)) return nb::none();
        if (source_.chunk_bytes != 0) return read_kept(asked, runs.all());
        if (runs.all().size() > kMostReads) return nb::none();
        if (!file_.is_valid()) return nb::bool_(false);
        const nb::object held = file_();
        if (held.is_none()) return nb::bool_(false);
        const auto& file = nb::cast<const PythonFile&>(held);
        Moved moved;
        if (!move(file.file, runs.all(), asked.elements * layout_.item_bytes(), moved)) return nb::none();
        ++tally_->reads;
        for (std::size_t at = 0; at < runs.all().size(); ++at) tally_->add(moved.reads[at]);
        return answer(std::move(moved.buffer), asked);
    }

  private:
    // Takes the bytes out of decoded chunks. None: one of them is not at hand.
    nb::object read_kept(const Asked& asked, std::span<const FileRun> runs) {
        const std::uint64_t bytes = asked.elements * layout_.item_bytes();
        PythonBuffer buffer;
        if (!prepare(bytes, buffer)) return nb::none();
        KeptChunk chunk;
        for (FileRun run : runs) {
            for (std::uint64_t part = 0; run.bytes != 0; run.bytes -= part) {
                const std::uint64_t inside = run.file_offset % source_.chunk_bytes;
                part = std::min(run.bytes, source_.chunk_bytes - inside);
                if (!chunk.find(source_, run.file_offset / source_.chunk_bytes)) return nb::none();
                auto* const to = static_cast<std::byte*>(buffer.part.data) + run.memory_offset;
                std::memcpy(to, chunk.bytes() + inside, part);
                run.file_offset += part;
                run.memory_offset += part;
            }
        }
        if (source_.swap_bytes != 0) swap(buffer.part);
        ++tally_->kept_reads;
        tally_->kept_bytes += bytes;
        return answer(std::move(buffer), asked);
    }

    bool prepare(std::uint64_t bytes, PythonBuffer& buffer) const {
        const GilReleased release;
        try {
            if (!watched_.holds()) return false;
            buffer.owner = context_.allocate(bytes);
            buffer.part = buffer.owner.view();
            return true;
        } catch (const Error&) {
            return false;
        }
    }

    // The chunk that was found last, borrowed from its owner.
    class KeptChunk {
      public:
        KeptChunk() = default;
        ~KeptChunk() { release(); }
        KeptChunk(const KeptChunk&) = delete;
        KeptChunk& operator=(const KeptChunk&) = delete;

        bool find(const Source& source, std::uint64_t number) {
            if (held_ && number == number_) return true;
            release();
            const nb::object found = source.find_chunk(number);
            if (found.is_none()) return false;
            if (PyObject_GetBuffer(found.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
            held_ = true;
            number_ = number;
            return static_cast<std::uint64_t>(view_.len) == source.chunk_bytes;
        }
        const std::byte* bytes() const noexcept { return static_cast<const std::byte*>(view_.buf); }

      private:
        void release() noexcept {
            if (held_) PyBuffer_Release(&view_);
            held_ = false;
        }
        Py_buffer view_{};
        std::uint64_t number_ = 0;
        bool held_ = false;
    };

    struct Moved {
        PythonBuffer buffer;
        std::array<SmallRead, kMostReads> reads;
    };

    bool move(const File& file, std::span<const FileRun> runs, std::uint64_t bytes, Moved& moved) const {
        PythonBuffer& buffer = moved.buffer;
        const GilReleased release;
        try {
            if (!watched_.holds()) return false;
            buffer.owner = context_.allocate(bytes);
            buffer.part = buffer.owner.view();
            for (std::size_t at = 0; at < runs.size(); ++at) {
                const auto one = file.try_small_read(buffer.part.slice(runs[at].memory_offset, runs[at].bytes),
                                                     runs[at].file_offset);
                if (!one) return false;
                moved.reads[at] = *one;
            }
            if (source_.swap_bytes != 0) swap(buffer.part);
            return true;
        } catch (const Error&) {
            return false;
        }
    }

    void swap(const MemoryView& memory) const {
        Box words;
        words.destination = memory.data;
        words.source = memory.data;
        words.item_bytes = words.swap_bytes = source_.swap_bytes;
        words.dimensions = 1;
        words.extents[0] = memory.bytes / source_.swap_bytes;
        words.destination_strides[0] = words.source_strides[0] = source_.swap_bytes;
        context_.copy_boxes({&words, 1});
    }

    nb::object answer(PythonBuffer&& buffer, const Asked& asked) const {
        buffer.context = context_;
        buffer.emulated = emulated_;
        buffer.device_index = device_index_;
        std::array<std::int64_t, kMostDimensions> strides{};
        auto stride = static_cast<std::int64_t>(layout_.item_bytes());
        std::size_t kept = 0;
        for (std::size_t axis = layout_.dimensions(); axis-- > 0;) {
            strides[axis] = stride;
            stride *= asked.box.count[axis];
            kept += asked.dropped[axis] ? 0 : 1;
        }
        const auto tuple_of = [&](const auto& numbers) {
            PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(kept));
            if (tuple == nullptr) throw nb::python_error();
            Py_ssize_t at = 0;
            for (std::size_t axis = 0; axis < layout_.dimensions(); ++axis) {
                if (!asked.dropped[axis]) PyTuple_SET_ITEM(tuple, at++, PyLong_FromLongLong(numbers[axis]));
            }
            return nb::steal(tuple);
        };
        return nb::make_tuple(nb::cast(std::move(buffer)), tuple_of(asked.box.count), tuple_of(strides));
    }

    Context context_;
    bool emulated_;
    int device_index_;
    std::shared_ptr<SmallTally> tally_;
    Source source_;
    const Layout& layout_;
    const Watched& watched_;
    nb::object file_;  // a weak reference
};

// `chunks`: a table of int64, a row a chunk: its number in the grid, and where it begins.
std::unique_ptr<SmallReader> reader_of(const Context& context, std::shared_ptr<SmallTally> tally,
                                       const nb::dict& stored, const nb::dict& watched) {
    data::Stored described;
    described.shape = nb::cast<std::vector<std::int64_t>>(stored["shape"]);
    described.chunk_shape = nb::cast<std::vector<std::int64_t>>(stored["chunk_shape"]);
    described.item_bytes = nb::cast<std::uint64_t>(stored["item_bytes"]);
    const auto swap_bytes = nb::cast<std::uint32_t>(stored["swap_bytes"]);
    described.edge_cut = nb::cast<bool>(stored["edge_cut"]);
    const IntTable chunks(stored["chunks"], "describe a dataset");
    for (std::size_t row = 0; row < chunks.rows(); ++row) {
        described.cells.push_back(static_cast<std::int64_t>(chunks.count(row, 0, "number of the chunk")));
        described.offsets.push_back(chunks.count(row, 1, "file offset"));
    }
    Watched file;
    file.name = python::file_name(watched["file"], "open");
    file.device = nb::cast<dev_t>(watched["device"]);
    file.inode = nb::cast<ino_t>(watched["inode"]);
    file.bytes = nb::cast<std::optional<std::uint64_t>>(watched["bytes"]);
    file.modified_ns = nb::cast<std::optional<std::int64_t>>(watched["modified_ns"]);
    file.changed_ns = nb::cast<std::optional<std::int64_t>>(watched["changed_ns"]);
    SmallReader::Source source{Layout(std::move(described)), swap_bytes, std::move(file)};
    if (const nb::object find = stored["find_chunk"]; !find.is_none()) {
        source.find_chunk = find;
        source.chunk_bytes = nb::cast<std::uint64_t>(stored["chunk_bytes"]);
    }
    return std::make_unique<SmallReader>(context, std::move(tally), std::move(source));
}

}  // namespace

void bind_small_read(nb::module_& module) {
    nb::class_<SmallRead>(module, "SmallRead")
        .def_prop_ro("bytes", [](const SmallRead& self) { return self.memory.bytes; })
        .def_prop_ro("seconds", [](const SmallRead& self) { return self.seconds; })
        .def_prop_ro("evidence_json", [](const SmallRead& self) { return text(self.evidence().to_json()); });
    nb::class_<SmallTally>(module, "SmallTally")
        .def(nb::init<>())
        .def("close", [](SmallTally& self) { self.open = false; })
        .def_ro("reads", &SmallTally::reads)
        .def_ro("operations", &SmallTally::operations)
        .def_ro("bytes", &SmallTally::bytes)
        .def_ro("kept_reads", &SmallTally::kept_reads)
        .def_ro("kept_bytes", &SmallTally::kept_bytes)
        .def_ro("seconds", &SmallTally::seconds)
        .def_prop_ro("samples", [](const SmallTally& self) {
            nb::list samples;
            for (const auto& [bytes, sample] : self.by_bytes) samples.append(nb::cast(sample));
            return samples;
        });
    nb::class_<SmallReader>(module, "SmallReader")
        .def(nb::new_(&reader_of), nb::arg("context"), nb::arg("tally"), nb::arg("stored"), nb::arg("watched"))
        .def_prop_ro("file", [](const SmallReader& self) { return text(self.file_name()); })
        .def("use", &SmallReader::use, nb::arg("file"))
        .def("read", &SmallReader::read, nb::arg("index").none());
    module.def("read_small", &read_small, nb::arg("file"), nb::arg("memory").none(), nb::arg("offset_bytes").none());
}

}  // namespace penstock::python
