// FileSchema: what a new file of named variables will hold, as plain values. GrowingFile: the seam through which steps
// are added to one. ByteSink: what both write their metadata to, so that they know neither files nor contexts.
//
// Others move the data of a step. The order is: reserve() tells where they go, the data are written, publish() lets
// readers see the step. A process that ends at any moment leaves a file whose readers find every published step whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stored_dataset.hpp"

namespace penstock::formats {

// Bytes of metadata, written in the order of the calls.
class ByteSink {
  public:
    virtual ~ByteSink() = default;
    virtual const std::string& name() const = 0;  // of the file, for errors
    // All of the bytes. Throws Error of the system.
    virtual void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;
    // What was written before this is on stable storage before what is written after it. Does nothing for files that
    // need not survive a power cut. Throws Error of the system.
    virtual void barrier() = 0;
};

struct NewAttribute {
    std::string name;
    ElementType type{};                  // kind 'S': text of fixed length, UTF-8
    std::vector<std::uint64_t> shape{};  // elements; none: one value
    std::vector<std::byte> bytes{};      // in this machine's order
};

NewAttribute text_attribute(std::string name, std::string_view text);
NewAttribute number_attribute(std::string name, double value);                     // float64
NewAttribute number_attribute(std::string name, float value);                      // float32
NewAttribute number_attribute(std::string name, std::int32_t value);               // int32
NewAttribute numbers_attribute(std::string name, std::span<const double> values);  // float64, one dimension

struct NewDimension {
    std::string name;
    std::uint64_t length = 0;
    bool grows = false;  // at most one does; its length is the number of published steps
};

struct NewVariable {
    std::string name;
    ElementType type{};                     // in this machine's order; the format tells the order that it stores
    std::vector<std::size_t> dimensions{};  // numbers of FileSchema::dimensions, in C order; the growing one is first
    std::vector<NewAttribute> attributes{};
    std::vector<std::byte> values{};  // of a variable that does not grow, in this machine's order: written at once
    // That the data of a step went through before they are written, in this order. Formats without filters refuse any.
    std::vector<data::Filter> filters{};
    // Elements of a chunk along each dimension but the growing one; empty: the format chooses. Filters work on chunks.
    // Chunks at the end of a dimension that has no whole number of them are as large as others.
    std::vector<std::uint64_t> chunk{};
    // Elements of a step that one data file of a store has, along each dimension but the growing one; empty: all.
    std::vector<std::uint64_t> block{};
};

struct FileSchema {
    std::vector<NewDimension> dimensions{};
    std::vector<NewVariable> variables{};
    std::vector<NewAttribute> attributes{};
};

// Bytes that each chunk of a step takes in the file, in C order.
using StoredChunks = std::vector<std::uint64_t>;

// Bytes in the file, one behind the other.
struct DataPlace {
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
};

class GrowingFile {
  public:
    virtual ~GrowingFile() = default;
    virtual const char* format() const = 0;
    // Whether the elements of data lie in the file with the byte of the highest value first.
    virtual bool is_big_endian() const = 0;
    // For each variable of the FileSchema: the place of one that does not grow, and an empty one for one that grows.
    virtual std::vector<DataPlace> fixed() const = 0;
    // Where the data of one more step go, for each variable of the FileSchema; an empty place for one that stays.
    // `stored` tells for each variable what its chunks take where that is not their size (compressed): they lie one
    // behind the other. An empty one is of a variable that is as large as it says, an empty list of none compressed.
    // Readers see nothing of it. Steps may be reserved while earlier ones are not published, and what is published
    // changes no place: of two files of one schema, all steps have the same. Throws Error.
    virtual std::vector<DataPlace> reserve(std::span<const StoredChunks> stored) = 0;
    // Requires: the data of the first `steps` steps are written. Readers see them from now on, and after a power cut
    // where the sink has barriers. Throws Error: then they see those of the last publish that did not throw, or these.
    virtual void publish(std::uint64_t steps) = 0;
    // Bytes that the file must have for its readers: of what was published.
    virtual std::uint64_t end_bytes() const = 0;
};

using GrowingFilePtr = std::unique_ptr<GrowingFile>;

}  // namespace penstock::formats
