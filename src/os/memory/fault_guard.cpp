// See fault_guard.hpp. The handler finds its thread's copy by thread id in a table of fixed size. It needs no lock and
// no thread-local storage, whose first use in a thread may allocate and which a module loaded late cannot have as a
// static.
#include "os/memory/fault_guard.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>

namespace penstock::os {
namespace {

struct Copying {
    // 0: free. Pairs with: claim() acquires what the destructor of GuardedCopies released.
    std::atomic<pid_t> thread{0};
    sigjmp_buf leave;
    std::span<const HostCopy> pieces;  // being copied now

    bool reads(std::uintptr_t address) const noexcept {
        return std::any_of(pieces.begin(), pieces.end(), [address](const HostCopy& one) {
            const auto from = reinterpret_cast<std::uintptr_t>(one.from);
            return address >= from && address - from < one.bytes;
        });
    }
};

// GuardedCopies takes its entries from the first kKept. The others serve single copies, which soon end, so that a
// single copy always finds an entry.
constexpr std::size_t kEntries = 256, kKept = 192;
std::array<Copying, kEntries>& table() noexcept {
    static std::array<Copying, kEntries> all;
    return all;
}

pid_t thread_id() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }

Copying* claim(pid_t thread, std::size_t first, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        Copying& entry = table()[first + (static_cast<std::size_t>(thread) + i) % count];
        pid_t free = 0;
        if (entry.thread.compare_exchange_strong(free, thread, std::memory_order_acquire)) return &entry;
    }
    return nullptr;
}

// Claims an entry for a single copy. Waits until another thread gives one back, which is soon.
Copying* claim_soon(pid_t thread) noexcept {
    for (;;) {
        if (Copying* const entry = claim(thread, kKept, kEntries - kKept)) return entry;
        std::this_thread::yield();
    }
}

// Finds the thread's entry. If it has both kinds, it is using the one for single copies, so the search starts there.
Copying* find(pid_t thread) noexcept {
    auto& all = table();
    for (auto entry = all.rbegin(); entry != all.rend(); ++entry) {
        if (entry->thread.load(std::memory_order_relaxed) == thread) return &*entry;
    }
    return nullptr;
}

struct Installed {
    std::mutex mutex;
    int guards = 0;              // guarded by mutex
    struct sigaction before {};  // written while no guard lives; the handler reads it
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
        // The fault happens again when the handler returns, and the default action ends the process as without this
        // handler.
        struct sigaction fallback {};
        fallback.sa_handler = SIG_DFL;
        ::sigaction(SIGBUS, &fallback, nullptr);
    } else {
        before.sa_handler(number);
    }
}

void on_bus_error(int number, siginfo_t* info, void* context) {
    Copying* mine = find(thread_id());
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (mine != nullptr && mine->reads(address)) ::siglongjmp(mine->leave, 1);
    pass_on(number, info, context);
}

std::size_t ended(Copying& mine, std::size_t done) noexcept {
    mine.pieces = {};
    return done;
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
    mine.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
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
    const GuardedCopies::Piece piece{to, from, bytes};
    return GuardedCopies(claim_soon(thread_id())).copy_each({&piece, 1}, nullptr, nullptr) == 1;
}

GuardedCopies::GuardedCopies() noexcept : entry_(claim(thread_id(), 0, kKept)) {}

GuardedCopies::~GuardedCopies() {
    if (entry_ != nullptr) static_cast<Copying*>(entry_)->thread.store(0, std::memory_order_release);
}

std::size_t GuardedCopies::copy_each(std::span<const Piece> pieces, void (*after)(void*, std::size_t),
                                     void* context) noexcept {
    Copying* const mine = static_cast<Copying*>(entry_);
    if (mine == nullptr) return 0;
    // Volatile, because siglongjmp must find their current values.
    volatile std::size_t done = 0, some = 1;
    volatile bool alone = false;
    // Saves the signal mask. A sanitizer or runtime that wraps signal handlers may run ours with all signals blocked.
    // Without the saved mask, a second fault would then end the process.
    if (sigsetjmp(mine->leave, 1) != 0) {
        if (some == 1) return ended(*mine, done);
        alone = true;  // copies the pieces one by one to find the one that faults
    }
    while (done < pieces.size()) {
        const auto left = pieces.subspan(done);
        some = alone ? 1 : overlap_count(left);
        mine->pieces = left.first(some);
        // The handler must see the record before the first byte is read, and until after the last one.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        copy_overlapped(mine->pieces, left.subspan(some));
        std::atomic_signal_fence(std::memory_order_seq_cst);
        for (std::size_t i = done, end = i + some; i < end; ++i) {
            done = i + 1;
            if (after != nullptr) after(context, i);
        }
    }
    return ended(*mine, done);
}

}  // namespace penstock::os
