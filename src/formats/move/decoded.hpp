// DecodedReader: chunks that went through filters, read whole into memory of the host and decoded there on all cores.
//
// Streams of at most 32 MiB are read while those before are decoded. Elements for a device are decoded into pinned
// memory, from which the device takes them. What must stay true: no transfer outlives the object.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/decode/decode_chunks.hpp"
#include "formats/chunk_files.hpp"
#include "formats/data_file.hpp"

namespace penstock::formats {

class DecodedReader {
  public:
    DecodedReader(const DataFile& file, const StoredDataset& dataset, const MemoryView& memory,
                  const TransferOptions& options);
    DecodedReader(const DecodedReader&) = delete;
    DecodedReader& operator=(const DecodedReader&) = delete;
    ~DecodedReader();

    // Throws Error of a chunk that could not be read or is damaged, this one or one before.
    void add(const data::SelectedPart& part, const ChunkPlace& place);
    void finish();
    const Outcome& sum() const noexcept { return sum_; }  // bytes: of elements

  private:
    struct EncodedPart {
        data::SelectedPart part;
        std::string file;
        std::size_t in_files = 0;  // the number of the file among those of the streams
        std::uint64_t offset_bytes = 0, stored_bytes = 0, in_streams = 0, in_scratch = 0, element_bytes = 0;
        std::uint32_t skipped = 0;
    };
    struct Streams {
        std::vector<EncodedPart> parts;
        std::vector<File> files;
        std::uint64_t stored_bytes = 0, element_bytes = 0;
        std::optional<Buffer> memory;
        std::optional<Transfer> transfer;
    };
    bool decodes_in_place() const noexcept;
    void start(Streams& streams);
    void settle(Streams& streams);
    void decode(Streams& streams);
    void turn();

    const DataFile& file_;
    const StoredDataset& dataset_;
    MemoryView memory_;
    TransferOptions options_;
    FilesOfBatch most_files_{};
    data::Pipeline pipeline_;
    std::array<Streams, 2> streams_{};
    std::size_t filling_ = 0;
    std::optional<Buffer> pinned_{};
    Outcome sum_{};
};

}  // namespace penstock::formats
