// small_read(): a read of some KiB on the calling thread, without the record of a transfer.
//
// The policy leaves small reads, whose caller waits, to the calling thread and the page cache: one system call, and one
// copy where the memory is a device's. Making a transfer for one takes ten times as long as the call. The caller
// cannot wait for such a read, cancel it or ask how far it is, so none of that is needed, and all of its evidence
// follows from the few numbers of a SmallRead.
//
// Reads of up to policy::caller_cached_bytes() go so too where their bytes are in the page cache, which the read itself
// finds out: it waits for no storage.
//
// What must stay true: it is taken only where a transfer would move the bytes in the same way; a read that does not
// bring all of its bytes is left to a transfer, which tells the end of the file and all errors.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "penstock/context.hpp"

namespace penstock::context {

class OpenFile;
struct Extent;
struct Submission;

inline constexpr auto kLastOffset = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

// What the policy said of small reads of a context, by all that it looks at. A context that learns remembers nothing.
class SmallPlans {
  public:
    // Null: such a read is to be a transfer.
    std::shared_ptr<const SmallPlan> of(const Submission& submission, const Extent& extent, FirstTouch touch);
    // What of() has said of files that no profile is asked about. Nothing: it was not asked.
    std::optional<std::shared_ptr<const SmallPlan>> known(MemoryKind kind, std::uint64_t bytes, FirstTouch touch);

  private:
    static constexpr std::size_t kMostPlans = 256;  // then they are forgotten
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::shared_ptr<const SmallPlan>> known_;  // guarded by mutex_
};

// Requires: a submission of a read whose caller waits, with options that are all of their defaults.
// Returns nothing where a transfer must be made; the memory may then hold some of the bytes. `after`: a native stream
// of the device, whose work comes first.
// Throws Error of a closed file, and in a forked child.
std::optional<SmallRead> small_read(const Submission& submission, const Extent& extent,
                                    std::optional<std::uintptr_t> after = {});

// The same for a write of memory that the host reaches to the page cache, up to policy::caller_cached_bytes(). What
// failed is told by a transfer, which writes it again.
std::optional<SmallWrite> small_write(const Submission& submission, const Extent& extent);

// How many ranges, from the first on, continue each other in the file and in memory: one call brings them all.
std::size_t continued(std::span<const Range> ranges);

struct SmallPieces {
    MemoryView memory;
    std::span<const Range> ranges;  // in it
    bool cached_only = false;       // nothing where the thread would wait for storage; the host reaches the memory
};

// The same for pieces of memory, one after the other.
std::optional<SmallReads> small_reads(const Submission& submission, const std::shared_ptr<OpenFile>& file,
                                      const SmallPieces& pieces);

// small_write() of pieces of memory that the host reaches, one after the other, each up to kSmallReadBytes.
std::optional<SmallWrites> small_writes(const Submission& submission, const std::shared_ptr<OpenFile>& file,
                                        const SmallPieces& pieces);

}  // namespace penstock::context
