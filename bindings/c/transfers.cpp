// The functions of penstock.h for transfers, blocking and started.
//
// A request is checked completely before anything starts. A result struct is cleared before a transfer and filled after
// it, so that a caller never reads values of an earlier call.
#include <vector>

#include "boundary.hpp"
#include "handles.hpp"
#include "requests.hpp"
#include "values.hpp"

using penstock::c::copied;
using penstock::c::free_handle;
using penstock::c::give_handle;
using penstock::c::give_text;
using penstock::c::guarded;
using penstock::c::opened;
using penstock::c::refuse;
using penstock::c::required;

namespace {

void clear(penstock_result* result) {
    if (result == nullptr) return;
    penstock::c::check_struct("penstock_result", result,
                              {result->struct_size, sizeof(penstock_result), result->struct_size});
    *result = {result->struct_size, 0, 0, 0, 0, {}};
}

// Fills the result, then throws the error that the transfer ended with, if any.
void give(const penstock::Outcome& outcome, penstock_result* result) {
    if (result != nullptr) {
        result->bytes = outcome.bytes;
        result->seconds = outcome.seconds;
        result->reached_end = outcome.reached_end ? 1 : 0;
        result->fallbacks = static_cast<std::uint32_t>(outcome.evidence.fallbacks.size());
        penstock::c::copy_text(result->path, sizeof(result->path), outcome.evidence.path_name());
    }
    outcome.or_throw();
}

// Whether the small read that the library makes without a transfer is all that the request asks for.
bool is_plain(const penstock::TransferOptions& options) {
    return options.path == penstock::PathKind::automatic && options.chunk_bytes == 0 && options.workers == 0 &&
           options.depth == 0 && !options.full_evidence && options.deadline.is_never() && !options.progress;
}

// False: there was none, and it has to be a transfer.
bool told(const std::optional<penstock::SmallRead>& made, penstock_result* result) {
    if (!made) return false;
    if (result != nullptr) {
        result->bytes = made->memory.bytes;
        result->seconds = made->seconds;
        penstock::c::copy_text(result->path, sizeof(result->path), to_string(penstock::PathKind::buffered));
    }
    return true;
}

// A small read in a few microseconds, or a larger one out of the page cache. False: it has to be a transfer.
bool read_small(const penstock::File& file, const penstock::c::Request& wanted, penstock_result* result) {
    return is_plain(wanted.options) && told(file.try_small_read(wanted.memory, wanted.offset_bytes), result);
}

// A small write to the page cache. False: as above.
bool write_small(const penstock::File& file, const penstock::c::Request& wanted, penstock_result* result) {
    if (!is_plain(wanted.options) || wanted.options.durable) return false;
    return told(file.try_small_write(wanted.memory, wanted.offset_bytes), result);
}

penstock::Direction checked_direction(std::int32_t direction) {
    if (direction == PENSTOCK_TO_MEMORY) return penstock::Direction::read;
    if (direction == PENSTOCK_TO_FILE) return penstock::Direction::write;
    refuse("check arguments", "direction is " + std::to_string(direction),
           "use PENSTOCK_TO_MEMORY or PENSTOCK_TO_FILE");
}

std::vector<penstock::Range> checked_items(const penstock_ranges& ranges) {
    if (ranges.count != 0) required("penstock_ranges.items", ranges.items);
    std::vector<penstock::Range> items;
    items.reserve(ranges.count);
    for (std::uint64_t i = 0; i < ranges.count; ++i) {
        const penstock_range& item = ranges.items[i];
        items.push_back({&opened(item.file), item.offset_bytes, item.data, item.bytes});
    }
    return items;
}

}  // namespace

extern "C" {

int penstock_read(const penstock_file* file, const penstock_request* request, penstock_result* result,
                  penstock_error* error) {
    return guarded("read", error, [&] {
        clear(result);
        const auto wanted = penstock::c::checked_request(request);
        if (read_small(opened(file), wanted, result)) return;
        give(opened(file).read(wanted.memory, wanted.offset_bytes, wanted.options), result);
    });
}

int penstock_write(const penstock_file* file, const penstock_request* request, penstock_result* result,
                   penstock_error* error) {
    return guarded("write", error, [&] {
        clear(result);
        const auto wanted = penstock::c::checked_request(request);
        if (write_small(opened(file), wanted, result)) return;
        give(opened(file).write(wanted.memory, wanted.offset_bytes, wanted.options), result);
    });
}

int penstock_start_read(const penstock_file* file, const penstock_request* request, penstock_transfer** transfer,
                        penstock_error* error) {
    return guarded("start read", error, [&] {
        give_handle(transfer, [&] {
            const auto wanted = penstock::c::checked_request(request);
            return opened(file).start_read(wanted.memory, wanted.offset_bytes, wanted.options);
        });
    });
}

int penstock_start_write(const penstock_file* file, const penstock_request* request, penstock_transfer** transfer,
                         penstock_error* error) {
    return guarded("start write", error, [&] {
        give_handle(transfer, [&] {
            const auto wanted = penstock::c::checked_request(request);
            return opened(file).start_write(wanted.memory, wanted.offset_bytes, wanted.options);
        });
    });
}

int penstock_start_ranges(const penstock_context* context, const penstock_ranges* ranges,
                          const penstock_request* request, penstock_transfer** transfer, penstock_error* error) {
    return guarded("start ranges", error, [&] {
        give_handle(transfer, [&] {
            const auto wanted = copied("penstock_ranges", &required("penstock_ranges", ranges));
            const auto how = penstock::c::checked_request(request);
            if (how.memory.data != nullptr || how.memory.bytes != 0 || how.offset_bytes != 0) {
                refuse("start ranges", "the request has memory or an offset of its own", "give them in the ranges");
            }
            const auto items = checked_items(wanted);
            return opened(context).start(checked_direction(wanted.direction), items,
                                         penstock::c::checked_kind(wanted.kind), how.options);
        });
    });
}

int penstock_transfer_wait(const penstock_transfer* transfer, int64_t timeout_ms, penstock_error* error) {
    return guarded("wait", error, [&] {
        const auto deadline = timeout_ms < 0 ? penstock::Deadline::never() : penstock::c::deadline_after_ms(timeout_ms);
        if (opened(transfer).wait(deadline)) return;
        throw penstock::Error(penstock::ErrorCode::timed_out, "wait",
                              "the transfer was not done after " + std::to_string(timeout_ms) + " ms",
                              "wait again or cancel it");
    });
}

int penstock_transfer_result(const penstock_transfer* transfer, penstock_result* result, penstock_error* error) {
    return guarded("transfer", error, [&] {
        clear(result);
        give(opened(transfer).result(), result);
    });
}

int penstock_transfer_cancel(const penstock_transfer* transfer, penstock_error* error) {
    return guarded("cancel", error, [&] { opened(transfer).cancel(); });
}

int penstock_transfer_progress(const penstock_transfer* transfer, uint64_t* done_bytes, uint64_t* total_bytes,
                               penstock_error* error) {
    return guarded("progress", error, [&] {
        const penstock::Transfer& value = opened(transfer);
        if (done_bytes != nullptr) *done_bytes = value.bytes_done();
        if (total_bytes != nullptr) *total_bytes = value.bytes_total();
    });
}

int penstock_transfer_evidence(const penstock_transfer* transfer, penstock_text* json, penstock_error* error) {
    return guarded("evidence", error, [&] { give_text(json, opened(transfer).result().evidence.to_json()); });
}

int penstock_transfer_plan(const penstock_transfer* transfer, penstock_text* text, penstock_error* error) {
    return guarded("plan", error, [&] { give_text(text, opened(transfer).plan().describe()); });
}

void penstock_transfer_free(penstock_transfer* transfer) { free_handle(transfer); }

}  // extern "C"
