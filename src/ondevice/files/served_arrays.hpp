// ServedArrays: what the service threads share: the files of all arrays, which one of them serves a request, and the
// last failures, for the sake of whoever has only a status to tell of them.
//
// Requests name arrays and offsets in them. Files are numbered through, those of array 0 first.
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
    Operation operation = Operation::read;
    u32 file = 0;
    u64 offset_bytes = 0;  // in the file
    u64 bytes = 0;         // 0: of all of the file
    int system_code = 0;   // errno; 0: none
};

class ServedArrays {
  public:
    // The handles must outlive this. Throws Error when files do not fit together or there are too many.
    explicit ServedArrays(const std::vector<FileSet>& arrays);

    // The file that serves a read or a write; `request` becomes one of it. invalid: there is no such array, or the
    // range does not lie in one stripe.
    Status locate(Request& request) const noexcept;
    struct Range {
        u32 first;
        u32 count;
    };
    // Of an array; none: there is no such array.
    Range files_of(u32 array) const noexcept;
    u32 files() const noexcept { return static_cast<u32>(files_.size()); }
    ServedFile& file(u32 number) const noexcept { return *files_[number]; }

    // The first file of an array that is shorter than it was, as a failure of all of it.
    std::optional<ServedFailure> cut_short(u32 array) const noexcept;

    void failed(const ServedFailure& failure);
    // How many there were. Any thread may ask, as the next.
    u64 failures() const;
    // Those after the first `before`, the earliest first; of very many, the last kFailuresKept.
    std::vector<ServedFailure> failures_since(u64 before) const;
    static constexpr u64 kFailuresKept = 256;

  private:
    struct Array {
        Stripes stripes;
        u64 bytes;
        u32 first;
    };
    std::vector<Array> arrays_;
    std::vector<std::unique_ptr<ServedFile>> files_;
    mutable std::mutex mutex_;
    std::vector<ServedFailure> last_;  // by number modulo kFailuresKept
    u64 failures_ = 0;
};

}  // namespace penstock::ondevice
