// MappedFile: the parts and registered segments of one mapped file. Private to Mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "path/mappings.hpp"

namespace penstock::path {

class MappedFile {
  public:
    explicit MappedFile(const MappingsOptions& options) : options_(options) {}
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    Mappings::View view(const FileHandle& file, std::uint64_t offset, std::uint64_t bytes);
    std::uint64_t register_next(const FileHandle& file, std::string& why);
    bool registered(std::uint64_t offset, std::uint64_t bytes) const;
    std::string refusal() const;

  private:
    struct Part {  // [start, start + bytes) of the file at memory; the last part may reach past the end of the file
        std::uint64_t start = 0;
        std::uint64_t bytes = 0;
        std::byte* memory = nullptr;
    };
    struct Segment {  // a registered range; inside one part
        std::uint64_t start = 0;
        std::uint64_t bytes = 0;
        std::byte* memory = nullptr;
    };
    int cover(const FileHandle& file, std::uint64_t size);  // maps up to `size`; errno or 0
    const Part* part_at(std::uint64_t offset) const noexcept;
    const Segment* segment_at(std::uint64_t offset) const noexcept;
    bool next_segment(std::uint64_t size, Segment& segment) const noexcept;

    const MappingsOptions options_;
    std::mutex registering_;  // one registration at a time; taken before mutex_
    mutable std::mutex mutex_;
    std::vector<Part> parts_;        // guarded by mutex_; by start, without gaps
    std::vector<Segment> segments_;  // guarded by mutex_; by start, without gaps
    std::string refusal_;            // guarded by mutex_
};

}  // namespace penstock::path
