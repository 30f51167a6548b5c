// See requests.hpp.
#include "load/requests.hpp"

#include <algorithm>

namespace penstock::load {

constexpr std::uint64_t kPage = 4096;  // the unit of "unaligned" on every machine

std::uint64_t largest_request(const LoadOptions& options) noexcept {
    return std::max(options.request_bytes, options.request_bytes_max);
}

Part part_of(const Part& span, unsigned thread, unsigned threads, std::uint64_t alignment) noexcept {
    const std::uint64_t share = align_up((span.bytes + threads - 1) / threads, alignment);
    const std::uint64_t begin = std::min(share * thread, span.bytes);
    return {span.offset + begin, std::min(share, span.bytes - begin)};
}

Requests::Requests(const LoadOptions& options, const Part& part, unsigned thread, std::uint64_t start)
    : options_(options),
      part_(part),
      random_(options.seed * 1'000'003 + thread),
      start_(part.bytes == 0 ? 0 : start % part.bytes) {}

Direction Requests::direction() {
    if (options_.read_percent >= 100) return Direction::read;
    if (options_.read_percent == 0) return Direction::write;
    return random_() % 100 < options_.read_percent ? Direction::read : Direction::write;
}

std::uint64_t Requests::draw_size() {
    const std::uint64_t least = options_.request_bytes, most = largest_request(options_);
    if (least == most) return least;
    return least + random_() % ((most - least) / options_.request_bytes_step + 1) * options_.request_bytes_step;
}

std::uint64_t Requests::draw_offset(std::uint64_t bytes) {
    const std::uint64_t last = part_.bytes - bytes;
    if (!options_.unaligned) return part_.offset + random_() % (last / options_.alignment + 1) * options_.alignment;
    std::uint64_t offset = part_.offset + random_() % (last + 1);
    if (offset % kPage == 0) offset = offset < part_.offset + last ? offset + 1 : offset - 1;
    return offset;
}

std::optional<Request> Requests::next() {
    if (options_.requests_per_thread != 0 && asked_requests_ == options_.requests_per_thread) return std::nullopt;
    if (asked_bytes_ >= part_.bytes) {
        if (!options_.repeat || part_.bytes == 0) return std::nullopt;
        asked_bytes_ = 0;
    }
    std::uint64_t bytes = std::min(draw_size(), part_.bytes);
    std::uint64_t offset = 0;
    if (options_.order == RequestOrder::random) {
        offset = draw_offset(bytes);
    } else {
        const std::uint64_t at = (start_ + asked_bytes_) % part_.bytes;
        bytes = std::min({bytes, part_.bytes - at, part_.bytes - asked_bytes_});
        offset = part_.offset + at;
    }
    asked_bytes_ += bytes;
    ++asked_requests_;
    return Request{offset, bytes};
}

Request Requests::first() const noexcept {
    const std::uint64_t bytes = std::min(options_.request_bytes, part_.bytes - start_);
    return {part_.offset + start_, bytes};
}

}  // namespace penstock::load
