// How a request of device code stands or ended: a small number that fits in a word beside others, and its words.
//
// Zero is success; positive means "not yet"; negative is final. The numbers cross between GPU and host and never
// change.
#pragma once

namespace penstock::ondevice {

enum class Status : int {
    ok = 0,
    pending = 1,
    busy = 2,  // no room now: try again
    timed_out = -1,
    io_error = -2,
    out_of_range = -3,
    read_only = -4,
    all_pinned = -5,
    cancelled = -6,
    invalid = -7,
    truncated = -8,
    failed = -9,
};

#if !defined(__CUDACC_RTC__)
inline const char* words(Status status) {
    switch (status) {
        case Status::ok: return "ok";
        case Status::pending: return "pending";
        case Status::busy: return "busy: no free slot or turn, try again";
        case Status::timed_out: return "timed out: the deadline passed before the completion came";
        case Status::io_error: return "the storage reported an error";
        case Status::out_of_range: return "offset and length lie outside the file";
        case Status::read_only: return "the file or range is read-only";
        case Status::all_pinned: return "every page that could make room is pinned";
        case Status::cancelled: return "cancelled";
        case Status::invalid: return "the request or its ticket is not valid";
        case Status::truncated: return "the file ended inside the request";
        case Status::failed: return "the host's function failed";
    }
    return "unknown status";
}
#endif

}  // namespace penstock::ondevice
