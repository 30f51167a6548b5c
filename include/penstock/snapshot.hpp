// Snapshot: all fields of a model at one moment, written by one call to a new HDF5 file.
//
// A Snapshot is told first what the file holds: groups, links, attributes, and datasets with type and shape. write()
// then takes a pointer for each dataset, to memory of the device or of the host. The layout is made without the data,
// so all data move in one submission, each to its place. The file appears under its name, whole, when all is written;
// until then, and after an error, a file that had the name stays as it was. h5py and all that stands on the HDF5
// library read it.
//
//     penstock::Snapshot snapshot(context, "snapshot_042.hdf5");
//     snapshot.add_group("Header");
//     snapshot.set_attribute("Header", penstock::snapshot_scalar("Time", 0.5));
//     snapshot.add_dataset({"PartType0/Coordinates", "float64", {count, 3}});
//     snapshot.write({{"PartType0/Coordinates", coordinates, count * 3 * sizeof(double)}});
//
// Several processes, of MPI or others, write one file, or a file each, with a Snapshot each. Each has some of the rows
// of a dataset, or none.
//
// One thread uses a Snapshot. A forked child must not use one of its parent: calls throw Error{unsupported}.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/context.hpp"

namespace penstock {

namespace snapshot {
class SnapshotState;
}

// Text, or numbers. The shape tells one value (no lengths) from an array of one value (a length of 1): readers do too.
struct SnapshotAttribute {
    std::string name;
    std::vector<std::uint64_t> shape{};  // of the values; empty: one value
    std::string dtype{};                 // of numbers, e.g. "uint64", "bool"; empty: it is text
    std::vector<std::byte> values{};     // numbers, in C order and in this machine's order of bytes
    std::vector<std::string> texts{};    // UTF-8
    bool any_length = false;             // text: each as long as it is; else all have one length
    std::uint32_t text_bytes = 0;        // that length, filled up with zeros; 0: of the longest
};

struct SnapshotDataset {
    std::string path;   // with its groups, e.g. "PartType0/Coordinates"; groups that lack are made
    std::string dtype;  // e.g. "float32", "uint64", "bool"; "S16": text of 16 bytes, shorter ones end in zeros
    std::vector<std::uint64_t> shape{};  // of the elements that this process has
    // Of several processes: how many rows, along the first dimension, each of them has, by its number. Their rows
    // follow each other in this order. Empty: all is process 0's, or where each process has a file, of each its own.
    std::vector<std::uint64_t> process_rows{};
    std::uint64_t chunk_rows = 0;  // of a chunk; 0: the elements lie one behind the other, not in chunks
    bool has_checksums = false;    // chunks have a Fletcher-32, which readers compare
};

// The elements of a dataset: one behind the other in C order.
struct SnapshotField {
    std::string dataset;
    const void* data = nullptr;
    std::uint64_t bytes = 0;
};

// The top-level cells of SWIFT: a grid over the box, whose last dimension is the fastest.
struct SnapshotCells {
    std::array<std::uint64_t, 3> cells{};  // along each dimension
    std::array<double, 3> box_size{};
};

// The particles of one type: three numbers of each.
struct SnapshotPositions {
    std::uint32_t type = 0;  // of PartTypeN
    std::string dtype;       // "float64" or "float32"
    const void* data = nullptr;
    std::uint64_t particles = 0;
};

// What the processes of a snapshot count together. The numbers are the snapshot's, until add_counted_cells().
struct SnapshotCellSums {
    std::span<std::int64_t> totals{};  // become the sums of those of all processes, each number for itself
    std::span<double> extremes{};      // become the greatest of those of all processes
    std::uint64_t digest = 0;          // the same in all processes that give the same grid and types
};

// The particles in the order of their cells: the number that each of them has now. Those of one cell keep their order.
// Positions lie in memory of the host; those outside of the box are counted to the nearest cell. Throws
// Error{invalid_argument}.
std::vector<std::uint64_t> snapshot_cell_order(const SnapshotCells& cells, const SnapshotPositions& positions);

// What a layout of a known code says of a snapshot besides its data. Units are those of the datasets.
struct SnapshotPreset {
    std::string layout;            // "gadget4", "swift", "arepo", "gizmo" or "gothic"
    double time = 0;               // in the unit of time
    bool is_cosmological = false;  // coordinates are comoving
    bool is_periodic = true;
    double scale_factor = 1;  // 1 / (1 + redshift)
    std::array<double, 3> box_size{};
    double hubble_param = 1;  // h: in 100 km/s/Mpc
    double omega_matter = 0;
    double omega_lambda = 0;
    double omega_baryon = 0;
    double unit_length_cm = 1;
    double unit_mass_g = 1;
    double unit_time_s = 1;
    std::array<double, 7> mass_table{};  // of each type whose particles have one mass; SWIFT: the mean at the begin
    std::string run_name{};
    std::string system{};  // the machine
    std::string code_version{};
    std::string date{};  // SWIFT writes it as "12:31:00 2026-03-01 UTC"
};

struct SnapshotOptions {
    MemoryKind memory = MemoryKind::device;  // of all fields: device, or system for fields of the host
    bool durable = false;                    // when write() returns, the file survives a power cut
    bool replace = true;                     // an existing file of that name may be replaced
    TransferOptions transfer{};              // how the data move
    std::uint32_t process = 0;               // the number of this process among those that write the snapshot
    std::uint32_t processes = 1;
    bool file_each = false;     // each process writes its rows to NAME.N.hdf5; else one file has the rows of all
    bool virtual_file = false;  // process 0 also writes NAME.hdf5, whose datasets are those of all files together
};

struct SnapshotFacts {
    std::uint64_t file_bytes = 0;
    std::uint64_t data_bytes = 0;  // of all fields of this process
    double layout_seconds = 0;     // until the place of each byte is known
    double write_seconds = 0;      // from there until the file has its name
    Evidence evidence;             // of the transfer of the data
};

// Whether a write goes on. The thread that called write() asks while the data move, some 20 times a second.
using SnapshotWatch = std::function<bool()>;

class Snapshot {
  public:
    // Makes no file. Throws Error of options that make no sense.
    Snapshot(const Context& context, std::string name, const SnapshotOptions& options = {});
    ~Snapshot();
    Snapshot(Snapshot&&) noexcept;
    Snapshot& operator=(Snapshot&&) noexcept;

    // The group and those above it, which may be there already.
    void add_group(const std::string& path);
    // A soft link: another name for `target`, a path from the root, or with `file` a path in that file. Nothing needs
    // to be there.
    void add_link(const std::string& path, const std::string& target, const std::string& file = {});
    void add_dataset(const SnapshotDataset& dataset);
    // A dataset whose elements are given now, and not to write(). They are copied, from memory of the host.
    void add_values(const SnapshotDataset& dataset, std::span<const std::byte> values);
    // The group Cells of SWIFT, by which its readers load a part of the box: how many particles each cell has, where
    // they lie, and the bounds of their positions. It comes after the datasets of the particles. Positions lie on the
    // host, or on the device where the fields do. Throws Error where the particles of a type do not lie sorted, and in
    // snapshots of several processes.
    void add_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    // Several processes do this in two steps: each counts its own particles, and adds the cells when the sums are those
    // of all. Each cell is of one process, which has all its particles of a type: else add_counted_cells() throws.
    SnapshotCellSums count_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    void add_counted_cells();
    // The same where particles lie in any order: the snapshot finds the order of cells, and write() puts the rows of
    // each dataset of PartTypeN that has a row a particle into that order, through 256 MiB of memory beside the fields.
    // The fields stay as they are. Positions lie in memory as fields do (SnapshotOptions::memory); a process has fewer
    // than 2^32 particles of a type. Until it is written, 4 bytes a particle are in use. Datasets of such a type
    // take their elements from write(), not from add_values().
    void sort_by_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    // Of several processes, in place of count_cells(): each sorts its own particles.
    SnapshotCellSums sort_and_count(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    // `path`: a group or a dataset that was added; "/" is the file. The attribute replaces one of its name.
    void set_attribute(const std::string& path, const SnapshotAttribute& attribute);

    // All groups, links and attributes that the code writes: of the header, of units and of each dataset PartTypeN/NAME
    // that was added before. Attributes that are set later replace them; those of quantities that are not known are the
    // caller's. Throws Error of a layout that there is not, and of datasets of one type with other numbers of
    // particles.
    void use_preset(const SnapshotPreset& preset);

    // Fields were made on this stream, a cudaStream_t as a number: its work comes first. 0, as at first: the default
    // one.
    void use_stream(std::uintptr_t stream);
    // Throws Error where write() would not take the memory, with the name of the dataset.
    void check_memory(const SnapshotField& field) const;
    // Each dataset once, in any order. The fields may change when it returns. Throws Error with the name of the
    // dataset; then the file is not there, and a second call may follow. After it succeeded, every other call throws.
    // Where `goes_on` says no, it throws Error{cancelled}.
    SnapshotFacts write(std::span<const SnapshotField> fields, const SnapshotWatch& goes_on = {});
    SnapshotFacts write(std::initializer_list<SnapshotField> fields) {
        return write(std::span<const SnapshotField>(fields.begin(), fields.size()));
    }

    // Of several processes, which all define the same, with their own shapes. Each calls begin(), write() and commit();
    // all wait for each other between these, and where one throws all let the snapshot go. Process 0 begins first, and
    // commits last where each process has a file, first where it writes the only one.
    //
    // The same in all processes that define the same.
    std::uint64_t digest() const;
    // `place`: that of process 0, which itself gives none; empty where each process has a file.
    void begin(const std::string& place = {});
    // Where process 0 has begun: what the other processes open. Empty where each process has a file.
    const std::string& place() const;
    // The files get their names: from now on readers see the snapshot.
    void commit();
    // Nothing is left of a file that was begun and has no name; begin() may follow.
    void abandon() noexcept;

  private:
    std::unique_ptr<snapshot::SnapshotState> state_;
};

template <typename Number>
constexpr const char* snapshot_dtype() {
    static_assert(std::is_arithmetic_v<Number> && sizeof(Number) <= 8, "a snapshot has no such number");
    if constexpr (std::is_same_v<Number, bool>) return "bool";
    if constexpr (std::is_floating_point_v<Number>) return sizeof(Number) == 4 ? "float32" : "float64";
    constexpr std::size_t kBytes = sizeof(Number);
    if constexpr (std::is_signed_v<Number>) {
        return kBytes == 1 ? "int8" : kBytes == 2 ? "int16" : kBytes == 4 ? "int32" : "int64";
    } else {
        return kBytes == 1 ? "uint8" : kBytes == 2 ? "uint16" : kBytes == 4 ? "uint32" : "uint64";
    }
}

// One dimension, also of one number.
template <typename Number>
SnapshotAttribute snapshot_array(std::string name, std::span<const Number> numbers) {
    const auto bytes = std::as_bytes(numbers);
    return {std::move(name), {numbers.size()}, snapshot_dtype<Number>(), {bytes.begin(), bytes.end()}};
}
template <typename Number>
SnapshotAttribute snapshot_array(std::string name, std::initializer_list<Number> numbers) {
    return snapshot_array(std::move(name), std::span<const Number>(numbers.begin(), numbers.size()));
}
template <typename Number>
SnapshotAttribute snapshot_scalar(std::string name, Number number) {
    SnapshotAttribute made = snapshot_array(std::move(name), std::span<const Number>(&number, 1));
    made.shape.clear();
    return made;
}
// Text of fixed length.
inline SnapshotAttribute snapshot_text(std::string name, std::string text) {
    SnapshotAttribute made;
    made.name = std::move(name);
    made.texts = {std::move(text)};
    return made;
}

}  // namespace penstock
