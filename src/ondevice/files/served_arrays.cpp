// See served_arrays.hpp.
#include "ondevice/files/served_arrays.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace penstock::ondevice {
namespace {

constexpr std::size_t kFilesMax = std::numeric_limits<u16>::max() + 1u;  // the most that Request::file can number

}  // namespace

ServedArrays::ServedArrays(const std::vector<FileSet>& arrays) {
    last_.reserve(kFailuresKept);
    for (const FileSet& set : arrays) {
        const FileLayout layout = layout_of(set, 1);
        arrays_.push_back({layout.stripes, layout.bytes, files()});
        if (files_.size() + set.files.size() > kFilesMax || arrays_.size() > kFilesMax) {
            throw Error(ErrorCode::invalid_argument, "start an I/O service",
                        "more than " + std::to_string(kFilesMax) + " files", "use several caches");
        }
        for (const FileHandle* file : set.files) files_.push_back(std::make_unique<ServedFile>(*file));
    }
}

Status ServedArrays::locate(Request& request) const noexcept {
    if (request.file >= arrays_.size()) return Status::invalid;
    const InFiles& array = arrays_[request.file];
    if (array.stripes.files == 1) {  // which checks the range itself
        request.file = static_cast<u16>(array.first);
        return Status::ok;
    }
    if (request.bytes == 0) return Status::invalid;
    if (request.offset_bytes > array.bytes || request.bytes > array.bytes - request.offset_bytes) {
        return Status::out_of_range;
    }
    if (request.bytes > array.stripes.together(request.offset_bytes)) return Status::invalid;
    const FilePlace place = array.stripes.place(request.offset_bytes);
    request.file = static_cast<u16>(array.first + place.file);
    request.offset_bytes = place.offset_bytes;
    return Status::ok;
}

ServedArrays::FileNumbers ServedArrays::files_of(u32 array) const noexcept {
    if (array >= arrays_.size()) return {0, 0};
    return {arrays_[array].first, arrays_[array].stripes.files};
}

std::optional<ServedFailure> ServedArrays::cut_short(u32 array) const noexcept {
    const FileNumbers numbers = files_of(array);
    for (u32 file = numbers.first; file < numbers.first + numbers.count; ++file) {
        const u64 bytes = files_[file]->bytes_now();
        if (bytes < files_[file]->size_bytes())
            return ServedFailure{.status = Status::truncated, .file = file, .offset_bytes = bytes};
    }
    return std::nullopt;
}

void ServedArrays::failed(const ServedFailure& failure) {
    const std::scoped_lock lock(mutex_);
    if (failures_ < kFailuresKept)
        last_.push_back(failure);
    else
        last_[failures_ % kFailuresKept] = failure;
    ++failures_;
}

u64 ServedArrays::failures() const {
    const std::scoped_lock lock(mutex_);
    return failures_;
}

std::vector<ServedFailure> ServedArrays::failures_since(u64 before) const {
    const std::scoped_lock lock(mutex_);
    const u64 forgotten = failures_ - last_.size();
    std::vector<ServedFailure> found;
    for (u64 number = std::max(before, forgotten); number < failures_; ++number)
        found.push_back(last_[number % kFailuresKept]);
    return found;
}

}  // namespace penstock::ondevice
