// What becomes of requests to a DeviceCache, as Errors: a status of device code with operation, file, range, cause in
// words, and advice.
#include <cstring>
#include <utility>

#include "context/device_cache_state.hpp"

namespace penstock::context {
namespace {

using ondevice::Status;

struct Meaning {
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

Meaning meaning_of(Status status, const DeviceCacheOptions& options) {
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

}  // namespace

// Work on all files names the file only where there is but one.
std::string DeviceCacheState::name_of(const CacheRequest& request) const {
    const bool of_all = request.bytes == 0 && files_.size() != 1;
    return of_all ? std::string() : files_[request.array]->handle().name;
}

void DeviceCacheState::refuse(const CacheRequest& request, const std::string& cause, const std::string& advice) const {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = request.operation;
    info.file = files_[std::min<std::size_t>(request.array, files_.size() - 1)]->handle().name;
    info.offset_bytes = request.offset_bytes;
    info.length_bytes = request.bytes;
    info.cause = cause;
    info.advice = advice;
    throw Error(std::move(info));
}

void DeviceCacheState::fail(const CacheRequest& request, Status status) const {
    Meaning meaning = meaning_of(status, options_);
    ErrorInfo info;
    info.code = meaning.code;
    info.operation = request.operation;
    info.file = name_of(request);
    info.offset_bytes = request.offset_bytes;
    info.length_bytes = request.bytes;
    info.cause = std::move(meaning.cause);
    info.advice = std::move(meaning.advice);
    throw Error(std::move(info));
}

void DeviceCacheState::check(const CacheRequest& request, const ondevice::FileCache::Failure& failure) const {
    if (failure.status == Status::ok) return;
    CacheRequest where = request;
    const bool inside = failure.where >= request.offset_bytes / options_.page_bytes;
    if (request.bytes != 0 && inside && failure.status != Status::read_only) {
        where.offset_bytes = failure.where * options_.page_bytes;
        where.bytes = options_.page_bytes;
    }
    fail(where, failure.status);
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
    fail(where, failure.status);
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
