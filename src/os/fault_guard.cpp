// See fault_guard.hpp. The handler touches only its thread's own record, which lives in static thread-local storage
// (initial-exec), so that reaching it in a signal handler never allocates.
#include "os/fault_guard.hpp"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace penstock::os {
namespace {

struct Copying {
    sigjmp_buf leave;
    std::uintptr_t from;
    std::size_t bytes;
};
[[gnu::tls_model("initial-exec")]] thread_local Copying* copying = nullptr;

struct Installed {
    std::mutex mutex;
    int guards = 0;              // guarded by mutex
    struct sigaction before {};  // written while no guard lives, read by the handler
};
Installed& installed() noexcept {
    static Installed one;
    return one;
}

void pass_on(int number, siginfo_t* info, void* context) {
    const struct sigaction& before = installed().before;
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        // The fault happens again at return and meets the default: the process ends as it would have without us.
        struct sigaction fallback {};
        fallback.sa_handler = SIG_DFL;
        ::sigaction(SIGBUS, &fallback, nullptr);
    } else {
        before.sa_handler(number);
    }
}

void on_bus_error(int number, siginfo_t* info, void* context) {
    Copying* mine = copying;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (mine != nullptr && address >= mine->from && address - mine->from < mine->bytes) ::siglongjmp(mine->leave, 1);
    pass_on(number, info, context);
}

bool ours(const struct sigaction& action) noexcept {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_bus_error;
}

}  // namespace

FaultGuard::FaultGuard() {
    Installed& state = installed();
    const std::lock_guard lock(state.mutex);
    if (state.guards++ != 0) return;
    struct sigaction now {};
    ::sigaction(SIGBUS, nullptr, &now);
    if (ours(now)) return;
    state.before = now;
    struct sigaction mine {};
    mine.sa_sigaction = on_bus_error;
    mine.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;  // NODEFER: leaving by siglongjmp needs no mask restored
    ::sigemptyset(&mine.sa_mask);
    ::sigaction(SIGBUS, &mine, nullptr);
}

FaultGuard::~FaultGuard() {
    Installed& state = installed();
    const std::lock_guard lock(state.mutex);
    if (--state.guards != 0) return;
    struct sigaction now {};
    ::sigaction(SIGBUS, nullptr, &now);
    if (ours(now)) ::sigaction(SIGBUS, &state.before, nullptr);
}

bool FaultGuard::usable() const noexcept {
    struct sigaction now {};
    return ::sigaction(SIGBUS, nullptr, &now) == 0 && ours(now);
}

bool FaultGuard::copy(void* to, const void* from, std::size_t bytes) const noexcept {
    Copying mine;
    mine.from = reinterpret_cast<std::uintptr_t>(from);
    mine.bytes = bytes;
    if (sigsetjmp(mine.leave, 0) != 0) {
        copying = nullptr;
        return false;
    }
    copying = &mine;
    // The record must be in place before the first byte is touched, and stay until the last one was.
    asm volatile("" ::: "memory");
    std::memcpy(to, from, bytes);
    asm volatile("" ::: "memory");
    copying = nullptr;
    return true;
}

}  // namespace penstock::os
