// Which bytes a thread asks for next. Pure: the same options, part and thread number give the same requests.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "load/load.hpp"

namespace penstock::load {

using Part = FileRange;
using Request = FileRange;

class Requests {
  public:
    // `start`: where in the part a sequential thread begins; threads that share all of a span begin apart.
    Requests(const LoadOptions& options, const Part& part, unsigned thread, std::uint64_t start = 0);
    Direction direction();           // of the next submission
    std::optional<Request> next();   // nothing: this thread is done
    Request first() const noexcept;  // what a warm-up asks for

  private:
    std::uint64_t draw_size();
    std::uint64_t draw_offset(std::uint64_t bytes);

    LoadOptions options_;
    Part part_;
    std::mt19937_64 random_;
    std::uint64_t start_;
    std::uint64_t asked_bytes_ = 0;  // since it began, or began again
    std::uint64_t asked_requests_ = 0;
};

// The part of thread `thread` of `threads`, a multiple of `alignment` but for the last one's end.
Part part_of(const Part& span, unsigned thread, unsigned threads, std::uint64_t alignment) noexcept;
std::uint64_t largest_request(const LoadOptions& options) noexcept;

}  // namespace penstock::load
