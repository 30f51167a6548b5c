// A function of the host that device code calls by its number or name, and what it gets and gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace penstock {

struct HostCall {
    std::uint64_t value = 0;              // the number that the caller gave beside its argument
    std::span<const std::byte> argument;  // a copy, aligned for any type
    std::span<std::byte> answer;          // for as many bytes as the caller takes
};

struct HostAnswer {
    std::int64_t value = 0;
    std::size_t bytes = 0;  // of the answer, that the function wrote
};

// Several threads may call it at once. What it throws becomes the status `failed` of the call, and an entry in the
// errors of its owner. It waits for no kernel that calls it.
using HostFunction = std::function<HostAnswer(const HostCall&)>;

// A function that threw, and what.
struct FailedCall {
    std::string function;
    std::string what;
};

}  // namespace penstock
