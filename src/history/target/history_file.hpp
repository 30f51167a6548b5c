// HistoryFile: a history in one file. One writer at a time: it holds a lock on the file until it is closed. Of several
// processes, number 0 makes the file, holds the lock, and writes all but the data; the others know by the schema where
// data go.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/file_sink.hpp"
#include "history/target/file_draft.hpp"
#include "history/target/history_target.hpp"
#include "os/fd.hpp"
#include "penstock/context.hpp"

namespace penstock::history {

class HistoryFile final : public HistoryTarget {
  public:
    // Throws Error: of the system, and where another history writes the file.
    HistoryFile(const Context& context, const HistoryTargetOptions& options, std::unique_ptr<FileDraft> draft);
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
    std::mutex mutex_;  // guards draft_, which a thread asks for places while another one publishes
    std::unique_ptr<FileDraft> draft_;
    std::optional<File> file_;
    os::UniqueFd lock_;
};

}  // namespace penstock::history
