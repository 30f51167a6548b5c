// See pattern.hpp.
#include "load/pattern.hpp"

#include <algorithm>
#include <cstring>

#include "penstock/stamp.hpp"

namespace penstock::load {
namespace {

// Calls each(at, bytes, value) for the words of the pattern, and for the single bytes around whole words.
template <class Each>
void over_words(std::uint64_t bytes, std::uint64_t file_offset, Each each) {
    for (std::uint64_t at = 0; at < bytes;) {
        const std::uint64_t offset = file_offset + at;
        const std::uint64_t width = offset % 8 == 0 && bytes - at >= 8 ? 8 : 1;
        each(at, width);
        at += width;
    }
}

void stamp_by_cpu(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) {
    auto* to = static_cast<unsigned char*>(memory);
    over_words(bytes, file_offset, [&](std::uint64_t at, std::uint64_t width) {
        const std::uint64_t word = stamp_word(seed, (file_offset + at) / 8);
        if (width == 8)
            std::memcpy(to + at, &word, sizeof word);  // the pattern is little endian, like the supported architectures
        else
            to[at] = stamp_byte(seed, file_offset + at);
    });
}

StampCheck check_by_cpu(const void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) {
    const auto* from = static_cast<const unsigned char*>(memory);
    StampCheck check;
    over_words(bytes, file_offset, [&](std::uint64_t at, std::uint64_t width) {
        const std::uint64_t wanted = stamp_word(seed, (file_offset + at) / 8);
        const bool same = width == 8 ? std::memcmp(from + at, &wanted, sizeof wanted) == 0
                                     : from[at] == stamp_byte(seed, file_offset + at);
        if (same) return;
        if (check.bad_bytes == 0) check.first_bad_offset = file_offset + at;
        check.bad_bytes += width;
    });
    return check;
}

}  // namespace

Pattern::Pattern(const Context& context, MemoryKind kind, std::uint64_t seed) : seed_(seed) {
    if (kind != MemoryKind::system) stream_ = context.device().make_stream();
}

void Pattern::stamp(void* memory, std::uint64_t bytes, std::uint64_t file_offset) {
    if (!stream_) return stamp_by_cpu(memory, bytes, file_offset, seed_);
    stream_->stamp(memory, bytes, file_offset, seed_);
    stream_->synchronize();
}

void Pattern::fill(void* memory, std::uint64_t bytes, int byte_value) {
    if (!stream_) {
        std::memset(memory, byte_value, bytes);
        return;
    }
    stream_->fill(memory, bytes, byte_value);
    stream_->synchronize();
}

void Pattern::verify(const void* memory, const Request& range, const std::string& file) {
    const StampCheck check = stream_ ? stream_->verify_stamp(memory, range.bytes, range.offset, seed_)
                                     : check_by_cpu(memory, range.bytes, range.offset, seed_);
    if (check.bad_bytes == 0) return;
    ErrorInfo info;
    info.code = ErrorCode::io_error;
    info.operation = "verify";
    info.file = file;
    info.offset_bytes = check.first_bad_offset;
    info.length_bytes = check.bad_bytes;
    info.cause = std::to_string(check.bad_bytes) + " bytes are wrong";
    info.advice = "do not trust these results";
    throw Error(std::move(info));
}

void Moved::add(const Request& range) {
    if (!ranges_.empty() && ranges_.back().offset + ranges_.back().bytes == range.offset) {
        ranges_.back().bytes += range.bytes;
        return;
    }
    if (ranges_.size() == compact_at_) {
        compact();
        compact_at_ = std::max(compact_at_, 2 * ranges_.size());
    }
    ranges_.push_back(range);
}

const std::vector<Request>& Moved::ranges() {
    compact();
    return ranges_;
}

void Moved::compact() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Request& a, const Request& b) { return a.offset < b.offset; });
    std::size_t kept = 0;
    for (const Request& range : ranges_) {
        const bool touches = kept > 0 && range.offset <= ranges_[kept - 1].offset + ranges_[kept - 1].bytes;
        if (touches) {
            Request& last = ranges_[kept - 1];
            last.bytes = std::max(last.offset + last.bytes, range.offset + range.bytes) - last.offset;
        } else {
            ranges_[kept++] = range;
        }
    }
    ranges_.resize(kept);
}

}  // namespace penstock::load
