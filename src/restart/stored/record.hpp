// RestartRecord: what a file of a restart says of itself, in a form that its reader needs no HDF5 for.
//
// It is a dataset of the file, and its last bytes: a text of JSON, and a trailer of fixed size with the number of the
// generation, the length of the file, and checksums of the text, of itself, of HDF5's metadata and of the table of
// checksums of the data. So a file that was cut short, or of which any byte changed, is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/snapshot.hpp"

namespace penstock::restart {

struct RecordedField {
    std::string name;
    std::string dtype;
    std::uint64_t item_bytes = 1;
    std::vector<std::uint64_t> shape{};
    std::uint64_t offset_bytes = 0;  // in the file
    std::uint64_t bytes = 0;
    std::uint64_t first_block = 0;  // in the table of checksums
};

struct RestartRecord {
    std::vector<RecordedField> fields{};
    std::vector<SnapshotAttribute> attributes{};
    std::uint64_t sums_offset = 0;  // of the table of checksums
    std::uint64_t blocks = 0;       // in it
};

struct RecordTrailer {
    std::uint64_t text_bytes = 0;
    std::uint64_t generation = 0;
    std::uint64_t file_bytes = 0;
    std::uint64_t metadata_bytes = 0;  // of HDF5, from the first byte on
    std::uint32_t text_sum = 0;
    std::uint32_t table_sum = 0;
    std::uint32_t metadata_sum = 0;
};
inline constexpr std::uint64_t kTrailerBytes = 64;

// A multiple of 8 bytes, so that the trailer behind it ends the file.
std::string record_text(const RestartRecord& record);
std::vector<std::byte> trailer_bytes(const RecordTrailer& trailer);

// What is wrong with a record: a cause in words.
struct BadRecord {
    std::string cause;
};
// Throw BadRecord.
RecordTrailer parse_trailer(std::span<const std::byte> bytes, std::uint64_t file_bytes);
RestartRecord parse_record(std::string_view text, const RecordTrailer& trailer);

std::uint32_t sum_of(std::span<const std::byte> bytes) noexcept;

}  // namespace penstock::restart
