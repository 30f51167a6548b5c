// HistoryFile: the file of a history. It appears under its name whole and without steps, and then takes one step after
// the other. One writer at a time: it holds a lock on the file until it is closed. Of several processes, number
// 0 makes the file, holds the lock, and writes all but the data; the others know by the schema where data go.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/file_sink.hpp"
#include "os/fd.hpp"
#include "penstock/context.hpp"

namespace penstock::history {

// Keeps nothing but a sum of what is written to it, FNV-1a of 64 bits.
class SummingSink final : public formats::ByteSink {
  public:
    explicit SummingSink(std::string name) : name_(std::move(name)) {}
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override;
    void barrier() override {}
    std::uint64_t sum() const noexcept { return sum_; }

  private:
    std::string name_;
    std::uint64_t sum_ = 0xcbf29ce484222325;
};

struct HistoryFileOptions {
    std::string name;
    std::string format;
    bool durable = false;
    bool replace = true;
    bool is_first = true;  // the process that makes the file
};

// Throws Error{invalid_argument} of a format that there is not.
bool stores_big_endian(const std::string& format);
// Sum of what makes the file of a schema. Throws Error of the schema.
std::uint64_t digest_of(const std::string& format, const formats::FileSchema& schema);

class HistoryFile {
  public:
    // Throws Error: of the schema, of the system, and where another history writes the file.
    HistoryFile(const Context& context, const HistoryFileOptions& options, const formats::FileSchema& schema);

    const File& file() const noexcept { return *file_; }
    // Where the data of each variable of the schema go in the next step; see GrowingFile.
    std::vector<formats::DataPlace> reserve(std::span<const formats::StoredChunks> stored = {});
    // Numbers that lie at a place, e.g. the time: written in the order of bytes of the file.
    void write_numbers(const formats::DataPlace& place, std::span<const double> numbers);
    // The file holds all of these places, also where no process wrote the last bytes: readers refuse a file that is
    // shorter than it says.
    void hold(std::span<const formats::DataPlace> places);
    void publish(std::uint64_t steps);
    void close();

  private:
    formats::FileSink sink_;
    SummingSink none_;  // of processes other than the first
    std::mutex mutex_;  // guards growing_, which a thread asks for places while another one publishes
    formats::GrowingFilePtr growing_;
    std::optional<File> file_;
    os::UniqueFd lock_;
};

}  // namespace penstock::history
