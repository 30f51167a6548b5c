// Turns the statuses of device code into Errors of a DeviceCache: operation, file, range, cause in words, and advice.
#include <algorithm>
#include <cstring>
#include <utility>

#include "context/cache/device_cache_state.hpp"

namespace penstock::context {
namespace {

using ondevice::Status;

struct StatusWords {
    ErrorCode code;
    std::string cause;
    std::string advice;
};

std::string seconds(std::chrono::nanoseconds time) {
    std::string text = std::to_string(std::chrono::duration<double>(time).count());
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " s";
}

StatusWords meaning_of(Status status, const DeviceCacheOptions& options) {
    switch (status) {
        case Status::timed_out:
            return {ErrorCode::timed_out, "a page did not come or go within " + seconds(options.timeout),
                    "look at the storage, or give a longer timeout"};
        case Status::io_error:
            return {ErrorCode::io_error, words(status),
                    "look at the disk, and whether it is full; what could not be written stays in the cache"};
        case Status::read_only:
            return {ErrorCode::read_only, "the file was opened for reading",
                    "open it for writing (OpenMode::read_write)"};
        case Status::all_pinned:
            return {ErrorCode::out_of_memory, words(status), "unpin some, or give the cache more bytes"};
        case Status::truncated:
            return {ErrorCode::end_of_file, "the file is shorter than it was when the cache was made",
                    "close the cache and open the file again"};
        case Status::cancelled:
            return {ErrorCode::cancelled, words(status), ""};
        case Status::busy:
            return {ErrorCode::invalid_argument, "some pages are in use, or hold bytes that were not written back",
                    "end the kernels that use them, and flush"};
        case Status::out_of_range:
            return {ErrorCode::invalid_argument, "an index past the end of the array", ""};
        default:
            return {ErrorCode::internal, words(status), ""};
    }
}

// Fills in all fields but the file.
ErrorInfo failure_info(const CacheRequest& request, StatusWords meaning) {
    ErrorInfo info;
    info.code = meaning.code;
    info.operation = request.operation;
    info.offset_bytes = request.offset_bytes;
    info.length_bytes = request.bytes;
    info.cause = std::move(meaning.cause);
    info.advice = std::move(meaning.advice);
    return info;
}

}  // namespace

// The file that an Error names. Work on all arrays names a file only if there is one array. The first file of an array
// stands for all of its files.
std::string DeviceCacheState::name_of(const CacheRequest& request) const {
    if (request.bytes == 0 && arrays_.size() != 1) return {};
    const auto& files = arrays_[std::min<std::size_t>(request.array, arrays_.size() - 1)].files;
    const std::string& first = files.front()->handle().name;
    return files.size() == 1 ? first : first + " and " + std::to_string(files.size() - 1) + " more";
}

const OpenFile& DeviceCacheState::file_of(std::uint32_t number) const {
    std::size_t array = 0;
    for (; number >= arrays_[array].files.size(); ++array) {
        number -= static_cast<std::uint32_t>(arrays_[array].files.size());
    }
    return *arrays_[array].files[number];
}

void DeviceCacheState::refuse(const CacheRequest& request, const std::string& cause, const std::string& advice) const {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = request.operation;
    info.file = name_of({request.operation, request.array, 0, 1});
    info.offset_bytes = request.offset_bytes;
    info.length_bytes = request.bytes;
    info.cause = cause;
    info.advice = advice;
    throw Error(std::move(info));
}

void DeviceCacheState::refuse_pins(const CacheRequest& request, std::uint64_t pages, std::uint64_t most) const {
    ErrorInfo info = failure_info(request, {ErrorCode::out_of_memory,
                                            std::to_string(pages) + " pages, of which the cache can pin " +
                                                std::to_string(most),
                                            "pin fewer, or give the cache more bytes"});
    info.file = name_of(request);
    throw Error(std::move(info));
}

void DeviceCacheState::fail(const CacheRequest& request, Status status) const {
    ErrorInfo info = failure_info(request, meaning_of(status, options_));
    info.file = name_of(request);
    throw Error(std::move(info));
}

void DeviceCacheState::fail_late_sync(const CacheRequest& request) const {
    const auto page_ns = static_cast<std::uint64_t>(options_.timeout.count());
    const std::chrono::nanoseconds sync(static_cast<std::int64_t>(ondevice::sync_wait_ns(page_ns)));
    const std::string cause = "the sync of a file took longer than " + seconds(sync);
    const std::string advice = "what was written is in the file; flush again to know that it is durable";
    ErrorInfo info = failure_info(request, {ErrorCode::timed_out, cause, advice});
    info.file = name_of(request);
    throw Error(std::move(info));
}

// Throws for a range. If it lies in one file, the Error names that file and the place in it.
void DeviceCacheState::fail_at(const CacheRequest& range, Status status) const {
    const ondevice::Stripes stripes = cache_->layout(range.array).stripes;
    if (stripes.files == 1 || range.bytes > stripes.together(range.offset_bytes)) fail(range, status);
    const ondevice::FilePlace place = stripes.place(range.offset_bytes);
    ErrorInfo info = failure_info(range, meaning_of(status, options_));
    info.file = arrays_[range.array].files[place.file]->handle().name;
    info.offset_bytes = place.offset_bytes;
    throw Error(std::move(info));
}

// Throws with the place where the storage failed. That need not be the range that was asked for, since other pages make
// room for it.
void DeviceCacheState::fail_storage(const CacheRequest& request, const ondevice::ServedFailure& failure) const {
    ErrorInfo info = failure_info(request, meaning_of(failure.status, options_));
    info.file = file_of(failure.file).handle().name;
    info.offset_bytes = failure.offset_bytes;
    info.length_bytes = failure.bytes;
    info.system_code = failure.system_code;
    if (code_from_errno(failure.system_code) == ErrorCode::no_space) info.code = ErrorCode::no_space;
    if (failure.operation == ondevice::RequestOperation::flush) {
        info.cause = "a sync failed, so that what was written since the last good flush may be lost";
        info.advice = "look at the disk, open the file anew, and write it again";
    }
    if (failure.system_code != 0) info.cause += std::string(": ") + std::strerror(failure.system_code);
    throw Error(std::move(info));
}

// The failure of the storage that explains why work on a range failed: one in the range, or of a page that had to make
// room for it, or of a whole file. Null: none does. A page elsewhere that could not be read belongs to another call.
const ondevice::ServedFailure* DeviceCacheState::told_of(const CacheRequest& range, const Told& failures) const {
    std::uint32_t first = 0;
    for (std::uint32_t array = 0; array < range.array; ++array)
        first += static_cast<std::uint32_t>(arrays_[array].files.size());
    const ondevice::Stripes stripes = cache_->layout(range.array).stripes;
    const auto meets = [&](const ondevice::ServedFailure& one) {
        if (one.bytes == 0 || one.file < first || one.file - first >= stripes.files) return false;
        const std::uint64_t at = stripes.offset_of({one.file - first, one.offset_bytes});
        return at < range.offset_bytes + range.bytes && range.offset_bytes < at + one.bytes;
    };
    const auto of_it = std::find_if(failures.begin(), failures.end(), meets);
    if (of_it != failures.end()) return &*of_it;
    const auto may_be = std::find_if(failures.begin(), failures.end(), [](const ondevice::ServedFailure& one) {
        return one.operation != ondevice::RequestOperation::read || one.bytes == 0;
    });
    return may_be != failures.end() ? &*may_be : nullptr;
}

void DeviceCacheState::check(const CacheRequest& request, const ondevice::FileCache::Failure& failure) const {
    if (failure.status == Status::ok) return;
    if (failure.of_sync && failure.status == Status::timed_out) fail_late_sync(request);
    CacheRequest where = request;
    const bool inside = failure.where >= request.offset_bytes / options_.page_bytes;
    const bool of_a_page = request.bytes != 0 && inside && failure.status != Status::read_only;
    if (of_a_page) {
        where.offset_bytes = failure.where * options_.page_bytes;
        where.bytes = options_.page_bytes;
    }
    if (const auto* const told = told_of(where, failure.storage)) fail_storage(request, *told);
    if (!of_a_page) fail(request, failure.status);
    fail_at(where, failure.status);
}

void DeviceCacheState::check(const RowsRequest& asked, const ondevice::FileCache::Failure& failure) const {
    if (failure.status == Status::ok) return;
    CacheRequest where = asked.request;
    if (failure.status == Status::read_only) fail(where, failure.status);
    const std::uint64_t row = index_at(asked.indices, failure.where);
    if (failure.status == Status::out_of_range) {
        const std::string named = std::to_string(static_cast<std::int64_t>(row));
        refuse(where, "the indices name row " + named + "; there are " + std::to_string(asked.rows.count),
               "give rows of the array");
    }
    where.offset_bytes = asked.rows.offset_bytes + row * asked.rows.row_bytes;
    where.bytes = asked.rows.row_bytes;
    if (const auto* const told = told_of(where, failure.storage)) fail_storage(asked.request, *told);
    fail_at(where, failure.status);
}

std::uint64_t DeviceCacheState::index_at(const MemoryView& indices, std::uint64_t place) const {
    const auto* const at = static_cast<const std::byte*>(indices.data) + place * sizeof(std::uint64_t);
    std::uint64_t index = 0;
    if (indices.kind == MemoryKind::device)
        owner_.copy_to_host(&index, at, sizeof(index));
    else
        std::memcpy(&index, at, sizeof(index));
    return index;
}

}  // namespace penstock::context
