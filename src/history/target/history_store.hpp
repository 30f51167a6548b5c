// HistoryStore: a history in a store, a folder with files for each variable: Zarr of version 3, or raw files.
//
// A data file has one step, and appears under its name when it is whole; or it has several, is there from the first of
// them on, and no step in it is changed again. In durable histories the data survive a power cut before a document says
// so. Readers see a step when the document of the root counts it. One writer at a time: it holds a lock on the folder
// until it is closed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/stores/store_documents.hpp"
#include "history/target/history_target.hpp"
#include "history/target/store_texts.hpp"
#include "os/fd.hpp"

namespace penstock::history {

class HistoryStore final : public HistoryTarget {
  public:
    // Throws Error: of the schema, of the system, where another history writes the store, and where the name is of
    // something else than a store. An older store is as it was then.
    HistoryStore(const Context& context, const HistoryTargetOptions& options, const formats::FileSchema& schema,
                 formats::StoreDocumentsPtr documents);
    ~HistoryStore() override;
    const std::string& name() const noexcept override { return name_; }
    const File& file(std::size_t variable) const noexcept override { return *data_[variable].file; }
    std::vector<formats::DataPlace> reserve(std::span<const formats::StoredChunks> stored) override;
    void write_numbers(std::size_t variable, const formats::DataPlace& place,
                       std::span<const double> numbers) override;
    void hold(std::span<const formats::DataPlace> places) override;
    void sync() override {}  // of data by publish()
    void publish(std::uint64_t steps) override;
    void settle() override;
    void close() override;

  private:
    // The file with the newest step of a variable.
    struct GrowingData {
        std::optional<File> file{};
        formats::StoredStep step{};  // that was reserved last; no chunks, where it is not compressed
    };
    bool is_growing(std::size_t variable) const;
    void fill_folder(const std::string& folder, const formats::FileSchema& schema) const;
    void write_file(const std::string& path, std::span<const std::byte> bytes) const;
    void open_all();
    File opened(std::size_t variable, std::uint64_t step) const;
    std::uint64_t next_offset(std::size_t variable, bool is_compressed) const;
    void begin_writeback() const;
    void finish_data();
    void show(std::uint64_t steps);

    Context context_;
    std::string name_;
    std::string place_;  // the same from the root on: the program may change its folder
    bool durable_;
    formats::FileSchema schema_;  // without values
    formats::StoreDocumentsPtr documents_;
    StoreTexts texts_;
    std::vector<GrowingData> data_;  // by variable
    std::uint64_t reserved_ = 0;
    std::uint64_t shown_ = 0;
    std::chrono::steady_clock::time_point settled_ = std::chrono::steady_clock::now();
    std::string root_;     // as it is in the store
    os::UniqueFd folder_;  // locked
};

}  // namespace penstock::history
