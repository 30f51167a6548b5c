// Snapshot in Python. A write ends where a signal handler raises: the file is not there then.
#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "python/core/snapshot/values.hpp"

namespace penstock::python {
namespace {

// A Snapshot is used by one thread at a time.
class PythonSnapshot {
  public:
    PythonSnapshot(const Context& owner, std::string name, const SnapshotOptions& options)
        : context(owner), snapshot_(owner, std::move(name), options) {}

    template <class Call>
    auto use(Call call) {
        const GilReleased release;
        const std::lock_guard lock(mutex_);
        return call(snapshot_);
    }

    Context context;
    SnapshotCellSums sums{};  // between the count and add_counted_cells; calls of use() alone touch them

  private:
    std::mutex mutex_;  // guards snapshot_
    Snapshot snapshot_;
};

std::unique_ptr<PythonSnapshot> make(const Context& context, nb::handle name, const nb::kwargs& keywords) {
    const SnapshotOptions options = snapshot_options(keywords);
    const std::string file = file_name(name, "open snapshot");
    const GilReleased release;
    return std::make_unique<PythonSnapshot>(context, file, options);
}

void add_dataset(PythonSnapshot& self, const nb::kwargs& keywords) {
    const SnapshotDataset made = snapshot_dataset(keywords);
    self.use([&](Snapshot& snapshot) { snapshot.add_dataset(made); });
}

// Three numbers of each particle.
SnapshotPositions positions_of(std::uint32_t type, const std::string& dtype, const MemoryView& memory) {
    const std::uint64_t row_bytes = dtype == "float32" ? 3 * sizeof(float) : 3 * sizeof(double);
    return {type, dtype, memory.data, memory.bytes / row_bytes};
}

SnapshotCells cells_of(const nb::tuple& grid) {
    SnapshotCells cells;
    const auto along = nb::cast<std::vector<std::uint64_t>>(grid[0]);
    const auto lengths = nb::cast<std::vector<double>>(grid[1]);
    std::copy_n(along.begin(), std::min<std::size_t>(along.size(), 3), cells.cells.begin());
    std::copy_n(lengths.begin(), std::min<std::size_t>(lengths.size(), 3), cells.box_size.begin());
    return cells;
}

// `types`: (type, name of the type of numbers, memory) of each.
template <class Call>
void with_positions(PythonSnapshot& self, const nb::list& types, Call call) {
    std::list<BorrowedMemory> borrowed;
    std::vector<SnapshotPositions> positions;
    for (const nb::handle one : types) {
        borrowed.emplace_back(self.context, one[2], BorrowedMemory::Use::read_from);
        positions.push_back(
            positions_of(nb::cast<std::uint32_t>(one[0]), nb::cast<std::string>(one[1]), borrowed.back().view()));
    }
    self.use([&](Snapshot& snapshot) { call(snapshot, positions); });
}

void add_cells(PythonSnapshot& self, const nb::tuple& grid, const nb::list& types) {
    const SnapshotCells cells = cells_of(grid);
    with_positions(self, types, [&](Snapshot& snapshot, const auto& all) { snapshot.add_cells(cells, all); });
}

void sort_by_cells(PythonSnapshot& self, const nb::tuple& grid, const nb::list& types) {
    const SnapshotCells cells = cells_of(grid);
    with_positions(self, types, [&](Snapshot& snapshot, const auto& all) { snapshot.sort_by_cells(cells, all); });
}

template <class Number>
nb::bytes bytes_of(std::span<const Number> numbers) {
    return nb::bytes(numbers.data(), numbers.size_bytes());
}

using CountCells = SnapshotCellSums (Snapshot::*)(const SnapshotCells&, std::span<const SnapshotPositions>);

// What this process counted, as bytes: int64 and float64.
template <CountCells count>
nb::tuple count_by(PythonSnapshot& self, const nb::tuple& grid, const nb::list& types) {
    const SnapshotCells cells = cells_of(grid);
    std::vector<std::int64_t> totals;
    std::vector<double> extremes;
    with_positions(self, types, [&](Snapshot& snapshot, const auto& all) {
        self.sums = {};
        self.sums = (snapshot.*count)(cells, all);
        totals.assign(self.sums.totals.begin(), self.sums.totals.end());
        extremes.assign(self.sums.extremes.begin(), self.sums.extremes.end());
    });
    return nb::make_tuple(bytes_of<std::int64_t>(totals), bytes_of<double>(extremes));
}

// `totals` and `extremes`: memory with those of all processes.
void add_counted_cells(PythonSnapshot& self, nb::handle totals, nb::handle extremes) {
    const BorrowedMemory from(self.context, totals, BorrowedMemory::Use::read_from);
    const BorrowedMemory also(self.context, extremes, BorrowedMemory::Use::read_from);
    self.use([&](Snapshot& snapshot) {
        const SnapshotCellSums into = std::exchange(self.sums, {});
        if (from.view().bytes != into.totals.size_bytes() || also.view().bytes != into.extremes.size_bytes()) {
            throw Error(ErrorCode::invalid_argument, "add cells", "there are more or fewer sums than were counted",
                        "give those of count_cells or sort_and_count, of all processes");
        }
        std::memcpy(into.totals.data(), from.view().data, from.view().bytes);
        std::memcpy(into.extremes.data(), also.view().data, also.view().bytes);
        snapshot.add_counted_cells();
    });
}

// `order`: memory for as many numbers of 64 bits as there are particles.
void cell_order(const Context& context, const nb::tuple& grid, const nb::tuple& positions, nb::handle order) {
    const BorrowedMemory from(context, positions[1], BorrowedMemory::Use::read_from);
    const BorrowedMemory into(context, order, BorrowedMemory::Use::write_into);
    const SnapshotPositions told = positions_of(0, nb::cast<std::string>(positions[0]), from.view());
    const SnapshotCells cells = cells_of(grid);
    const GilReleased release;
    const std::vector<std::uint64_t> found = snapshot_cell_order(cells, told);
    std::memcpy(into.view().data, found.data(), std::min(into.view().bytes, found.size() * sizeof(std::uint64_t)));
}

void set_snapshot_attribute(PythonSnapshot& self, const std::string& path, const nb::tuple& attribute) {
    const SnapshotAttribute made = snapshot_attribute(attribute);
    self.use([&](Snapshot& snapshot) { snapshot.set_attribute(path, made); });
}

nb::dict told_facts(const SnapshotFacts& facts) {
    nb::dict fields;
    fields["file_bytes"] = facts.file_bytes;
    fields["data_bytes"] = facts.data_bytes;
    fields["layout_seconds"] = facts.layout_seconds;
    fields["write_seconds"] = facts.write_seconds;
    fields["evidence_json"] = text(facts.evidence.to_json());
    return fields;
}

// What a signal handler raised while the GIL was taken for it.
class SignalWatch {
  public:
    bool goes_on() {
        const GilHeld held;
        if (PyErr_CheckSignals() == 0) return true;
        raised_.emplace();
        return false;
    }
    // Requires: the GIL.
    void rethrow() {
        if (raised_) throw nb::python_error(std::move(*raised_));
    }

  private:
    std::optional<nb::python_error> raised_;
};

// Elements of one dataset, whose memory is the caller's.
class BorrowedField {
  public:
    // `told`: path, memory, bytes from there to the first element, and bytes of all.
    BorrowedField(const Context& context, const nb::tuple& told)
        : memory_(context, told[1], BorrowedMemory::Use::read_from),
          field_{nb::cast<std::string>(told[0]),
                 static_cast<const std::byte*>(memory_.view().data) + nb::cast<std::uint64_t>(told[2]),
                 nb::cast<std::uint64_t>(told[3])} {}
    const SnapshotField& field() const noexcept { return field_; }

  private:
    BorrowedMemory memory_;
    SnapshotField field_;
};

void check_memory(PythonSnapshot& self, const nb::tuple& told) {
    const BorrowedField one(self.context, told);
    self.use([&](Snapshot& snapshot) { snapshot.check_memory(one.field()); });
}

nb::dict write(PythonSnapshot& self, const nb::list& fields) {
    std::list<BorrowedField> borrowed;
    std::vector<SnapshotField> given;
    for (const nb::handle one : fields) {
        given.push_back(borrowed.emplace_back(self.context, nb::cast<nb::tuple>(one)).field());
    }
    SignalWatch watch;
    try {
        return told_facts(
            self.use([&](Snapshot& snapshot) { return snapshot.write(given, [&] { return watch.goes_on(); }); }));
    } catch (const Error&) {
        watch.rethrow();
        throw;
    }
}

}  // namespace

void bind_snapshot(nb::module_& module) {
    using nb::arg;
    nb::class_<PythonSnapshot>(module, "Snapshot")
        .def(
            "add_group",
            [](PythonSnapshot& self, const std::string& path) {
                self.use([&](Snapshot& snapshot) { snapshot.add_group(path); });
            },
            arg("path"))
        .def(
            "add_link",
            [](PythonSnapshot& self, const std::string& path, const std::string& target, const std::string& file) {
                self.use([&](Snapshot& snapshot) { snapshot.add_link(path, target, file); });
            },
            arg("path"), arg("target"), arg("file"))
        .def("add_dataset", &add_dataset)
        .def("add_cells", &add_cells, arg("grid"), arg("types"))
        .def("sort_by_cells", &sort_by_cells, arg("grid"), arg("types"))
        .def("count_cells", &count_by<&Snapshot::count_cells>, arg("grid"), arg("types"))
        .def("sort_and_count", &count_by<&Snapshot::sort_and_count>, arg("grid"), arg("types"))
        .def("add_counted_cells", &add_counted_cells, arg("totals"), arg("extremes"))
        .def("set_attribute", &set_snapshot_attribute, arg("path"), arg("attribute"))
        .def("use_preset",
             [](PythonSnapshot& self, const nb::kwargs& keywords) {
                 const SnapshotPreset preset = snapshot_preset(keywords);
                 self.use([&](Snapshot& snapshot) { snapshot.use_preset(preset); });
             })
        .def("check_memory", &check_memory, arg("field"))
        .def("write", &write, arg("fields"))
        .def("digest",
             [](PythonSnapshot& self) { return self.use([](Snapshot& snapshot) { return snapshot.digest(); }); })
        .def(
            "begin",
            [](PythonSnapshot& self, nb::handle place) {
                const std::string at = place.is_none() ? "" : file_name(place, "begin");
                self.use([&](Snapshot& snapshot) { snapshot.begin(at); });
            },
            any("place"))
        .def("place",
             [](PythonSnapshot& self) { return text(self.use([](Snapshot& snapshot) { return snapshot.place(); })); })
        .def("abandon", [](PythonSnapshot& self) { self.use([](Snapshot& snapshot) { snapshot.abandon(); }); })
        .def("commit", [](PythonSnapshot& self) { self.use([](Snapshot& snapshot) { snapshot.commit(); }); });
    module.def("cell_order", &cell_order, arg("context"), arg("grid"), arg("positions"), arg("order"));
    module.def("snapshot", &make, arg("context"), any("name"), arg("options"));
}

}  // namespace penstock::python
