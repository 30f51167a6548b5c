// How a call of device code ended on the host, as its slot carries it back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/ondevice/status.hpp"

namespace penstock::ondevice {

struct CallOutcome {
    Status status = Status::ok;
    std::int64_t value = 0;  // the result; the negative errno of a file that failed
    std::size_t answer_bytes = 0;
};

}  // namespace penstock::ondevice
