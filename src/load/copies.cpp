// See copies.hpp.
#include "load/copies.hpp"

#include <algorithm>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "load/pattern.hpp"
#include "os/process_io.hpp"

namespace penstock::load {
namespace {

class Copies {
  public:
    Copies(const Context& context, const MemoryView& device, const MemoryView& host, const CopyOptions& options)
        : context_(context), options_(options), device_(device), host_(host), go_(1) {}
    CopyReport run();

  private:
    bool may_go_on() const noexcept {
        return !stop_.load(std::memory_order_relaxed) && !limit_.passed() &&
               (options_.cancel == nullptr || !options_.cancel->load(std::memory_order_relaxed));
    }
    std::uint64_t waves() const noexcept {
        return std::max<std::uint64_t>(1, (options_.copies + options_.multiplicity - 1) / options_.multiplicity);
    }
    void copy(Stream& stream, unsigned slot) const;
    void prepare();
    void verify();
    void by_threads(CopyReport& report);
    void by_streams(CopyReport& report);
    void one_thread(unsigned slot, Stream& stream, CopyReport& report);

    const Context& context_;
    const CopyOptions& options_;
    MemoryView device_, host_;
    std::latch go_;
    Deadline limit_ = Deadline::never();  // written before go_ opens
    std::atomic<bool> stop_{false};
    std::mutex mutex_;  // guards failure_
    std::exception_ptr failure_;
};

void Copies::copy(Stream& stream, unsigned slot) const {
    auto* device = static_cast<std::byte*>(device_.data) + slot * options_.bytes;
    auto* host = static_cast<std::byte*>(host_.data) + slot * options_.bytes;
    if (options_.to_device)
        stream.copy(CopyDirection::to_device, device, host, options_.bytes);
    else
        stream.copy(CopyDirection::to_host, host, device, options_.bytes);
}

void Copies::prepare() {
    const MemoryView& from = options_.to_device ? host_ : device_;
    const MemoryView& to = options_.to_device ? device_ : host_;
    Pattern(context_, from.kind, options_.stamp_seed).stamp(from.data, from.bytes, 0);
    Pattern(context_, to.kind, options_.stamp_seed).fill(to.data, to.bytes, kPoison);
}

void Copies::verify() {
    const MemoryView& to = options_.to_device ? device_ : host_;
    Pattern(context_, to.kind, options_.stamp_seed).verify(to.data, {0, to.bytes}, "");
}

void Copies::one_thread(unsigned slot, Stream& stream, CopyReport& report) {
    const bool waits = options_.wait == CopyWait::each;
    for (std::uint64_t wave = 0; wave < waves() && (wave == 0 || may_go_on()); ++wave) {
        const auto began = Clock::now();
        copy(stream, slot);
        if (waits) {
            stream.synchronize();
            report.each.add(static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - began).count()));
        }
        ++report.copies;
    }
    if (!waits) stream.synchronize();
}

void Copies::by_threads(CopyReport& report) {
    std::vector<CopyReport> reports(options_.multiplicity);
    std::latch ready(options_.multiplicity);
    std::vector<std::jthread> threads;
    const auto work = [&](unsigned slot) noexcept {
        try {
            context_.device().enter_thread();
            const auto stream = context_.device().make_stream();
            ready.count_down();
            go_.wait();
            one_thread(slot, *stream, reports[slot]);
        } catch (...) {
            {
                const std::lock_guard lock(mutex_);
                if (!failure_) failure_ = std::current_exception();
            }
            stop_.store(true, std::memory_order_relaxed);
            if (go_.try_wait()) return;
            ready.count_down();  // it failed before the start, and the others wait for its count
        }
    };
    try {
        for (unsigned slot = 0; slot < options_.multiplicity; ++slot) threads.emplace_back(work, slot);
    } catch (const std::system_error& error) {
        stop_.store(true, std::memory_order_relaxed);
        go_.count_down();
        threads.clear();
        throw Error(ErrorCode::out_of_memory, "start a measuring thread", error.code().message(),
                    "raise the limits of threads and memory (ulimit -u, ulimit -v), or use fewer threads");
    }
    ready.wait();
    const os::CpuTime before = os::cpu_time();
    const auto start = Clock::now();
    limit_ =
        Deadline::after(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds)));
    go_.count_down();
    threads.clear();
    report.seconds = seconds_since(start);
    const os::CpuTime after = os::cpu_time();
    report.cpu_user_s = after.user_s - before.user_s;
    report.cpu_system_s = after.system_s - before.system_s;
    for (const CopyReport& one : reports) {
        report.copies += one.copies;
        report.each.merge(one.each);
    }
}

void Copies::by_streams(CopyReport& report) {
    std::vector<std::unique_ptr<Stream>> streams;
    for (unsigned i = 0; i < options_.multiplicity; ++i) streams.push_back(context_.device().make_stream());
    const auto synchronize = [&streams] {
        for (const auto& stream : streams) stream->synchronize();
    };
    const os::CpuTime before = os::cpu_time();
    const auto start = Clock::now();
    limit_ =
        Deadline::after(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds)));
    for (std::uint64_t wave = 0; wave < waves() && (wave == 0 || may_go_on()); ++wave) {
        for (unsigned i = 0; i < options_.multiplicity; ++i) copy(*streams[i], i);
        report.copies += options_.multiplicity;
        if (options_.wait == CopyWait::each) synchronize();
    }
    synchronize();
    report.seconds = seconds_since(start);
    const os::CpuTime after = os::cpu_time();
    report.cpu_user_s = after.user_s - before.user_s;
    report.cpu_system_s = after.system_s - before.system_s;
}

CopyReport Copies::run() {
    const DeviceScope current(context_.device());
    prepare();
    CopyReport report;
    if (options_.threads)
        by_threads(report);
    else
        by_streams(report);
    if (failure_) std::rethrow_exception(failure_);
    report.bytes = report.copies * options_.bytes;
    verify();
    return report;
}

[[noreturn]] void refuse(const std::string& cause) {
    throw Error(ErrorCode::invalid_argument, "measure copies", cause);
}

}  // namespace

CopyReport run_copies(const Context& context, const MemoryView& device, const MemoryView& host,
                      const CopyOptions& options) {
    if (options.multiplicity == 0 || options.bytes == 0) refuse("multiplicity and bytes must be positive");
    if (!(options.seconds >= 0 && options.seconds < 1e8)) refuse("a time limit that is no number of seconds");
    const std::uint64_t needed = options.multiplicity * options.bytes;
    if (device.bytes < needed || host.bytes < needed)
        refuse("memory of " + std::to_string(std::min(device.bytes, host.bytes)) + " bytes; these copies need " +
               std::to_string(needed));
    return Copies(context, device.slice(0, needed), host.slice(0, needed), options).run();
}

}  // namespace penstock::load
