// NamedFile: a file that is opened for the small reads of one call, and closed behind them.
//
// A program that wants one row opens a file, reads and closes it. Opening a File asks what large transfers need,
// O_DIRECT first of all, and takes three times as long as such a read. What must stay true: bytes and evidence are
// those of File::try_small_read of a file that was opened just now. Where those would depend on more, there is none.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "os/fd.hpp"
#include "penstock/context.hpp"

namespace penstock::context {

class NamedFile {
  public:
    // Nothing: it cannot be opened, is no regular file, or this context reads it otherwise than by the page cache on
    // the calling thread. Throws Error in a forked child.
    static std::optional<NamedFile> open(const Context& context, const std::string& name);

    const struct stat& status() const noexcept { return status_; }
    // As File::try_small_read.
    std::optional<SmallRead> read(MemoryView memory, std::uint64_t offset_bytes) const;
    // As File::try_small_reads, or try_cached_reads, into memory that the host reaches. Any number of threads may call
    // it. Where the file system does not say whether a read would wait, nothing is taken to be cached.
    std::optional<SmallReads> read_many(const MemoryView& memory, std::span<const Range> ranges,
                                        bool cached_only = false) const;

  private:
    NamedFile(const Context& context, const std::string& name) : context_(context), name_(name) {}
    std::shared_ptr<const SmallPlan> plan_of(const MemoryView& memory, std::uint64_t offset_bytes,
                                             FirstTouch touch) const;
    // Whether there is a sample of such reads in `made` now. False: a transfer has to read them.
    bool sample(const Range& range, std::pair<MemoryKind, FirstTouch> kind, SmallReads& made) const;
    bool moved(const MemoryView& memory, std::uint64_t offset_bytes) const;

    const Context& context_;  // outlives it, and so does the name
    const std::string& name_;
    os::UniqueFd fd_;
    struct stat status_ {};
};

}  // namespace penstock::context
