// The load generator: threads that make requests of files the way a benchmark asks for them, timed one by one.
//
// It is a user of Penstock like any other: it stands on the public headers, so what it measures is what programs get.
// Requests are drawn by rules that depend on nothing but the options, so two runs with one seed ask for the same bytes
// in the same order. Wrong data, a short read and a failed request end the run with the error; nothing is averaged
// away.
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

enum class Order : std::uint8_t { sequential, random };
enum class Completion : std::uint8_t {
    wait,      // the thread waits for the oldest request in flight
    callback,  // a callback of the transfer tells the thread which request ended: in the order of their ends
};

struct LoadOptions {
    unsigned read_percent = 100;  // 0: writes only; between: each submission is drawn
    // Bytes of a request: request_bytes, or one of request_bytes, + step, + 2 step, ... up to request_bytes_max, drawn.
    std::uint64_t request_bytes = kMiB;
    std::uint64_t request_bytes_max = 0;  // 0: as request_bytes
    std::uint64_t request_bytes_step = 0;
    unsigned threads = 1;
    unsigned in_flight = 1;  // submissions of a thread; 1: each is waited for before the next
    unsigned batch = 1;      // requests of a submission
    Completion completion = Completion::wait;
    Order order = Order::sequential;
    std::uint64_t seed = 1;
    std::uint64_t alignment = 4096;  // of random offsets, from the start of the span
    bool unaligned = false;          // random offsets that are no multiple of 4096 of the file
    std::uint64_t offset = 0;        // the span of each file that is used
    std::uint64_t bytes = 0;         // 0: to the end of the file
    bool whole_span = false;         // threads that share a file all use the whole span, else each its own part of it
    // A thread ends when it went once through its part (random: moved as many bytes), or goes on with `repeat`; in any
    // case after `requests_per_thread` requests, at the time limit, or when the run is cancelled.
    bool repeat = false;
    std::uint64_t requests_per_thread = 0;  // 0: no limit
    std::optional<double> seconds;          // time limit: what began is finished, a submission in each slot at least
    unsigned warm_requests = 0;             // of each thread before the clock starts, from the start of its part
    // Memory. Else every request in flight has a slot of its own; see memory_needed().
    bool mirror = false;  // each request moves to or from where its bytes lie in the span: memory holds all of it
    // Reads are checked against this stamp on the device (system memory: by the CPU), writes are stamped before. With
    // slots: between the requests, inside the time of the run but in no latency. With `mirror`: outside the time.
    std::optional<std::uint64_t> stamp_seed;
    bool check_last = false;  // with slots: only what each slot holds at the end is checked, outside the time
    // The plain way instead of Penstock's: see plain.hpp. Blocking requests only; `transfer` says nothing then.
    bool plain = false;
    bool plain_direct = true;                   // with O_DIRECT
    TransferOptions transfer;                   // path, chunk_bytes, workers, depth, strict
    const std::atomic<bool>* cancel = nullptr;  // ends the run when it becomes true; outlives the run
};

struct FileRange {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

struct LoadReport {
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;   // requests
    std::uint64_t submissions = 0;  // what the histograms count
    double seconds = 0;             // from the common start to the last end of a thread
    double cpu_user_s = 0;          // of the process, over these seconds
    double cpu_system_s = 0;
    Histogram reads;  // a submission: from its start to its last byte
    Histogram writes;
    std::map<std::string, std::uint64_t> path_bytes;  // from the evidence of every transfer
    std::vector<std::string> fallbacks;               // distinct causes, the first few
    std::uint64_t verified_bytes = 0;
    std::vector<FileRange> moved;  // with `mirror`: what was moved, ascending within a thread's part, none twice
    bool reached_limit = false;    // the time limit ended it
    bool cancelled = false;
};

// Throws Error{invalid_argument} for options that make no sense together, and the error of the first request that
// failed, when all threads have ended. `files`: one for all threads, or one for each; open for what is asked of them.
// `memory`: at least memory_needed() bytes.
LoadReport run_load(const Context& context, std::span<const File> files, const MemoryView& memory,
                    const LoadOptions& options);

// `span_bytes`: of the file (of each of the files).
std::uint64_t memory_needed(const LoadOptions& options, std::uint64_t span_bytes) noexcept;

}  // namespace penstock::load
