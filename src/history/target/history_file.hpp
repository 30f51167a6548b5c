// HistoryFile: a history in one file. One writer at a time: it holds a lock on the file until it is closed. Of several
// processes, number 0 makes the file, holds the lock, and writes all but the data; the others know by the schema where
// data go.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/file_sink.hpp"
#include "history/target/history_target.hpp"
#include "os/fd.hpp"
#include "penstock/context.hpp"

namespace penstock::history {

// Keeps nothing but a sum of what is written to it, as FNV-1a makes it, of 8 bytes at a time.
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

// Makes what writes one format's metadata.
using MakeGrowing = formats::GrowingFilePtr (*)(const formats::FileSchema&, formats::ByteSink&);

class HistoryFile final : public HistoryTarget {
  public:
    // Throws Error: of the schema, of the system, and where another history writes the file.
    HistoryFile(const Context& context, const HistoryTargetOptions& options, const formats::FileSchema& schema,
                MakeGrowing make);
    ~HistoryFile() override;

    const std::string& name() const noexcept override { return file_->name(); }
    bool has_own_files() const noexcept override { return false; }
    const File& file(std::size_t) const noexcept override { return *file_; }
    std::vector<formats::DataPlace> reserve(std::span<const formats::StoredChunks> stored) override;
    void write_numbers(std::size_t index, const formats::DataPlace& place,
                       std::span<const double> numbers) override;
    void hold(std::span<const formats::DataPlace> places) override;
    void sync() override { file_->sync(); }
    void publish(std::uint64_t steps) override;
    void close() override;

  private:
    void need_a_name() const;

    formats::FileSink sink_;
    SummingSink none_;  // of processes other than the first
    std::mutex mutex_;  // guards growing_, which a thread asks for places while another one publishes
    formats::GrowingFilePtr growing_;
    std::optional<File> file_;
    os::UniqueFd lock_;
};

}  // namespace penstock::history
