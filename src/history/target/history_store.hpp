// HistoryStore: a history in a Zarr store of version 3, one file for each variable and step.
//
// A chunk's file appears under its name when it is whole, and in durable histories survives a power cut then. Readers
// see a step when the document of the root, which has those of all arrays in it, is replaced by one that counts it. One
// writer at a time: it holds a lock on the folder until it is closed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/zarr/zarr_documents.hpp"
#include "history/target/history_target.hpp"
#include "os/fd.hpp"

namespace penstock::history {

class HistoryStore final : public HistoryTarget {
  public:
    // Throws Error: of the schema, of the system, where another history writes the store, and where the name is of
    // something else than a store.
    HistoryStore(const Context& context, const HistoryTargetOptions& options, const formats::FileSchema& schema);
    ~HistoryStore() override;

    const std::string& name() const noexcept override { return name_; }
    const File& file(std::size_t variable) const noexcept override { return *chunks_[variable].file; }
    std::vector<formats::DataPlace> reserve(std::span<const formats::StoredChunks> stored) override;
    void write_numbers(std::size_t variable, const formats::DataPlace& place,
                       std::span<const double> numbers) override;
    void hold(std::span<const formats::DataPlace> places) override;
    void sync() override {}  // of chunks by publish()
    void publish(std::uint64_t steps) override;
    void close() override;

  private:
    // A file of the step that was reserved last, under way.
    struct GrowingChunk {
        std::optional<File> file;
        std::uint64_t bytes = 0;  // of its data
        formats::StoredChunks stored;
    };
    void fill_folder(const std::string& folder, const formats::FileSchema& schema) const;
    void write_file(const std::string& path, std::span<const std::byte> bytes) const;
    void write_text(const std::string& path, const std::string& text) const;

    Context context_;
    std::string name_;
    std::string place_;  // the same from the root on: the program may change its folder
    bool durable_;
    formats::FileSchema schema_;  // without values
    formats::ZarrDocuments documents_;
    std::vector<GrowingChunk> chunks_;          // by variable
    std::vector<std::vector<double>> numbers_;  // of the chunk that is not full yet
    std::uint64_t reserved_ = 0;
    os::UniqueFd lock_;
};

}  // namespace penstock::history
