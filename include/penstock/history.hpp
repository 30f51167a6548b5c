// History: fields of a running model, written step by step to a file that other programs read.
//
// A History owns slots of memory, two unless told otherwise, each as large as a step in the file. put() packs a field
// into the current slot: it cuts the halo, transposes, converts and sums, on the device that the field is on. It
// returns when the caller may change the field. end_step() returns at once: a thread writes the slot, then the time,
// and then lets readers see the step. The step after the last slot waits until a slot is free, and facts() tells that
// wait apart.
//
// With `slots` 0 there is no such memory and no thread: put() writes the field before it returns, and end_step() the
// time. That is for processes that have no core to spare, and for steps that memory has no room for twice.
//
//     penstock::History history(context, "history.nc", {.format = "cdf5", .time_units = "seconds since 2000-01-01"});
//     history.define({.name = "T", .dimensions = {"z", "y", "x"}, .shape = {40, 256, 256}, .source_dtype = "float64"});
//     for (...) { compute(t); history.put("T", t); history.end_step(seconds); }
//     history.close();
//
// A step that fails is told by the next call and by close(), with its number and its variable. The steps before it stay
// readable, and so they do when the process ends at any moment. One thread uses a History. A forked child must not use
// one of its parent: calls throw Error{unsupported}.
//
// Several processes, of MPI or others, write one file with a History each: each has its number among them, and its box
// of the fields. Number 0 begins first, and makes the file. A step is published when each process has written its part:
// they agree on the smallest `steps_written` of their facts, and all publish so many. Before they begin a Zarr store,
// where each process writes files of its own, they agree on cuts().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/context.hpp"

namespace penstock {

namespace history {
class HistoryState;
}

// Made of all fields that were put between two ends of steps.
enum class HistoryStatistic : std::uint8_t { none, mean, minimum, maximum };

struct HistoryAttribute {
    std::string name;
    std::string dtype{};            // of the numbers: "float32", "float64", "int32"; empty: it is text
    std::string text{};             // UTF-8
    std::vector<double> numbers{};  // one or more
};

// How the data of a step become smaller, in netCDF-4, HDF5 and Zarr; of several processes in Zarr alone. The thread of
// the history compresses, on the cores of the host, and the model does not wait for it.
struct HistoryCompression {
    std::string name = "none";  // "gzip", also called "deflate", which all readers know; "zstd" and "lz4" take a plugin
    std::uint32_t level = 0;    // gzip 1 to 9, zstd 1 to 22; 0: 4 and 3
    bool shuffle = true;        // bytes of one place of all elements first, which makes numbers smaller
};

// A field with a value for each step. All lists are in C order of the memory: the last entry is of the nearest
// elements.
struct HistoryVariable {
    std::string name;
    std::vector<std::string> dimensions;        // names, without time
    std::vector<std::uint64_t> shape;           // elements that are written; dimensions of one name have one length
    std::vector<std::uint64_t> halo_low{};      // elements before them, in memory alone; empty: none
    std::vector<std::uint64_t> halo_high{};     // elements behind them
    std::vector<std::int64_t> strides_bytes{};  // in memory; empty: all elements lie one behind the other
    std::string dtype = "float32";              // in the file
    std::string source_dtype{};                 // in memory; empty: that of the file
    HistoryStatistic statistic = HistoryStatistic::none;
    std::uint32_t keep_bits = 0;                 // of the mantissa, for files that compress well; 0: all
    std::vector<std::uint64_t> global_shape{};   // of all processes' boxes together; empty: process 0 writes it all
    std::vector<std::uint64_t> start{};          // where the box of this process begins there
    std::vector<std::string> file_dimensions{};  // their order in the file; empty: as in memory
    std::vector<HistoryAttribute> attributes{};
    std::optional<HistoryCompression> compression{};  // none: that of the history
    // Elements of a compressed chunk along each dimension. Empty: layers of the nearest dimensions, 1 MiB at most.
    std::vector<std::uint64_t> chunk_shape{};
};

// Values that do not change: coordinates, heights, masks. They are in the file from its first moment on.
struct HistoryConstant {
    std::string name;
    std::vector<std::string> dimensions{};  // none: one value
    std::vector<std::uint64_t> shape{};
    std::string dtype = "float64";
    std::vector<std::byte> values{};  // all, in C order and in this machine's order of bytes
    std::vector<HistoryAttribute> attributes{};
};

struct HistoryOptions {
    // "cdf5" or "cdf2": classic netCDF; "netcdf4"; "hdf5": the same without netCDF's attributes. Folders: "zarr", a
    // store of version 3; "raw", a file of plain elements for each variable, and an index.
    std::string format = "cdf5";
    std::uint32_t slots = 2;    // 1 to 64; 0: put() writes, and nothing is compressed
    std::uint32_t process = 0;  // the number of this process among those that write the file
    std::uint32_t processes = 1;
    MemoryKind memory = MemoryKind::device;  // of fields and slots: device, or system for fields of the host
    std::string time_units{};                // e.g. "seconds since 2000-01-01 00:00:00"; empty: the time has no units
    std::string calendar = "standard";       // one of the CF conventions
    double start_time = 0;                   // where the first interval of a statistic begins
    bool durable = false;                    // a step that readers see survives a power cut
    bool replace = true;                     // an existing file of that name may be replaced
    bool may_have_gaps = false;              // elements of global_shape may be in no box, as those of land in an ocean
    TransferOptions transfer{};              // how the data of a step move
    HistoryCompression compression{};        // of each field of more than one element
    std::uint32_t encode_threads = 0;        // that compress a step; 0: one for each CPU of this process
};

// One dimension of the grid of a model, of the whole domain.
struct HistoryGridAxis {
    // Positions of the faces of all cells, those of the halo at both ends too: one more than there are cells.
    std::vector<double> faces{};
    std::uint64_t halo = 0;       // cells of it at each end
    std::uint32_t processes = 1;  // that share the cells, each as many
    bool is_periodic = false;
    // How much the boundary damps in each cell, and on each face; empty: not at all.
    std::vector<double> centre_factors{}, face_factors{};
};

// What the layout of a known model says of a history besides its fields.
struct HistoryPreset {
    std::string layout = "scale";  // the only one: SCALE-RM, with its cartesian grid
    std::string title{}, source{}, institution{};
    std::string mapping{};  // the projection of the map, as CF names it in grid_mapping_name; empty: none
    // Processes are numbered along x first. One that writes all has a process of 0, and processes of 1.
    HistoryGridAxis x{}, y{}, z{};
    std::uint32_t process = 0;
    bool has_boundary = false;  // fields have the halo too at those ends of the domain that are not periodic
    // Faces of layers in ocean, land and urban canopy, in m below the ground; empty: there are none.
    std::vector<double> ocean_faces{}, land_faces{}, urban_faces{};
    std::vector<double> pressures_hpa{};
};

struct HistoryFacts {
    std::uint64_t steps_ended = 0;
    std::uint64_t steps_written = 0;    // whose data, of this process, are in the file
    std::uint64_t steps_published = 0;  // that readers see
    std::uint64_t step_bytes = 0;       // of one step in the file, where nothing is compressed
    std::uint64_t slot_bytes = 0;       // of all slots; without slots: where fields are converted
    double put_seconds = 0;             // in put() and end_step(), without waits for a slot
    double wait_seconds = 0;            // for a free slot: the file is slower than the model
    double write_seconds = 0;           // in the thread, from a packed slot to a step that readers see
    std::uint64_t stored_bytes = 0;     // of all steps that were written, as the file has them
    double encode_seconds = 0;          // of write_seconds, for the compression
    Evidence last;                      // of the last transfer: of a step, or without slots of a field
};

// Elements along one dimension that a process has of a variable.
struct HistoryShare {
    std::uint64_t start = 0;
    std::uint64_t shape = 0;
};
// Boxes of which any store can be made: each process has as many elements as the others, the last one that has some may
// have fewer, and those behind it have none. No other division gives the fullest process fewer. Throws
// Error{invalid_argument} of a process that is not below `processes`.
HistoryShare history_split(std::uint64_t length, std::uint32_t processes, std::uint32_t process);

class History {
  public:
    // The file appears at the first put(), whole and without steps. Throws Error of options that make no sense.
    History(const Context& context, std::string name, const HistoryOptions& options = {});
    // Lets the steps that ended be written. Their errors are lost: call close().
    ~History();
    History(History&&) noexcept;
    History& operator=(History&&) noexcept;

    // Before the first put(). Throw Error{invalid_argument}.
    void define(const HistoryVariable& variable);
    void define_constant(const HistoryConstant& constant);
    // `variable`: a variable or constant, or "time"; empty: the file. The attribute replaces one of its name.
    void set_attribute(const HistoryAttribute& attribute, const std::string& variable = {});
    // Coordinates, and attributes of the file and of all that was defined before, as the model writes them. What the
    // caller has set goes before them, and so do attributes that are set later. The times have bounds.
    void use_preset(const HistoryPreset& preset);

    // Makes the file and the slots; of one process the first put() does it where this was not called. Definitions end
    // with it.
    void begin();
    // The same in all processes that make the same file: a sum of its header and its constants.
    std::uint64_t digest() const;
    // Of several processes that write a store: numbers of whose multiples each box of this process begins and ends, one
    // for each dimension of each variable with global_shape; 0: any. They become what the caller makes of them, until
    // the next definition: the greatest common divisors of those of all processes, before begin(). digest() then
    // throws Error{invalid_argument} where boxes do not go together. Empty of other formats, and of one process.
    std::span<std::uint64_t> cuts();
    // Of several processes: a number for each variable with global_shape, by which all know that their boxes have each
    // element once. They become the sums of those of all processes, which overflow as numbers without a sign do, before
    // begin(): that throws Error{invalid_argument} where boxes have gaps, or overlap. Empty with may_have_gaps, and of
    // one process.
    std::span<std::uint64_t> coverage();
    // Fields that are put from now on are made on this stream, a cudaStream_t as a number: its work comes first. put()
    // then does not wait for the device. Later work of the stream waits until the field is packed: it may change the
    // field, and other streams and the host may when it is done. 0, as at first: the default stream, and put() waits.
    void use_stream(std::uintptr_t stream);
    // `data`: the first element of the array in memory, halo included. `strides_bytes`: of this array; empty: as it was
    // defined. Throws Error: of an unknown variable, of memory
    // of another kind, of a second put in a step without a statistic, and of a step that failed before.
    void put(const std::string& variable, const void* data, std::span<const std::int64_t> strides_bytes = {});
    // Until put() finds a free slot, or a step failed. False at the deadline.
    bool wait_for_slot(Deadline deadline);
    // Throws Error where a variable was not put, where the time is no number or not later than the last one, and of a
    // step that failed before.
    void end_step(double time);
    // Does all of end_step() that may fail, and throws what end_step() would throw. Where it throws nothing an
    // end_step() of the same time that follows does not throw. Several processes do this first, and where one of them
    // cannot end the step all drop it: else what one calls step 5 would be step 6 of another.
    void check_step(double time);
    // Forgets what was put since the last end of a step.
    void drop_step();
    // Until the data of every step that ended are written, and seen by readers if no other process writes the file.
    // False at the deadline. Throws Error of a step that failed.
    bool wait(Deadline deadline = Deadline::never());
    // For several processes alone: readers see so many steps from now on. Throws Error{invalid_argument} of a step that
    // this process has not written, and, when it is done, of a step that failed.
    void publish(std::uint64_t steps);
    HistoryFacts facts() const;
    // Waits, and closes the file. Throws Error of a step that failed, and of fields that were put without an end of
    // their step. Does nothing the second time.
    void close();

  private:
    std::unique_ptr<history::HistoryState> state_;
};

}  // namespace penstock
