// Transfers that Python started: how they are waited for, cancelled and dropped. Transfer options from keywords.
#include <algorithm>
#include <cmath>
#include <system_error>
#include <thread>
#include <utility>

#include "python/shared/binding.hpp"

namespace penstock::python {
namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(100);
constexpr const char* kOptions = "path, chunk_bytes, workers, depth, strict, durable, full_evidence, timeout_s";

// Keeps a caller's memory until the transfer no longer uses it, because its owner may free it as soon as it is
// released. A detached thread waits for that. If no thread can start, the memory is never released.
void keep_until_done(Transfer transfer, std::vector<SharedMemory> memory) noexcept {
    auto* left = std::make_unique<std::vector<SharedMemory>>(std::move(memory)).release();
    try {
        std::thread([transfer = std::move(transfer), left]() mutable {
            transfer.wait();
            transfer = {};
            if (Py_IsInitialized() == 0) return;  // the interpreter has ended and the process will end soon
            const GilHeld gil;
            const std::unique_ptr<std::vector<SharedMemory>> last(left);
        }).detach();
    } catch (const std::system_error&) {
    }
}

}  // namespace

PythonTransfer::PythonTransfer(Transfer transfer, std::vector<SharedMemory> memory, Deadline deadline)
    : transfer_(std::move(transfer)), memory_(std::move(memory)), deadline_(deadline) {}

PythonTransfer::~PythonTransfer() {
    const bool foreign = std::any_of(memory_.begin(), memory_.end(), [](const auto& one) { return one->is_foreign(); });
    if (!foreign || ended()) return;
    cancel();
    bool done = false;
    {
        const GilReleased release;
        done = transfer_.wait(patience());
    }
    if (!done) keep_until_done(std::move(transfer_), std::move(memory_));
}

void PythonTransfer::cancel() {
    auto never = Clock::time_point::max();
    cancelled_at_.compare_exchange_strong(never, Clock::now());
    transfer_.cancel();
}

// Returns the time until which waiting makes sense.
Deadline PythonTransfer::patience() const noexcept {
    const auto cancelled = cancelled_at_.load();
    auto end = deadline_.when();
    if (cancelled != Clock::time_point::max()) end = std::min(end, cancelled);
    return end == Clock::time_point::max() ? Deadline::never() : Deadline::at(end + kLeavePatience);
}

bool PythonTransfer::settle(Deadline deadline) const {
    return wait_in_slices(deadline, [this](Deadline next) {
        const Deadline end = patience();
        return transfer_.wait(end.when() < next.when() ? end : next) || end.passed();
    });
}

Outcome PythonTransfer::result() const {
    settle(Deadline::never());
    const GilReleased release;
    return transfer_.result(Deadline::now());
}

// In a forked child nothing runs, because the transfer belongs to the parent.
bool PythonTransfer::ended() const noexcept {
    try {
        return transfer_.done();
    } catch (const Error&) {
        return true;
    }
}

bool PythonTransfer::wait(Deadline deadline, nb::handle progress) const {
    const auto slice = [this](Deadline next) { return transfer_.wait(next); };
    if (progress.is_none()) return wait_in_slices(deadline, slice);
    for (;;) {
        const auto next = Deadline::after(std::min<std::chrono::nanoseconds>(kProgressEvery, deadline.left()));
        const bool done = wait_in_slices(next, slice);
        in_python([&] { progress(transfer_.bytes_done(), transfer_.bytes_total()); });
        if (done || deadline.passed()) return done;
    }
}

Deadline deadline_after(const std::string& name, nb::handle value) {
    const auto seconds = option<std::optional<double>>(name, value);
    if (!seconds) return Deadline::never();
    if (!(*seconds >= 0)) {
        const auto given = nb::cast<std::string>(nb::repr(nb::float_(*seconds)));
        throw nb::value_error((name + " is " + given + "; it must be 0 seconds or more, or None for no limit").c_str());
    }
    constexpr double kCentury_s = 3.2e9;
    if (*seconds >= kCentury_s) return Deadline::never();
    return Deadline::after(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds)));
}

void PythonFile::began(const Transfer& transfer) {
    if (under_way_.size() >= forget_at_) {
        std::erase_if(under_way_, [](const Transfer& one) { return one.done(); });
        forget_at_ = std::max<std::size_t>(64, 2 * under_way_.size());
    }
    under_way_.push_back(transfer);
}

void PythonFile::wait() const {
    const std::vector<Transfer> started = under_way_;  // a copy, because other threads may start more meanwhile
    for (const Transfer& transfer : started) {
        wait_in_slices(Deadline::never(), [&](Deadline next) { return transfer.wait(next); });
    }
}

TransferOptions transfer_options(const nb::kwargs& keywords) {
    TransferOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "path")
            options.path = path_kind(option<std::string>(name, value));
        else if (name == "chunk_bytes")
            options.chunk_bytes = byte_count(name, value);
        else if (name == "workers")
            options.workers = option<std::uint32_t>(name, value);
        else if (name == "depth")
            options.depth = option<std::uint32_t>(name, value);
        else if (name == "strict")
            options.strict = option<bool>(name, value);
        else if (name == "durable")
            options.durable = option<bool>(name, value);
        else if (name == "full_evidence")
            options.full_evidence = option<bool>(name, value);
        else if (name == "caller_waits")
            options.caller_waits = option<bool>(name, value);
        else if (name == "timeout_s")
            options.deadline = deadline_after(name, value);
        else
            throw nb::type_error(("transfer options have no '" + name + "'; there are " + kOptions).c_str());
    }
    return options;
}

}  // namespace penstock::python
