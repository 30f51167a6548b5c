// The load generator: threads that make requests of files for benchmarks, and time each of them.
//
// It uses Penstock's public headers like any program, so it measures what programs get. Requests depend on nothing but
// the options, so two runs with one seed ask for the same bytes in the same order. Wrong data, a short read or a failed
// request ends the run with the error. The report contains no run with an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/histogram.hpp"
#include "penstock/context.hpp"

namespace penstock::load {

enum class RequestOrder : std::uint8_t { sequential, random };
enum class CompletionMode : std::uint8_t {
    wait,      // the thread waits for the oldest request in flight
    callback,  // a transfer's callback tells the thread that it ended, in the order of their ends
};

struct LoadOptions {
    unsigned read_percent = 100;  // 0: writes only; between 0 and 100: drawn for each submission
    // Bytes of a request: request_bytes, or drawn from request_bytes, + step, + 2 step, ... up to request_bytes_max.
    std::uint64_t request_bytes = kMiB;
    std::uint64_t request_bytes_max = 0;  // 0: same as request_bytes
    std::uint64_t request_bytes_step = 0;
    unsigned threads = 1;
    unsigned in_flight = 1;  // submissions of a thread; 1: the thread waits for each before the next
    unsigned batch = 1;      // requests in a submission
    CompletionMode completion = CompletionMode::wait;
    RequestOrder order = RequestOrder::sequential;
    std::uint64_t seed = 1;
    std::uint64_t alignment = 4096;  // of random offsets, from the start of the span
    bool unaligned = false;          // random offsets are no multiple of 4096 in the file
    std::uint64_t offset = 0;        // start of the span that is used in each file
    std::uint64_t bytes = 0;         // 0: to the end of the file
    bool whole_span = false;         // each thread uses the whole span of its file; otherwise each has a part of it
    // A thread ends when it has gone through its part once (random: moved as many bytes). With `repeat` it goes on. In
    // any case it ends after `requests_per_thread` requests, at the time limit, or when the run is cancelled.
    bool repeat = false;
    std::uint64_t requests_per_thread = 0;  // 0: no limit
    // time limit; requests that began are finished, and each slot makes at least one submission
    std::optional<double> seconds;
    unsigned warm_requests = 0;  // of each thread before the clock starts, from the start of its part
    // Without `mirror`, each request in flight has a slot of its own: see memory_needed().
    bool mirror = false;  // the memory holds the whole span, and each request uses its place in it
    // Reads are checked against this stamp on the device (system memory: by the CPU), and writes are stamped before.
    // With slots this happens between the requests: it counts in the time of the run but in no latency. With `mirror`
    // it happens outside the time.
    std::optional<std::uint64_t> stamp_seed;
    bool check_last = false;  // with slots: check only what each slot holds at the end, outside the time
    // Use the plain way instead of Penstock: see plain.hpp. For blocking requests only. `transfer` is ignored.
    bool plain = false;
    bool plain_direct = true;                   // with O_DIRECT
    TransferOptions transfer;                   // path, chunk_bytes, workers, depth, strict
    const std::atomic<bool>* cancel = nullptr;  // ends the run when it becomes true; must outlive the run
};

struct LoadRange {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

struct LoadReport {
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;   // requests
    std::uint64_t submissions = 0;  // number of values in the histograms
    double seconds = 0;             // from the common start until the last thread ended
    double cpu_user_s = 0;          // of the process, in that time
    double cpu_system_s = 0;
    Histogram reads;  // of a submission, from its start to its last byte
    Histogram writes;
    std::map<std::string, std::uint64_t> path_bytes;  // from the evidence of every transfer
    std::vector<std::string> fallbacks;               // the first few distinct causes
    std::uint64_t verified_bytes = 0;
    std::vector<LoadRange> moved;  // with `mirror`: what was moved, without overlaps, ascending within a thread's part
    bool reached_limit = false;    // the time limit ended the run
    bool cancelled = false;
};

// Throws Error{invalid_argument} if options contradict each other. Throws the error of the first request that failed,
// after all threads have ended. Requires: `files` has one file for all threads or one for each, opened for the
// requested direction. `memory` has at least memory_needed() bytes.
LoadReport run_load(const Context& context, std::span<const File> files, const MemoryView& memory,
                    const LoadOptions& options);

// `span_bytes`: the span of each file.
std::uint64_t memory_needed(const LoadOptions& options, std::uint64_t span_bytes) noexcept;

}  // namespace penstock::load
