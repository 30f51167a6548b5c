// See call_service.hpp.
#include "ondevice/calls/call_service.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "ondevice/service/naps.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

constexpr std::size_t kToldMost = 64;
constexpr std::uint32_t kCallThreadsMost = 64;
constexpr std::uint32_t kOpenFilesMost = 1u << 16;

[[noreturn]] void refuse_calls(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "answer calls of a device", cause, advice);
}

CallServiceOptions checked_calls(const CallServiceOptions& options, u32 slot_bytes) {
    if (options.threads == 0 || options.threads > kCallThreadsMost) {
        refuse_calls(std::to_string(options.threads) + " threads",
                     "give 1 to " + std::to_string(kCallThreadsMost));
    }
    if (options.files == 0 || options.files > kOpenFilesMost) {
        refuse_calls(std::to_string(options.files) + " files", "give 1 to " + std::to_string(kOpenFilesMost));
    }
    if (slot_bytes < 2 * sizeof(CallHead) || slot_bytes % sizeof(CallHead) != 0) {
        refuse_calls("slots of " + std::to_string(slot_bytes) + " bytes",
                     "give a multiple of " + std::to_string(sizeof(CallHead)) + ", at least two");
    }
    return options;
}

// The name that a call has as its argument; empty: it is none.
std::string name_in(std::span<const std::byte> argument) {
    const std::string name(reinterpret_cast<const char*>(argument.data()), argument.size());
    return name.find('\0') == std::string::npos ? name : std::string();
}

}  // namespace

CallService::CallService(Mailbox& mailbox, const CallServiceOptions& options)
    : mailbox_(mailbox),
      options_(checked_calls(options, mailbox.answering_ref().slot_bytes)),
      room_(mailbox.answering_ref().slot_bytes - static_cast<u32>(sizeof(CallHead))),
      files_(options.system != nullptr ? *options.system : os::real_system(), options.files),
      server_(mailbox.answering_server()) {
    try {
        for (u32 i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { run(); });
    } catch (const std::system_error& error) {
        end();
        throw Error(ErrorCode::out_of_memory, "answer calls of a device", error.code().message(),
                    "raise the limit of processes and threads, or ask for fewer threads");
    }
}

void CallService::end() {
    stop_.store(true, std::memory_order_release);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    u32 slot = 0;
    for (Request request{}; server_.next(slot, request);) answer(slot, {Status::cancelled});
    files_.close_all();
}

void CallService::run() {
    answer_file_size_limits();
    Naps naps(options_.spin_us, options_.sleep_us);
    Bytes argument(room_);
    while (!stop_.load(std::memory_order_acquire)) {
        u32 slot = 0;
        Request request{};
        switch (take(slot, request)) {
            case Look::taken:
                answer(slot, perform(slot, request, argument));
                naps.worked();
                break;
            case Look::nothing: naps.rest(); break;
            case Look::beside_another: std::this_thread::sleep_for(std::chrono::microseconds(options_.sleep_us)); break;
        }
    }
}

// One thread looks at a time. Another sleeps meanwhile: two that look would take the lock and the descriptors from
// each other, which makes a call a microsecond longer. It wakes soon enough to look while the first performs a call.
CallService::Look CallService::take(u32& slot, Request& request) {
    const std::unique_lock lock(taking_, std::try_to_lock);
    if (!lock.owns_lock()) return Look::beside_another;
    return server_.next(slot, request) ? Look::taken : Look::nothing;
}

void CallService::answer(u32 slot, const CallOutcome& outcome) {
    answer_call(server_, mailbox_.slot_data(slot), slot,
                {outcome.status, static_cast<u32>(outcome.answer_bytes), outcome.value});
}

// A small call's head comes at most a moment after the call, unless its kernel was stopped between the two.
bool CallService::found_head(u32 slot, CallHead& head) const {
    while (!load_head<Native>(mailbox_.slot_data(slot), server_.lap(slot), false, head)) {
        if (ending()) return false;
        Native::pause(0);
    }
    return true;
}

CallOutcome CallService::perform(u32 slot, const Request& request, Bytes& argument) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    CallHead head{};
    if (!found_head(slot, head)) return {Status::cancelled};
    const bool is_small = request.operation == call_in_head;
    const u32 most = is_small ? most_in_head : room_;
    if (request.bytes > most || head.answer_most() > room_) return {Status::invalid, -std::int64_t{EINVAL}};
    const std::span<std::byte> data(reinterpret_cast<std::byte*>(mailbox_.slot_data(slot)) + sizeof head, room_);
    const auto given = is_small ? std::as_writable_bytes(std::span(&head.block, 1)) : data;
    const auto answer = data.first(head.answer_most());
    try {
        if (request.file < first_registered) {
            if (!is_small && head.block > ~u32{0}) return {Status::invalid, -std::int64_t{EBADF}};
            const u32 file = is_small ? 0 : static_cast<u32>(head.block);
            return on_files(request, file, given.first(request.bytes), answer);
        }
        const auto entry = functions_.at(request.file);
        if (entry == nullptr) return {Status::invalid, -std::int64_t{ENOSYS}};
        std::memcpy(argument.data(), given.data(), request.bytes);  // the answer comes into the same place
        return run_function(*entry, {.value = request.offset_bytes,
                                     .argument = std::span(argument).first(request.bytes),
                                     .answer = answer});
    } catch (const std::exception& error) {  // names and tables need memory
        return failed_call("the host", error.what());
    }
}

CallOutcome CallService::on_files(const Request& request, u32 file, std::span<std::byte> argument,
                                  std::span<std::byte> answer) {
    const std::uint64_t value = request.offset_bytes;
    switch (static_cast<HostWork>(request.file)) {
        case HostWork::find: {
            const auto number = functions_.find(name_in(argument));
            if (!number) return {Status::invalid, -std::int64_t{ENOENT}};
            return {Status::ok, *number};
        }
        case HostWork::open: {
            const std::string name = name_in(argument);
            if (name.empty()) return {Status::invalid, -std::int64_t{ENOENT}};
            return files_.open(name, value);
        }
        case HostWork::read: return files_.read(file, value, answer);
        case HostWork::write: return files_.write(file, value, argument);
        case HostWork::seek: {
            SeekFrom from{};
            if (argument.size() != sizeof from) break;
            std::memcpy(&from, argument.data(), sizeof from);
            if (from > SeekFrom::end) break;
            return files_.seek(file, static_cast<std::int64_t>(value), from);
        }
        case HostWork::sync: return files_.sync(file);
        case HostWork::close: return files_.close(file);
    }
    return {Status::invalid, -std::int64_t{EINVAL}};
}

CallOutcome CallService::run_function(const FunctionTable::Registered& entry, const HostCall& call) {
    try {
        const HostAnswer answer = entry.call(call);
        if (answer.bytes > call.answer.size()) {
            return failed_call(entry.name, "it says that it gave " + std::to_string(answer.bytes) +
                                               " bytes of an answer, and there was room for " +
                                               std::to_string(call.answer.size()));
        }
        return {Status::ok, answer.value, answer.bytes};
    } catch (const std::exception& error) {
        return failed_call(entry.name, error.what());
    } catch (...) {
        return failed_call(entry.name, "it threw what is no std::exception");
    }
}

CallOutcome CallService::failed_call(const std::string& function, const std::string& what) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    const std::scoped_lock lock(told_);
    if (failed_.size() < kToldMost) failed_.push_back({function, what});
    return {Status::failed};
}

std::vector<FailedCall> CallService::failed() const {
    const std::scoped_lock lock(told_);
    return failed_;
}

}  // namespace penstock::ondevice
