// See rows.hpp.
#include "python/core/small/rows.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace penstock::python {
namespace {

constexpr std::size_t kMostRuns = 8;            // of one row; more are worth a queue
constexpr std::size_t kPortion = 64;            // reads between two looks
constexpr long kMostWaits = 16;                 // of one portion
constexpr std::uint64_t kShort = 4 * kKiB;      // rows up to this length are read with their neighbours
constexpr std::uint64_t kNear = 2 * kKiB;       // bytes between two rows that take no longer than a call
constexpr std::uint64_t kTogether = 16 * kKiB;  // of one call for several rows
constexpr std::uint64_t kScratch = 128 * kKiB;
constexpr std::uint64_t kLooked = 1 * kMiB;  // bytes between two looks

// How often the thread gave its core up, as it does for bytes that are not in the page cache.
long waits_of_thread() {
    struct rusage usage {};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

class Exported {
  public:
    explicit Exported(nb::handle object)
        : there_(PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) == 0) {
        if (!there_) PyErr_Clear();
    }
    ~Exported() {
        if (there_) PyBuffer_Release(&view_);
    }
    Exported(const Exported&) = delete;
    Exported& operator=(const Exported&) = delete;
    const Py_buffer* view() const noexcept { return there_ ? &view_ : nullptr; }

  private:
    Py_buffer view_{};
    bool there_;
};

bool add_number(std::int64_t number, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (number < 0) number += extent;
    if (number < 0 || number >= extent) return false;
    numbers.push_back(number);
    return true;
}

bool of_list(PyObject* list, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    const Py_ssize_t count = PyList_GET_SIZE(list);
    numbers.reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t at = 0; at < count; ++at) {
        PyObject* const one = PyList_GET_ITEM(list, at);
        if (!PyLong_CheckExact(one)) return false;
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(one, &overflow);
        if (overflow != 0 || !add_number(number, extent, numbers)) return false;
    }
    return count != 0;
}

template <typename Number>
bool of_integers(const Py_buffer& view, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (view.itemsize != sizeof(Number)) return false;
    numbers.reserve(static_cast<std::size_t>(view.shape[0]));
    for (Py_ssize_t at = 0; at < view.shape[0]; ++at) {
        Number number;
        std::memcpy(&number, static_cast<const char*>(view.buf) + at * view.strides[0], sizeof number);
        if (!add_number(number, extent, numbers)) return false;
    }
    return true;
}

bool of_mask(const Py_buffer& view, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (view.shape[0] != extent) return false;
    for (Py_ssize_t at = 0; at < view.shape[0]; ++at) {
        if (static_cast<const char*>(view.buf)[at * view.strides[0]] != 0) numbers.push_back(at);
    }
    return true;
}

// Reads of runs: straight to their place, or several runs by one read through scratch.
class RunReads {
  public:
    RunReads(const File& file, const RowsInto& into) : file_(file), memory_(into.memory), done_(into.done) {}

    bool read(std::span<const data::FileRun> runs) {
        long waits = waits_of_thread();
        while (!runs.empty()) {
            runs = runs.subspan(gather(runs));
            if (!make(memory_, direct_)) return false;
            if (!shared_.empty() && !make({scratch_.get(), kScratch, MemoryKind::system}, shared_)) return false;
            for (const data::RowCopy& copy : copies_) {
                std::memcpy(place(copy.to), scratch_.get() + copy.from, copy.bytes);
            }
            const long now = waits_of_thread();
            if (now - waits > kMostWaits) return false;
            waits = now;
        }
        return true;
    }

  private:
    std::byte* place(std::uint64_t offset) const { return static_cast<std::byte*>(memory_.data) + offset; }

    // How many of the runs one call serves.
    static std::size_t neighbours(std::span<const data::FileRun> runs) {
        std::size_t count = 1;
        const std::uint64_t begin = runs[0].file_offset;
        for (std::uint64_t end = begin + runs[0].bytes; count < runs.size(); ++count) {
            const data::FileRun& next = runs[count];
            if (runs[count - 1].bytes > kShort || next.bytes > kShort || next.file_offset < end) break;
            if (next.file_offset - end > kNear || next.file_offset + next.bytes - begin > kTogether) break;
            end = next.file_offset + next.bytes;
        }
        return count;
    }

    // The reads of the next portion. Returns how many runs they serve.
    std::size_t gather(std::span<const data::FileRun> runs) {
        direct_.clear();
        shared_.clear();
        copies_.clear();
        std::uint64_t used = 0, straight = 0;
        std::size_t taken = 0;
        const auto is_room = [&] {
            return direct_.size() + shared_.size() < kPortion && used + kTogether <= kScratch && straight < kLooked;
        };
        while (taken < runs.size() && is_room()) {
            const std::span<const data::FileRun> some = runs.subspan(taken, neighbours(runs.subspan(taken)));
            const data::FileRun& first = some.front();
            taken += some.size();
            if (some.size() == 1) {
                direct_.push_back({nullptr, first.file_offset, place(first.memory_offset), first.bytes});
                straight += first.bytes;
                continue;
            }
            if (!scratch_) scratch_ = std::make_unique_for_overwrite<std::byte[]>(kScratch);
            const std::uint64_t bytes = some.back().file_offset + some.back().bytes - first.file_offset;
            shared_.push_back({nullptr, first.file_offset, scratch_.get() + used, bytes});
            for (const data::FileRun& one : some) {
                copies_.push_back({used + one.file_offset - first.file_offset, one.memory_offset, one.bytes});
            }
            used += bytes;
        }
        done_.staged_bytes += used;
        done_.scratch_peak_bytes = std::max(done_.scratch_peak_bytes, used);
        return taken;
    }

    bool make(const MemoryView& memory, std::span<const Range> ranges) {
        if (ranges.empty()) return true;
        const auto made = file_.try_small_reads(memory, ranges);
        if (!made) return false;
        done_.operations += made->operations;
        done_.bytes += made->bytes;
        done_.seconds += made->seconds;
        for (const SmallRead& sample : made->samples) {
            if (done_.samples.size() < SmallTally::kMostSamples) done_.samples.try_emplace(sample.memory.bytes, sample);
        }
        return true;
    }

    const File& file_;
    MemoryView memory_;
    RowsRead& done_;
    std::vector<Range> direct_, shared_;
    std::vector<data::RowCopy> copies_;  // from scratch to their place
    std::unique_ptr<std::byte[]> scratch_;
};

}  // namespace

bool ask_rows(nb::handle index, std::int64_t extent, std::vector<std::int64_t>& numbers) {
    if (PyList_CheckExact(index.ptr())) return of_list(index.ptr(), extent, numbers);
    if (std::string_view(Py_TYPE(index.ptr())->tp_name) != "numpy.ndarray") return false;
    const Exported exported(index);
    const Py_buffer* const view = exported.view();
    if (view == nullptr || view->ndim != 1 || view->format == nullptr) return false;
    const std::string_view format = view->format;
    bool known = false;
    if (format == "l" || format == "q") known = of_integers<std::int64_t>(*view, extent, numbers);
    if (format == "i") known = of_integers<std::int32_t>(*view, extent, numbers);
    if (format == "?") known = of_mask(*view, extent, numbers);
    return known && !numbers.empty();
}

std::optional<std::uint64_t> bytes_of_rows(const data::Layout& layout, const data::WantedRows& rows) {
    std::uint64_t bytes = layout.item_bytes();
    if (__builtin_mul_overflow(bytes, rows.numbers.size(), &bytes)) return std::nullopt;
    for (std::size_t axis = 1; axis < layout.dimensions(); ++axis) {
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(rows.box.count[axis]), &bytes))
            return std::nullopt;
    }
    return bytes;
}

bool read_runs(const File& file, std::span<const data::FileRun> runs, const RowsInto& into) {
    std::vector<data::FileRun> pieces;
    for (const data::FileRun& run : runs) {
        for (std::uint64_t at = 0; at < run.bytes; at += kSmallReadBytes) {
            const std::uint64_t bytes = std::min(kSmallReadBytes, run.bytes - at);
            pieces.push_back({run.file_offset + at, run.memory_offset + at, bytes});
        }
    }
    into.done.requested_bytes = into.memory.bytes;
    return RunReads(file, into).read(pieces);
}

bool read_rows(const File& file, const data::Layout& layout, const data::WantedRows& rows, const RowsInto& into) {
    data::RowRuns found;
    if (!data::find_rows(layout, rows, {kSmallReadBytes, kMostRuns}, found)) return false;
    if (!RunReads(file, into).read(found.runs)) return false;
    for (const data::RowCopy& copy : found.copies) {
        auto* const data = static_cast<std::byte*>(into.memory.data);
        std::memcpy(data + copy.to, data + copy.from, copy.bytes);
    }
    into.done.requested_bytes = into.memory.bytes;
    return true;
}

}  // namespace penstock::python
