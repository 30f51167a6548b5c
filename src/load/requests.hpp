// Which bytes a thread requests next. Pure: the same options, part and thread number give the same requests.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "load/load.hpp"

namespace penstock::load {

using Part = LoadRange;
using Request = LoadRange;

class Requests {
  public:
    // `start`: where in its part a sequential thread begins. Threads that share a whole span begin at different places.
    Requests(const LoadOptions& options, const Part& part, unsigned thread, std::uint64_t start = 0);
    Direction direction();           // of the next submission
    std::optional<Request> next();   // nothing: this thread has finished
    Request first() const noexcept;  // for the warm-up

  private:
    std::uint64_t draw_size();
    std::uint64_t draw_offset(std::uint64_t bytes);

    LoadOptions options_;
    Part part_;
    std::mt19937_64 random_;
    std::uint64_t start_;
    std::uint64_t asked_bytes_ = 0;  // since the thread began, or began again
    std::uint64_t asked_requests_ = 0;
};

// Returns the part of thread `thread` of `threads`. Its bounds are multiples of `alignment`, except the end of the last
// part.
Part part_of(const Part& span, unsigned thread, unsigned threads, std::uint64_t alignment) noexcept;
std::uint64_t largest_request(const LoadOptions& options) noexcept;

}  // namespace penstock::load
