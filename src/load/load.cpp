// See load.hpp.
#include "load/load.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "load/worker.hpp"

namespace penstock::load {
namespace {

constexpr auto kStagingPatience = std::chrono::seconds(10);

[[noreturn]] void refuse(const std::string& cause, const std::string& advice = {}) {
    throw Error(ErrorCode::invalid_argument, "measure load", cause, advice);
}

void check_options(const LoadOptions& options) {
    const std::uint64_t most = largest_request(options);
    if (options.request_bytes == 0) refuse("requests of no bytes");
    if (options.request_bytes_max != 0 && options.request_bytes_max < options.request_bytes)
        refuse("the largest request is smaller than the smallest");
    if (most != options.request_bytes && options.request_bytes_step == 0)
        refuse("requests of several sizes without a step", "give request_bytes_step");
    if (options.threads == 0 || options.in_flight == 0 || options.batch == 0)
        refuse("threads, in_flight and batch must be positive");
    if (options.read_percent > 100) refuse(std::to_string(options.read_percent) + " percent of reads");
    if (options.alignment == 0) refuse("an alignment of 0 bytes");
    if (options.seconds && !(*options.seconds >= 0)) refuse("a time limit below 0 seconds");
    if (options.repeat && !options.seconds && options.requests_per_thread == 0)
        refuse("a run that repeats without end", "limit its seconds or its requests_per_thread");
    if (options.mirror && options.whole_span && options.threads > 1)
        refuse("mirrored memory of which several threads would use the same bytes", "leave one of the two out");
    // Overlapping requests of one thread would use the same memory at the same time.
    if (options.mirror && options.order == RequestOrder::random && options.in_flight * options.batch > 1)
        refuse("mirrored memory for several random requests in flight", "use slots, or sequential order");
    if (options.plain && (options.in_flight * options.batch > 1 || options.completion == CompletionMode::callback))
        refuse("several requests in flight, or callbacks, the plain way", "use threads");
}

// Returns the span of one file that the run uses.
Part span_of(const File& file, const LoadOptions& options) {
    const std::uint64_t size = file.size_bytes();
    const std::uint64_t bytes = options.bytes != 0 ? options.bytes : size - std::min(size, options.offset);
    const bool outside = options.offset > size || bytes > size - options.offset;
    if (bytes == 0 || (outside && options.read_percent != 0)) {
        ErrorInfo info;
        info.code = ErrorCode::invalid_argument;
        info.operation = "measure load";
        info.file = file.name();
        info.offset_bytes = options.offset;
        info.length_bytes = bytes;
        info.cause = "the file has " + std::to_string(size) + " bytes: there is nothing there to read";
        info.advice = "choose a span inside the file, or write it first";
        throw Error(std::move(info));
    }
    return {options.offset, bytes};
}

std::vector<WorkerShare> shares_of(std::span<const File> files, const MemoryView& memory, const LoadOptions& options) {
    if (files.size() != 1 && files.size() != options.threads)
        refuse(std::to_string(files.size()) + " files for " + std::to_string(options.threads) + " threads",
               "give one file, or one for each thread");
    std::vector<WorkerShare> shares(options.threads);
    const bool shared = files.size() == 1 && !options.whole_span;
    const std::uint64_t slots = slot_bytes(options) * options.in_flight * options.batch;
    std::uint64_t mirrored = 0;
    for (unsigned t = 0; t < options.threads; ++t) {
        WorkerShare& share = shares[t];
        share.thread = t;
        share.file = &files[files.size() == 1 ? 0 : t];
        const Part span = span_of(*share.file, options);
        share.part = shared ? part_of(span, t, options.threads, slot_bytes(options)) : span;
        if (files.size() == 1 && options.whole_span)
            share.start = align_down(span.bytes / options.threads, slot_bytes(options)) * t;
        share.span_offset = span.offset;
        if (options.unaligned && share.part.bytes <= largest_request(options) && share.part.bytes > 0)
            refuse("unaligned requests as large as the part of a thread", "use a larger file or smaller requests");
        if (options.mirror) {
            if (files.size() > 1) refuse("mirrored memory of several files", "use slots");
            mirrored = span.bytes;
            share.memory = memory;
        }
    }
    const std::uint64_t needed = options.mirror ? mirrored : slots * options.threads;
    if (memory.bytes < needed)
        refuse("memory of " + std::to_string(memory.bytes) + " bytes; this run needs " + std::to_string(needed));
    for (WorkerShare& share : shares) {
        if (!options.mirror) share.memory = memory.slice(slots * share.thread, slots);
    }
    return shares;
}

// Requires: all threads are warm and wait. Then nothing uses the staging memory, which still holds what the warm-up
// read.
void poison_staging(LoadRun& run) {
    if (!run.options.stamp_seed || run.options.read_percent == 0 || run.stopped()) return;
    if (run.staging != nullptr) std::memset(run.staging, kPoison, slot_bytes(run.options) * run.options.threads);
    if (run.context.fill_staging(kPoison, Deadline::after(kStagingPatience))) return;
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = "measure load";
    info.cause = "other transfers of the context use its staging memory, so reads cannot be checked";
    info.advice = "give the run a context of its own";
    run.fail(std::move(info));
}

// Starts a thread for each worker, opens the gate when all are ready, and returns when all have ended.
void run_threads(LoadRun& run, std::vector<std::unique_ptr<Worker>>& workers) {
    std::vector<std::jthread> threads;
    try {
        for (const auto& worker : workers) threads.emplace_back([&worker] { (*worker)(); });
    } catch (const std::system_error& error) {
        run.stop();
        run.go.count_down();
        for (auto missing = run.options.threads - threads.size(); missing > 0; --missing) (void)run.ended.arrive();
        threads.clear();
        throw Error(ErrorCode::out_of_memory, "start a measuring thread", error.code().message(),
                    "raise the limits of threads and memory (ulimit -u, ulimit -v), or use fewer threads");
    }
    run.ready.wait();
    poison_staging(run);
    run.cpu_at_start = os::cpu_time();
    run.start = Clock::now();
    if (run.options.seconds)
        run.limit = Deadline::after(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(std::min(*run.options.seconds, 1e8))));
    run.go.count_down();
    threads.clear();
}

void add(LoadReport& total, const LoadReport& one) {
    total.bytes += one.bytes;
    total.operations += one.operations;
    total.submissions += one.submissions;
    total.reads.merge(one.reads);
    total.writes.merge(one.writes);
    total.verified_bytes += one.verified_bytes;
    total.reached_limit = total.reached_limit || one.reached_limit;
    total.moved.insert(total.moved.end(), one.moved.begin(), one.moved.end());
    for (const auto& [path, bytes] : one.path_bytes) total.path_bytes[path] += bytes;
    for (const std::string& cause : one.fallbacks) {
        const bool known = std::find(total.fallbacks.begin(), total.fallbacks.end(), cause) != total.fallbacks.end();
        if (!known && total.fallbacks.size() < kFallbacksTold) total.fallbacks.push_back(cause);
    }
}

}  // namespace

std::uint64_t memory_needed(const LoadOptions& options, std::uint64_t span_bytes) noexcept {
    if (options.mirror) return span_bytes;
    return slot_bytes(options) * options.in_flight * options.batch * options.threads;
}

LoadReport run_load(const Context& context, std::span<const File> files, const MemoryView& memory,
                    const LoadOptions& options) {
    check_options(options);
    const DeviceScope current(context.device());
    LoadRun run(context, options);
    std::unique_ptr<PlainStaging> staging;
    const bool far = memory.kind == MemoryKind::device || memory.kind == MemoryKind::managed;
    if (options.plain && far) {
        staging = std::make_unique<PlainStaging>(context.device(), slot_bytes(options) * options.threads);
        run.staging = staging->data();
    }
    std::vector<std::unique_ptr<Worker>> workers;
    for (const WorkerShare& share : shares_of(files, memory, options))
        workers.push_back(std::make_unique<Worker>(run, share));
    run_threads(run, workers);
    run.throw_failure();
    LoadReport report;
    auto end = run.start;
    for (const auto& worker : workers) {
        add(report, worker->report);
        end = std::max(end, worker->end);
    }
    report.seconds = std::chrono::duration<double>(end - run.start).count();
    report.cpu_user_s = run.cpu_at_end.user_s - run.cpu_at_start.user_s;
    report.cpu_system_s = run.cpu_at_end.system_s - run.cpu_at_start.system_s;
    report.cancelled = options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
    return report;
}

}  // namespace penstock::load
