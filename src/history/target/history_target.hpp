// HistoryTarget: where the steps of a history go: one file, or the files of a store. It appears under its name whole
// and without steps, and then takes one step after the other. Implementations: HistoryFile, HistoryStore.
//
// A step has places. In one file they are those of the variables, and in a store those of the blocks that this process
// writes. The order of the calls for a step is: reserve(), the data are written to file(), write_numbers(), finish(),
// publish().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"
#include "formats/create/stores/store_documents.hpp"
#include "history/target/file_draft.hpp"
#include "penstock/context.hpp"

namespace penstock::history {

struct HistoryTargetOptions {
    std::string name;
    std::string format;
    bool durable = false;
    bool replace = true;
    bool is_first = true;  // the process that makes the file
    // What each place of a step is, in a store; none: each variable that grows has one, in their order.
    std::optional<std::vector<formats::StoreBlock>> blocks{};
};

class HistoryTarget {
  public:
    virtual ~HistoryTarget() = default;
    virtual const std::string& name() const noexcept = 0;
    // Whether no other process writes the files of this one: then the data and the times of a step are finished where
    // they are written. Else the first process writes times when all have written their data.
    virtual bool has_own_files() const noexcept = 0;
    // Where the step that was reserved last has that place. Requires: it is not empty.
    virtual const File& file(std::size_t place) const noexcept = 0;
    // Where the data of each place go in the next step; see GrowingFile.
    virtual std::vector<formats::DataPlace> reserve(std::span<const formats::StoredChunks> stored) = 0;
    // Numbers of a step, e.g. its time, in the place of this index: written in the order of bytes of the format.
    virtual void write_numbers(std::size_t index, const formats::DataPlace& place, std::span<const double> numbers) = 0;
    // All of these places are there, also where no process wrote the last bytes: readers refuse a file that is shorter
    // than it says.
    virtual void hold(std::span<const formats::DataPlace> places) = 0;
    // The data that were written survive a power cut.
    virtual void sync() = 0;
    // All of the step that was reserved last is written: of durable histories, its files survive a power cut.
    virtual void finish() {}
    // Requires: all processes have finished so many steps.
    virtual void publish(std::uint64_t steps) = 0;
    // The model pauses: what was left for such a moment is done. Throws nothing.
    virtual void settle() {}
    virtual void close() = 0;
};

// Throw Error{invalid_argument} of a format that there is not.
bool stores_big_endian(const std::string& format);
bool makes_store(const std::string& format);
// Whether several processes divide a variable into blocks, each a file of one of them.
bool has_blocks(const std::string& format);
// Lays the file of a schema out; null where the format is a store. Throws Error of the schema.
std::unique_ptr<FileDraft> make_draft(const std::string& name, const std::string& format,
                                      const formats::FileSchema& schema);
// Sum of what makes a store of a schema. Throws Error of the schema.
std::uint64_t digest_of_store(const std::string& format, const formats::FileSchema& schema);
// Where the data of the first step of a store will go, as the target's reserve() will say where nothing is compressed.
// No file is made for it. Throws Error of the schema.
std::vector<formats::DataPlace> first_places(const HistoryTargetOptions& options, const formats::FileSchema& schema);
// A format in one file takes the draft, or makes one where it is null. Throws Error: of the schema, of the system, and
// where another history writes there.
std::unique_ptr<HistoryTarget> make_target(const Context& context, const HistoryTargetOptions& options,
                                           const formats::FileSchema& schema, std::unique_ptr<FileDraft> draft = {});
// Numbers in that order of bytes.
std::vector<std::byte> stored_numbers(std::span<const double> numbers, bool big_endian);

[[noreturn]] void refuse_target(const std::string& name, std::string cause, std::string advice);
[[noreturn]] void refuse_second_writer(const std::string& name);

}  // namespace penstock::history
