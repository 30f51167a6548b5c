// See askers.hpp.
#include "preload/ask/askers.hpp"

#include <pthread.h>
#include <signal.h>

#include <cerrno>

namespace preload {
namespace {

constexpr int kThreads = 2;
constexpr std::size_t kStackBytes = 256 * 1024;  // room for the thread-local storage of large programs

void ask(Descriptor& descriptor, Direction direction, Span span) {
    Counts& counts = descriptor.of(direction);
    if (direction == Direction::write) {
        kernel::start_writeback(descriptor.number, span);
        add(counts.asked, static_cast<std::uint64_t>(span.bytes));
        return;
    }
    kernel::FileFacts facts;
    if (!kernel::stat(descriptor.number, facts) || span.offset >= facts.bytes) return;
    span.bytes = std::min(span.bytes, facts.bytes - span.offset);
    const bool cached = kernel::is_cached(descriptor.number, span) != 0;
    if (!cached) kernel::read_ahead(descriptor.number, span);
    add(cached ? counts.cached : counts.asked, static_cast<std::uint64_t>(span.bytes));
}

bool serve_piece(Descriptor& descriptor, Direction direction) {
    if (!descriptor.at_work.enter()) return false;
    const Span span = descriptor.asked[static_cast<int>(direction)].take();
    if (!span.empty()) ask(descriptor, direction, span);
    descriptor.at_work.leave();
    return !span.empty();
}

}  // namespace

bool Askers::suits(Descriptor& descriptor, Direction direction) {
    Counts& counts = descriptor.of(direction);
    std::atomic<bool>& judged = descriptor.judged[static_cast<int>(direction)];
    if (!judged.load(std::memory_order_acquire)) {
        counts.why.store(kernel::unsuited(descriptor.number, direction));
        judged.store(true, std::memory_order_release);
    }
    return counts.why.load(std::memory_order_relaxed) == kernel::Why::none;
}

bool Askers::serve(Descriptor& descriptor) {
    const bool wrote = serve_piece(descriptor, Direction::write);
    return serve_piece(descriptor, Direction::read) || wrote;
}

void Askers::wake() {
    if (started_.load(std::memory_order_relaxed) == 0) start();
    news_.fetch_add(1);
    kernel::wake(reinterpret_cast<const std::uint32_t*>(&news_));
}

void Askers::start() {
    int none = 0;
    if (!started_.compare_exchange_strong(none, kThreads)) return;
    const int saved = errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's handlers run on the program's threads
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, kStackBytes);
    int made = 0;
    for (int i = 0; i < kThreads; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, &how, run, this) == 0) ++made;
    }
    pthread_attr_destroy(&how);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (made == 0) started_.store(-1);  // not tried again
    errno = saved;
}

void* Askers::run(void* askers) {
    auto& self = *static_cast<Askers*>(askers);
    for (;;) {
        const std::uint32_t seen = self.news_.load();
        bool any = false;
        self.table_.each([&](Descriptor& one) { any = serve(one) || any; });
        if (!any) kernel::wait(reinterpret_cast<const std::uint32_t*>(&self.news_), seen);
    }
    return nullptr;
}

}  // namespace preload
