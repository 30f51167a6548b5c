// HistoryStore: a history in a store, a folder with files for each variable: Zarr of version 3, or raw files.
//
// A data file has one step, and appears under its name when it is whole; or it has several, is there from the first of
// them on, and no step in it is changed again. In durable histories the data survive a power cut before a document says
// so. Readers see a step when the document of the root counts it. One writer at a time: it holds a lock on the folder
// until it is closed.
//
// Of several processes, number 0 makes the folder, holds the lock, and changes the documents. Each writes data files of
// its own, those of its blocks, where the store has blocks; else its boxes of files that number 0 makes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/stores/store_documents.hpp"
#include "history/target/history_target.hpp"
#include "history/target/store/store_texts.hpp"
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
    bool has_own_files() const noexcept override { return documents_->has_blocks(); }
    const File& file(std::size_t place) const noexcept override { return *data_[place].file; }
    std::vector<formats::DataPlace> reserve(std::span<const formats::StoredChunks> stored) override;
    void write_numbers(std::size_t index, const formats::DataPlace& place, std::span<const double> numbers) override;
    void hold(std::span<const formats::DataPlace> places) override;
    void sync() override;
    void finish() override;
    void publish(std::uint64_t steps) override;
    void settle() override;
    void close() override;

  private:
    // The file with the newest step of a block.
    struct GrowingData {
        formats::StoreBlock block{};
        std::optional<File> file{};
        formats::StoredStep step{};  // that was reserved last; no chunks, where it is not compressed
    };
    void make_folder(const formats::FileSchema& schema, bool may_replace);
    void find_folder();
    std::uint64_t block_bytes(const GrowingData& data) const;
    void fill_folder(const std::string& folder, const formats::FileSchema& schema) const;
    void write_file(const std::string& path, std::span<const std::byte> bytes) const;
    void open_all();
    File opened(const formats::StoreBlock& block, std::uint64_t step) const;
    std::uint64_t next_offset(const GrowingData& data, bool is_compressed) const;
    void begin_writeback(std::uint64_t step) const;
    void show(std::uint64_t steps);
    void settle_texts();

    Context context_;
    std::string name_;
    std::string place_;  // the same from the root on: the program may change its folder
    bool durable_;
    bool is_first_;
    formats::FileSchema schema_;  // without values
    formats::StoreDocumentsPtr documents_;
    std::vector<GrowingData> data_;  // by place
    std::uint64_t reserved_ = 0;
    std::mutex mutex_;  // guards what follows: a thread settles them while another one publishes
    StoreTexts texts_;
    std::uint64_t shown_ = 0;
    std::chrono::steady_clock::time_point settled_ = std::chrono::steady_clock::now();
    std::string root_;     // as it is in the store
    os::UniqueFd folder_;  // locked
};

}  // namespace penstock::history
