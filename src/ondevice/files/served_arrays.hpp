// What the service threads share: the files of all arrays, the rule which file serves a request, and the last failures,
// for callers that have no more than a status.
//
// A request names an array and an offset in it. Files are numbered through, those of array 0 first.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ondevice/files/file_set.hpp"
#include "ondevice/files/served_file.hpp"

namespace penstock::ondevice {

struct ServedFailure {
    Status status = Status::ok;
    RequestOperation operation = RequestOperation::read;
    u32 file = 0;
    u64 offset_bytes = 0;  // in the file
    u64 bytes = 0;         // 0: all of the file
    int system_code = 0;   // errno; 0: none
};

class ServedArrays {
  public:
    // Requires: the handles outlive this. Throws Error if files do not fit together or are too many.
    explicit ServedArrays(const std::vector<FileSet>& arrays);

    // Changes a read or write of an array to a request of the file that serves it. invalid: there is no such array, or
    // the range does not lie in one stripe.
    Status locate(Request& request) const noexcept;
    struct FileNumbers {
        u32 first;
        u32 count;
    };
    // The numbers of an array's files; none: there is no such array.
    FileNumbers files_of(u32 array) const noexcept;
    u32 files() const noexcept { return static_cast<u32>(files_.size()); }
    ServedFile& file(u32 number) const noexcept { return *files_[number]; }

    // The first file of an array that is shorter than it was, as a failure of all of it.
    std::optional<ServedFailure> cut_short(u32 array) const noexcept;

    void failed(const ServedFailure& failure);
    // How many failures there were. Any thread may call this and failures_since.
    u64 failures() const;
    // The failures after the first `before`, the earliest first, and at most the last kFailuresKept.
    std::vector<ServedFailure> failures_since(u64 before) const;
    static constexpr u64 kFailuresKept = 256;

  private:
    struct InFiles {
        Stripes stripes;
        u64 bytes;
        u32 first;
    };
    std::vector<InFiles> arrays_;
    std::vector<std::unique_ptr<ServedFile>> files_;
    mutable std::mutex mutex_;
    std::vector<ServedFailure> last_;  // by number modulo kFailuresKept
    u64 failures_ = 0;
};

}  // namespace penstock::ondevice
