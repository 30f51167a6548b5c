// Small reads in Python: SmallReader, which reads boxes and rows of one dataset. It tries, in this order:
//
// 1. A box of at most 64 KiB, out of a few ranges of the file or out of decoded chunks: find(), take().
// 2. A larger box, or one in many parts, where the host reaches the memory: up to 4 MiB, or 1 GiB that the page cache
//    has; and for any device out of chunks that decode to 16 MiB: find_box().
// 3. Rows that the index lists: read_more().
//
// The host decodes chunks for a GPU to staging memory, from which the device copies them: take_chunks().
//
// Writes are a box in a few ranges of the file, or rows that the index lists: write_from().
//
// It answers None where a transfer must be made, and then nothing has happened that counts. The caller starts that
// transfer, which finds another way or tells the error. So no error is told twice here, and none is lost.
#include <nanobind/stl/shared_ptr.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "context/crew.hpp"
#include "context/state.hpp"
#include "context/transfer/small/named_file.hpp"
#include "data/layout/layout.hpp"
#include "data/rows/run_writes.hpp"
#include "penstock/box.hpp"
#include "python/core/array.hpp"
#include "python/core/small/chunks.hpp"
#include "python/core/small/index.hpp"
#include "python/core/small/kept.hpp"
#include "python/core/small/rows.hpp"
#include "python/core/small/tally.hpp"
#include "python/core/small/watched.hpp"

namespace penstock::python {
namespace {

using data::FileRun;
using data::kMostDimensions;
using data::Layout;

class ForOneRead {
  public:
    ForOneRead(nb::object& place, nb::object value) : place_(place) { place_ = std::move(value); }
    ~ForOneRead() { place_.reset(); }
    ForOneRead(const ForOneRead&) = delete;
    ForOneRead& operator=(const ForOneRead&) = delete;

  private:
    nb::object& place_;
};

class SmallReader {
    static constexpr std::size_t kMostReads = 16;           // of one box; more are worth a queue
    static constexpr std::size_t kMostWrites = 64;          // of one box
    static constexpr std::uint64_t kMostListed = 1 * kGiB;  // of one list; more is worth all workers
    // See data::kMostRowsHere too.
    static constexpr std::uint64_t kMostListedWrites = 256 * kMiB;

  public:
    struct Source {
        Layout layout;
        std::uint32_t swap_bytes = 0;  // of each word of an element; 0: they are in this machine's order
        bool backwards = false;        // the dimensions of the file are the other way round
        Watched watched;
        nb::object array_class, dtype;  // of what is read
        std::unique_ptr<const ChunkSource> chunks{};  // null: they are stored as they are read
    };

    SmallReader(Context context, std::shared_ptr<SmallTally> tally, Source source)
        : context_(std::move(context)),
          emulated_(context::ContextState::of(context_).machine().emulated_device),
          device_index_(context::ContextState::of(context_).device_index),
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

    // None: a transfer must be made. False: the file is not open here. Else an Array.
    nb::object read(nb::handle index) {
        Asked asked;
        data::Runs runs;
        if (!find(index, asked, runs)) return read_more(index);
        return into_new(asked, [&](const auto& place) { return take(asked, {runs.all()}, place); });
    }

    // As read(), of the file opened for this read alone, which may be the last: to keep it open takes longer than to
    // open it. False: it cannot be opened now.
    nb::object read_once(nb::handle index) {
        nb::object found = read_named(index);
        if (!found.is_none()) return found;
        std::optional<File> opened;
        {
            const GilReleased release;
            try {
                opened = context_.open(watched_.name);
            } catch (const Error&) {
                opened.reset();
            }
        }
        if (!opened) return nb::bool_(false);
        const ForOneRead held(once_, nb::cast(PythonFile{context_, *opened}));
        return read(index);
    }

    // Into memory of the caller that the context's device computes on. Its elements are of the type that is read. True,
    // or as read().
    nb::object read_into(nb::handle index, nb::handle out) {
        Asked asked;
        data::Runs runs;
        if (source_.backwards) return nb::none();
        try {
            const bool is_small = find(index, asked, runs);
            data::RunList many;
            if (!is_small && !(takes_boxes() && find_box(index, asked, many))) return read_rows_into(index, out);
            need_own_process(context_);
            if (emulated_ && !is_small && !coded()) return read_box_into(asked, many, out);
            const ChunkPieces pieces{is_small ? runs.all() : many.all()};
            return into_given(asked, out, [&](const auto& place) { return take(asked, pieces, place); });
        } catch (const Error&) {
            return nb::none();
        }
    }

    // Out of memory of the host, to a file that was opened for writing. Its elements are of the type that is written.
    // True, or as read(), and then some of them may be written.
    nb::object write_from(nb::handle index, nb::handle value) {
        Asked asked;
        data::Runs runs;
        if (source_.backwards) return nb::none();
        if (!find_to_write(index, asked, runs)) return write_rows_from(index, value);
        const HostOut host(value, PyBUF_CONTIG_RO);
        if (!host.fits(layout_, asked)) return nb::none();
        const nb::object held = held_file();
        if (held.is_none()) return nb::bool_(false);
        std::array<SmallWrite, kMostWrites> writes;
        if (!write_runs(nb::cast<const PythonFile&>(held).file, runs.all(), host.view(), writes)) return nb::none();
        count(asked, std::span(writes).first(runs.all().size()));
        return nb::bool_(true);
    }

    // A small box of a file that is opened for it, and for no more than that. None: a File is needed.
    nb::object read_named(nb::handle index) {
        Asked asked;
        data::Runs runs;
        if (coded() || !find(index, asked, runs)) return nb::none();
        PythonBuffer buffer;
        std::array<SmallRead, kMostReads> reads;
        if (!take_named(asked, runs.all(), buffer, reads)) return nb::none();
        count(asked, std::span(reads).first(runs.all().size()));
        return answer(std::move(buffer), asked);
    }

  private:
    enum class Took { nothing, not_open, all };

    // Where the elements go, and the stream with work on that memory, if there is one.
    struct ReadPlace {
        MemoryView memory;
        std::optional<std::uintptr_t> after{};
    };

    static nb::object told(Took took) {
        if (took == Took::nothing) return nb::none();
        return nb::bool_(took == Took::all);
    }

    // `take_to` takes what gives the memory.
    template <typename Take>
    nb::object into_new(const Asked& asked, const Take& take_to) {
        PythonBuffer buffer;
        const Took took = take_to([&] { return ReadPlace{fresh(buffer, bytes_of(asked))}; });
        return took == Took::all ? answer(std::move(buffer), asked) : told(took);
    }

    // As into_new(), to memory of NumPy, or of a GPU.
    template <typename Take>
    nb::object into_given(const Asked& asked, nb::handle out, const Take& take_to) {
        if (emulated_) {
            const HostOut host(out);
            if (!host.fits(layout_, asked)) return nb::none();
            return told(take_to([&] { return ReadPlace{host.view()}; }));
        }
        const nb::object description = nb::getattr(out, "__cuda_array_interface__", nb::none());
        if (!has_device_shape(description, layout_, asked)) return nb::none();
        const BorrowedMemory borrowed(context_, out, {BorrowedMemory::Use::write_into, false, description});
        if (borrowed.view().bytes != shaped_bytes(asked)) return nb::none();
        return told(take_to([&] { return ReadPlace{borrowed.view(), borrowed.after()}; }));
    }

    nb::object read_box_into(const Asked& asked, const data::RunList& runs, nb::handle out) {
        const HostOut host(out);
        if (!host.fits(layout_, asked)) return nb::none();
        const nb::object held = held_file();
        if (held.is_none()) return nb::bool_(false);
        data::RunsMoved done;
        const auto place = [&] { return host.view(); };
        const auto move = [&](const File& file, const data::RunsInto& into) {
            return data::read_box(file, runs.all(), into);
        };
        if (!move_many(nb::cast<const PythonFile&>(held).file, place, move, done)) return nb::none();
        tally_->add(done);
        return nb::bool_(true);
    }

    // As write_from(), of rows that the index lists.
    nb::object write_rows_from(nb::handle index, nb::handle value) {
        Asked asked;
        std::vector<std::int64_t> numbers;
        if (coded()) return nb::none();
        const std::optional<data::WantedRows> wanted = find_rows(index, asked, numbers);
        if (!wanted) return nb::none();
        const HostOut host(value, PyBUF_CONTIG_RO);
        if (!host.fits(layout_, asked) || host.view().bytes > kMostListedWrites) return nb::none();
        const nb::object held = held_file();
        if (held.is_none()) return nb::bool_(false);
        data::RunsMoved done;
        if (!write_rows(nb::cast<const PythonFile&>(held).file, *wanted, host.view(), done)) return nb::none();
        tally_->add(done);
        return nb::bool_(true);
    }

    bool write_rows(const File& file, const data::WantedRows& wanted, const MemoryView& memory,
                    data::RunsMoved& done) const {
        const auto write = [&](const MemoryView& from, std::span<const Range> ranges) {
            return file.try_small_writes(from, ranges);
        };
        const GilReleased release;
        try {
            if (!watched_.holds()) return false;
            std::vector<std::byte> turned;
            return data::write_rows(write, layout_, wanted, {as_stored(memory, turned), done});
        } catch (const Error&) {
            return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    bool write_runs(const File& file, std::span<const FileRun> runs, const MemoryView& memory,
                    std::array<SmallWrite, kMostWrites>& writes) const {
        const GilReleased release;
        try {
            if (!watched_.holds()) return false;
            std::vector<std::byte> turned;
            const MemoryView stored = as_stored(memory, turned);
            for (std::size_t at = 0; at < runs.size(); ++at) {
                const MemoryView part = stored.slice(runs[at].memory_offset, runs[at].bytes);
                const auto one = file.try_small_write(part, runs[at].file_offset);
                if (!one) return false;
                writes[at] = *one;
            }
            return true;
        } catch (const Error&) {
            return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    // The elements as the file has them: in the memory itself, or in `turned`, with their words the other way round.
    MemoryView as_stored(const MemoryView& memory, std::vector<std::byte>& turned) const {
        if (source_.swap_bytes == 0) return memory;
        turned.resize(memory.bytes);
        const MemoryView copy{turned.data(), memory.bytes, memory.kind};
        swap(copy, memory.data);
        return copy;
    }

    bool take_named(const Asked& asked, std::span<const FileRun> runs, PythonBuffer& buffer,
                    std::array<SmallRead, kMostReads>& reads) const {
        const GilReleased release;
        try {
            const auto file = context::NamedFile::open(context_, watched_.name);
            return file && watched_.is(file->status()) && move(*file, runs, {fresh(buffer, bytes_of(asked))}, reads);
        } catch (const Error&) {
            return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    void count(const Asked& asked, std::span<const SmallRead> reads) const {
        for (const SmallRead& one : reads) tally_->add(one);
        ++tally_->reads;
        tally_->requested_bytes += bytes_of(asked);
    }

    // New memory of the device, as it is read to: the host reaches that of the emulated one.
    MemoryView fresh(PythonBuffer& buffer, std::uint64_t bytes) const {
        buffer.owner = context_.allocate(bytes);
        buffer.part = buffer.owner.view();
        return emulated_ ? MemoryView{buffer.part.data, buffer.part.bytes, MemoryKind::system} : buffer.part;
    }

    // A larger box, which a GPU gets by workers, or rows that the index lists: by many reads. As read().
    nb::object read_more(nb::handle index) {
        Asked box;
        data::RunList runs;
        const bool is_box = takes_boxes() && find_box(index, box, runs);
        if (is_box && coded()) {
            return into_new(box, [&](const auto& place) { return take(box, {runs.all()}, place); });
        }
        if (is_box) {
            return take_many(box, bytes_of(box), [&](const File& file, const data::RunsInto& into) {
                return data::read_box(file, runs.all(), into);
            });
        }
        Asked rows;
        std::vector<std::int64_t> numbers;
        const std::optional<data::WantedRows> wanted = find_rows(index, rows, numbers);
        if (!wanted) return nb::none();
        if (coded()) return into_new(rows, [&](const auto& place) { return take_rows(*wanted, rows, place); });
        const std::uint64_t bytes = bytes_of_rows(layout_, *wanted).value_or(UINT64_MAX);
        if (bytes > kMostListed) return nb::none();
        return take_many(rows, bytes, [&](const File& file, const data::RunsInto& into) {
            return read_rows(file, layout_, *wanted, into);
        });
    }

    // As read_into(), of rows that the index lists, of decoded chunks.
    nb::object read_rows_into(nb::handle index, nb::handle out) {
        Asked asked;
        std::vector<std::int64_t> numbers;
        if (!coded()) return nb::none();
        const std::optional<data::WantedRows> wanted = find_rows(index, asked, numbers);
        if (!wanted) return nb::none();
        need_own_process(context_);
        return into_given(asked, out, [&](const auto& place) { return take_rows(*wanted, asked, place); });
    }

    // Rows out of decoded chunks.
    template <typename FindPlace>
    Took take_rows(const data::WantedRows& wanted, Asked& asked, const FindPlace& find_place) {
        constexpr std::size_t kRunsOfCodedRow = 64;
        const std::uint64_t bytes = bytes_of_rows(layout_, wanted).value_or(UINT64_MAX);
        if (bytes > ChunkReads::kMostAhead || wanted.numbers.size() > data::kMostRowsHere) return Took::nothing;
        asked.elements = bytes / layout_.item_bytes();
        data::RowRuns found;
        const data::RowLimits limits{ChunkReads::kMostAhead, kRunsOfCodedRow, false};
        if (!data::find_rows(layout_, wanted, limits, found)) return Took::nothing;
        return take(asked, {found.runs, found.copies}, find_place);
    }

    // Rows that the index lists. Nothing: it is a box, or is wrong. `asked` is their shape.
    std::optional<data::WantedRows> find_rows(nb::handle index, Asked& asked,
                                              std::vector<std::int64_t>& numbers) const {
        if (!tally_->open || source_.backwards || layout_.dimensions() == 0) return std::nullopt;
        if (Asked box; ask(index, layout_, false, box)) return std::nullopt;
        if (!ask_rows(index, layout_.extent(0), numbers)) return std::nullopt;
        for (std::size_t axis = 0; axis < layout_.dimensions(); ++axis) asked.box.count[axis] = layout_.extent(axis);
        asked.box.count[0] = 1;
        const data::WantedRows wanted{asked.box, numbers};
        asked.box.count[0] = static_cast<std::int64_t>(numbers.size());
        return wanted;
    }

    template <typename Move>
    nb::object take_many(const Asked& asked, std::uint64_t bytes, const Move& move) {
        const nb::object held = held_file();
        if (held.is_none()) return nb::bool_(false);
        PythonBuffer buffer;
        data::RunsMoved done;
        const auto place = [&] { return fresh(buffer, bytes); };
        if (!move_many(nb::cast<const PythonFile&>(held).file, place, move, done)) return nb::none();
        tally_->add(done);
        return answer(std::move(buffer), asked);
    }

    // `place` gives the memory, without the GIL.
    template <typename Place, typename Move>
    bool move_many(const File& file, const Place& place, const Move& move, data::RunsMoved& done) const {
        const GilReleased release;
        try {
            if (!watched_.holds()) return false;
            const MemoryView view = place();
            if (!move(file, data::RunsInto{view, done, 0, &context::crew_of(context_)})) return false;
            if (source_.swap_bytes != 0) swap(view);
            return true;
        } catch (const Error&) {
            return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    nb::object held_file() const {
        if (once_.is_valid()) return once_;
        return file_.is_valid() ? nb::object(file_()) : nb::none();
    }

    bool coded() const noexcept { return source_.chunks != nullptr; }
    bool takes_boxes() const noexcept { return emulated_ || coded(); }  // larger than small ones
    std::uint64_t bytes_of(const Asked& asked) const noexcept { return asked.elements * layout_.item_bytes(); }
    std::uint64_t shaped_bytes(const Asked& asked) const noexcept {
        std::uint64_t bytes = layout_.item_bytes();
        for (std::size_t i = 0; i < layout_.dimensions(); ++i) bytes *= static_cast<std::uint64_t>(asked.box.count[i]);
        return bytes;
    }

    // Where the bytes are. False: the box is not a small one, or not simply there.
    bool find(nb::handle index, Asked& asked, data::Runs& runs) const {
        if (!tally_->open || !ask(index, layout_, source_.backwards, asked)) return false;
        if (asked.elements > kSmallReadBytes / layout_.item_bytes()) return false;
        if (!layout_.runs(asked.box, runs)) return false;
        return coded() || runs.all().size() <= kMostReads;
    }

    // Where the bytes of a box go. False: it is a large one, or in many parts.
    bool find_to_write(nb::handle index, Asked& asked, data::Runs& runs) const {
        if (!tally_->open || coded() || !ask(index, layout_, false, asked)) return false;
        if (asked.elements > policy::kCachedWriteMax / layout_.item_bytes()) return false;
        return layout_.runs(asked.box, runs) && runs.all().size() <= kMostWrites;
    }

    // Where the bytes of a larger box are, or of one in many parts. False: it is larger still, or not simply there.
    bool find_box(nb::handle index, Asked& asked, data::RunList& runs) const {
        asked = {};
        if (!tally_->open || !ask(index, layout_, source_.backwards, asked)) return false;
        const std::uint64_t most = coded() ? ChunkReads::kMostAhead : data::kMostCached;
        if (asked.elements > most / layout_.item_bytes()) return false;
        try {
            return layout_.runs(asked.box, runs);
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    // `find_place` is called without the GIL.
    template <typename FindPlace>
    Took take(const Asked& asked, const ChunkPieces& pieces, const FindPlace& find_place) {
        const nb::object held = held_file();
        const File* const file = held.is_none() ? nullptr : &nb::cast<const PythonFile&>(held).file;
        try {
            if (coded()) return take_chunks(asked, pieces, file, find_place);
            return file == nullptr ? Took::not_open : take_runs(asked, pieces.runs, *file, find_place);
        } catch (const Error&) {
            return Took::nothing;
        } catch (const std::bad_alloc&) {
            return Took::nothing;
        }
    }

    template <typename FindPlace>
    Took take_runs(const Asked& asked, std::span<const FileRun> runs, const File& file, const FindPlace& find_place) {
        std::array<SmallRead, kMostReads> reads;
        {
            const GilReleased release;
            if (!watched_.holds() || !move(file, runs, find_place(), reads)) return Took::nothing;
        }
        count(asked, std::span(reads).first(runs.size()));
        return Took::all;
    }

    // Out of decoded chunks.
    template <typename FindPlace>
    Took take_chunks(const Asked& asked, const ChunkPieces& pieces, const File* file, const FindPlace& find_place) {
        ChunkReads chunks(*source_.chunks, file, context_);
        std::uint64_t staged_bytes = 0;
        {
            const GilReleased release;
            if (!watched_.holds()) return Took::nothing;
            const ReadPlace place = find_place();
            if (place.after) context_.synchronize_stream(*place.after);
            const auto found = chunks.put(pieces, place.memory, watched_);
            if (found == ChunkReads::Found::not_open) return Took::not_open;
            if (found != ChunkReads::Found::here) return Took::nothing;
            if (source_.chunks->is_staged) staged_bytes = place.memory.bytes;
            if (source_.swap_bytes != 0) swap(place.memory);
        }
        if (staged_bytes != 0) tally_->add_staged(staged_bytes);
        ++(chunks.decoded_any() ? tally_->reads : tally_->kept_reads);
        tally_->requested_bytes += bytes_of(asked);
        chunks.count(*tally_);
        return Took::all;
    }

    static std::optional<SmallRead> read_of(const File& file, const ReadPlace& place, std::uint64_t offset) {
        return file.try_small_read(place.memory, offset, place.after);
    }
    static std::optional<SmallRead> read_of(const context::NamedFile& file, const ReadPlace& place,
                                            std::uint64_t offset) {
        return file.read(place.memory, offset);
    }

    template <typename Opened>
    bool move(const Opened& file, std::span<const FileRun> runs, ReadPlace place,
              std::array<SmallRead, kMostReads>& reads) const {
        const MemoryView memory = place.memory;
        for (std::size_t at = 0; at < runs.size(); ++at) {
            place.memory = memory.slice(runs[at].memory_offset, runs[at].bytes);
            const auto one = read_of(file, place, runs[at].file_offset);
            if (!one) return false;
            place.after.reset();  // the first read has waited for it
            reads[at] = *one;
        }
        if (source_.swap_bytes != 0) swap(memory);
        return true;
    }

    void swap(const MemoryView& memory) const { swap(memory, memory.data); }

    void swap(const MemoryView& memory, const void* source) const {
        Box words;
        words.destination = memory.data;
        words.source = source;
        words.item_bytes = words.swap_bytes = source_.swap_bytes;
        words.dimensions = 1;
        words.extents[0] = memory.bytes / source_.swap_bytes;
        words.destination_strides[0] = words.source_strides[0] = source_.swap_bytes;
        context_.copy_boxes({&words, 1}, memory.kind);
    }

    nb::object answer(PythonBuffer&& buffer, const Asked& asked) const {
        buffer.context = context_;
        buffer.emulated = emulated_;
        buffer.device_index = device_index_;
        const std::size_t dimensions = layout_.dimensions();
        std::array<std::int64_t, kMostDimensions> strides{};
        auto stride = static_cast<std::int64_t>(layout_.item_bytes());
        for (std::size_t axis = dimensions; axis-- > 0;) {
            strides[axis] = stride;
            stride *= asked.box.count[axis];
        }
        const bool backwards = source_.backwards;
        return make_array(source_.array_class, {nb::cast(std::move(buffer)), source_.dtype,
                                                tuple_of(asked.box.count, asked, dimensions, backwards),
                                                tuple_of(strides, asked, dimensions, backwards)});
    }

    Context context_;
    bool emulated_;
    int device_index_;
    std::shared_ptr<SmallTally> tally_;
    Source source_;
    const Layout& layout_;
    const Watched& watched_;
    nb::object file_;  // a weak reference
    nb::object once_;  // during read_once()
};

// `watched`: a Watch of Python, and the time of the last change.
std::unique_ptr<SmallReader> reader_of(const Context& context, std::shared_ptr<SmallTally> tally,
                                       const nb::dict& stored, const nb::tuple& watched) {
    const auto swap_bytes = nb::cast<std::uint32_t>(stored["swap_bytes"]);
    SmallReader::Source source{Layout(stored_of(stored)), swap_bytes,           nb::cast<bool>(stored["backwards"]),
                               watched_of(watched),       stored["array_class"], stored["dtype"]};
    if (const nb::object coded = stored["coded"]; !coded.is_none()) {
        source.chunks = std::make_unique<const ChunkSource>(nb::cast<nb::dict>(coded));
    }
    return std::make_unique<SmallReader>(context, std::move(tally), std::move(source));
}

// As SmallReader::read_once of a dataset that lies in one place, for one read that may be the last: no reader is kept.
// `stored`: its shape, bytes of an element, place, class of arrays and type.
nb::object read_first(const Context& context, std::shared_ptr<SmallTally> tally, const nb::tuple& told,
                      nb::handle index) {
    const auto stored = nb::cast<nb::tuple>(told[0]);
    data::Stored described;
    const auto shape = nb::cast<nb::tuple>(stored[0]);
    for (const nb::handle extent : shape) described.shape.push_back(nb::cast<std::int64_t>(extent));
    described.chunk_shape = described.shape;
    described.item_bytes = nb::cast<std::uint64_t>(stored[1]);
    described.cells = {0};
    described.offsets = {nb::cast<std::uint64_t>(stored[2])};
    SmallReader::Source source{Layout(std::move(described)), 0, false, watched_of(nb::cast<nb::tuple>(told[1])),
                               stored[3], stored[4]};
    return SmallReader(context, std::move(tally), std::move(source)).read_named(index);
}

}  // namespace

void bind_small_read(nb::module_& module) {
    bind_tally(module);
    bind_kept(module);
    module.def("read_first", &read_first, nb::arg("context"), nb::arg("tally"), nb::arg("told"),
               nb::arg("index").none());
    nb::class_<SmallReader>(module, "SmallReader")
        .def(nb::new_(&reader_of), nb::arg("context"), nb::arg("tally"), nb::arg("stored"), nb::arg("watched"))
        .def_prop_ro("file", [](const SmallReader& self) { return text(self.file_name()); })
        .def("use", &SmallReader::use, nb::arg("file"))
        .def("read", &SmallReader::read, nb::arg("index").none())
        .def("read_once", &SmallReader::read_once, nb::arg("index").none())
        .def("read_into", &SmallReader::read_into, nb::arg("index").none(), nb::arg("out"))
        .def("write_from", &SmallReader::write_from, nb::arg("index").none(), nb::arg("value"));
}

}  // namespace penstock::python
