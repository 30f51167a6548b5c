// A request of penstock.h as C++ knows it, checked completely before anything starts.
#pragma once

#include <cstdint>
#include <string>

#include "boundary.hpp"
#include "penstock/context.hpp"
#include "values.hpp"

namespace penstock::c {

struct Request {
    MemoryView memory;
    std::uint64_t offset_bytes = 0;
    TransferOptions options;
};

inline Request checked_request(const penstock_request* given) {
    const auto wanted = copied("penstock_request", &required("penstock_request", given));
    if (wanted.timeout_ms < 0) {
        refuse("check arguments", "timeout_ms is " + std::to_string(wanted.timeout_ms), "0 means no time limit");
    }
    Request request{memory_view(wanted.memory), wanted.offset_bytes, {}};
    request.options.path = path_named(wanted.path);
    request.options.chunk_bytes = wanted.chunk_bytes;
    request.options.workers = wanted.workers;
    request.options.depth = wanted.depth;
    request.options.strict = wanted.strict != 0;
    request.options.durable = wanted.durable != 0;
    request.options.full_evidence = wanted.full_evidence != 0;
    if (wanted.timeout_ms > 0) request.options.deadline = deadline_after_ms(wanted.timeout_ms);
    if (wanted.progress != nullptr) {
        request.options.progress = [report = wanted.progress, user = wanted.user](
                                       std::uint64_t done, std::uint64_t total) { report(user, done, total); };
    }
    return request;
}

}  // namespace penstock::c
