// MappedFile: the mapped parts and registered segments of one file. Only Mappings uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "path/mapped/mappings.hpp"

namespace penstock::path {

class MappedFile {
  public:
    explicit MappedFile(const MappingsOptions& options);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    Mappings::View view(const FileHandle& file, std::uint64_t offset, std::uint64_t bytes);
    std::uint64_t register_next(const FileHandle& file, std::string& why);
    bool registered(std::uint64_t offset, std::uint64_t bytes) const;
    std::string refusal() const;
    // See Mappings::copied. Returns the memory to unmap now, in whole pages.
    std::vector<std::span<std::byte>> copied(std::uint64_t offset, std::uint64_t bytes);

  private:
    struct MappedPart {  // bytes [start, start + bytes) of the file; the last part may reach past the end of the file
        std::uint64_t start = 0;
        std::uint64_t bytes = 0;
        std::byte* memory = nullptr;
    };
    struct PinnedSegment {  // a registered range, inside one part
        std::uint64_t start = 0;
        std::uint64_t bytes = 0;
        std::byte* memory = nullptr;
    };
    struct Block {  // a block of the file that was read in part and stays mapped
        std::uint64_t index = 0;
        std::uint64_t copied_bytes = 0;
    };
    std::span<std::byte> memory_of(std::uint64_t block) const noexcept;  // Requires: the caller holds mutex_.
    int cover(const FileHandle& file, std::uint64_t size);  // maps the file up to `size`; returns an errno or 0
    const MappedPart* part_at(std::uint64_t offset) const noexcept;
    const PinnedSegment* segment_at(std::uint64_t offset) const noexcept;
    bool next_segment(std::uint64_t size, PinnedSegment& segment) const noexcept;

    const MappingsOptions options_;
    const std::uint64_t block_bytes_;  // at most segment_bytes, so that a block never spans two parts
    std::mutex registering_;           // allows one registration at a time; locked before mutex_
    mutable std::mutex mutex_;
    std::vector<MappedPart> parts_;        // guarded by mutex_; by start, without gaps
    std::vector<PinnedSegment> segments_;  // guarded by mutex_; by start, without gaps
    std::deque<Block> blocks_;             // guarded by mutex_; oldest first
    std::string refusal_;                  // guarded by mutex_
};

}  // namespace penstock::path
