// Restart: all that a model needs to go on, in two files of which one is always whole: NAME.0 and NAME.1.
//
// A Restart is told once which fields the model has: name, type, shape, and the memory, of the device or of the host.
// write() stores them as the next generation, in the place of the older one of the two. It is written under another
// name and takes its place when all of it is on stable storage, so a process, a machine or a disk that ends at any
// moment leaves the other generation, or both. read() fills the memory from the newest generation. Each block of the
// data has a checksum, made where the data are and compared where they arrive. A generation that is damaged is passed
// over for the older one, and the facts say so. The files are HDF5: h5py reads the fields by their names.
//
//     penstock::Restart restart(context, "run/restart");
//     restart.set_field({"density", "float64", {nz, ny, nx}, density});
//     if (restart.find()) { restart.read(); step = ...restart.attribute("step")...; }
//     for (...) { compute(density); restart.set_attribute(penstock::snapshot_scalar("step", step)); restart.write(); }
//
// Several processes, of MPI or others, write one file: each has its box of the fields, and any other number of
// processes reads it. Process 0 makes the file and gives it its name; begin(), move() and commit() are the three parts
// of a write, between which the processes wait for each other.
//
// One thread uses a Restart. A forked child must not use one of its parent: calls throw Error{unsupported}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/context.hpp"
#include "penstock/snapshot.hpp"

namespace penstock {

namespace restart {
class RestartState;
}

// A field and the box of it that this process has, whose elements lie one behind the other in C order. Particles are
// rows: the box is so many of them.
struct RestartField {
    std::string name;                    // groups in it are groups of the file, e.g. "gas/positions"
    std::string dtype;                   // e.g. "float64", "uint64"
    std::vector<std::uint64_t> shape;    // of all processes together
    void* data = nullptr;                // the first element of the box; write() changes nothing there
    std::vector<std::uint64_t> start{};  // where the box begins; empty: at the first element
    std::vector<std::uint64_t> count{};  // elements of the box along each dimension; empty: up to the end of the field
};

struct RestartOptions {
    std::uint32_t process = 0;  // the number of this process among those that write and read the files
    std::uint32_t processes = 1;
    MemoryKind memory = MemoryKind::device;  // of all fields: device, or system for fields of the host
    bool durable = true;                     // a generation that write() made survives a power cut
    TransferOptions transfer{};              // how the data move
};

// What one process has written: joined, those of all processes are the checksums of the file.
struct RestartPart {
    std::vector<std::uint32_t> sums{};  // of each block of each field; joined by exclusive or
    std::uint64_t coverage = 0;         // which elements they are of; joined by addition
    void join(const RestartPart& other);
};

struct RestartFacts {
    std::uint64_t generation = 0;  // that was written or read: the first one is 1
    std::uint64_t data_bytes = 0;  // of this process
    double seconds = 0;            // of the call; of a write in parts, from begin() to the end of commit()
    std::string passed_over{};     // why a newer generation, or the other one, was not taken; empty: both are whole
    Evidence evidence;             // of the transfer of the data
    bool is_locked = false;        // of a write: other writers of the name are refused; false: there are no locks there
};

class Restart {
  public:
    // Looks at no file. Throws Error of options that make no sense.
    Restart(const Context& context, std::string name, const RestartOptions& options = {});
    ~Restart();
    Restart(Restart&&) noexcept;
    Restart& operator=(Restart&&) noexcept;

    // For all writes and reads to come; replaces a field, or an attribute, of its name. All processes give the same but
    // boxes and memory.
    void set_field(const RestartField& field);
    void set_attribute(const SnapshotAttribute& attribute);
    void clear();  // fields and attributes that were set
    // Fields are made, and used after a read, on this stream, a cudaStream_t as a number. 0, as at first: the default.
    void use_stream(std::uintptr_t stream);

    // For one process. Throws Error with the name of the field; then both generations are as they were. From the first
    // generation on the name is that of this Restart, as long as it and its process live: other writers are refused.
    RestartFacts write();
    void release() noexcept;  // lets others write the name; the next write takes it again

    // Looks for the newest generation. False: there is none. Throws Error where files are there and none is whole.
    bool find();
    // They tell of the generation that was found or read. Throw Error where it has none of that name.
    std::uint64_t generation() const;
    std::vector<std::string> field_names() const;
    std::vector<std::string> attribute_names() const;
    SnapshotDataset stored(const std::string& field) const;  // its type and shape
    SnapshotAttribute attribute(const std::string& name) const;
    // Fills the memory of all fields that are set. Finds the newest generation where find() was not called, and takes
    // the older one where it is damaged: shapes and attributes may then be others. Throws Error: none is whole, or the
    // one that is read lacks a field, or has it in another type or shape; a next read() then goes on with that one.
    RestartFacts read();

    // A write in parts, for several processes. The same in all processes that make the same file.
    std::uint64_t digest() const;
    // Process 0 first, which makes the file and returns the name that it has for now; the others are given that name.
    std::string begin(const std::string& part = {});
    RestartPart move();                             // writes the boxes of this process
    RestartFacts commit(const RestartPart& whole);  // process 0, when all have moved: joined from what each returned
    void abandon() noexcept;                        // ends a write; process 0 removes the file

    // A read in parts: of the generation that was found. Empty: all is right; else what is damaged, and the processes
    // agree to pass over it, which finds the other generation.
    std::string read_found(RestartFacts& facts);
    bool pass_over(const std::string& cause);  // as find()

  private:
    std::unique_ptr<restart::RestartState> state_;
};

}  // namespace penstock
