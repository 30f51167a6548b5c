// See askers.hpp.
#include "preload/ask/askers.hpp"

#include <pthread.h>
#include <signal.h>

#include <cerrno>

namespace preload {
namespace {

constexpr int kMostRests = 20'000;  // a second: the program may have taken the number for a thread of its own
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

// The program's handlers run on the program's threads. Nor does one of them come while this thread says "busy": it may
// end the thread, and wait for that.
class NoSignals {
public:
    NoSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

private:
    sigset_t before_;
};

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
    if (started_.load(std::memory_order_relaxed) == kNone) start();
    news_.fetch_add(1);
    kernel::wake(reinterpret_cast<const std::uint32_t*>(&news_));
}

void Askers::start() {
    const NoSignals none_comes;
    int none = kNone;
    if (!started_.compare_exchange_strong(none, kBusy)) return;
    const int saved = errno;
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, kStackBytes);
    int made = 0;
    for (int i = 0; i < kThreads; ++i) {
        if (pthread_create(&ids_[made], &how, run, this) == 0) ++made;
    }
    pthread_attr_destroy(&how);
    started_.store(made == 0 ? kRefused : made);
    errno = saved;
}

void Askers::end(bool for_good) {
    const NoSignals none_comes;
    const int saved = errno;
    int made = started_.load();
    while (made == kBusy || (made >= kNone && !started_.compare_exchange_weak(made, kBusy))) {
        if (made == kBusy) kernel::rest(), made = started_.load();
    }
    if (made > kNone) {
        ends_.store(true);
        news_.fetch_add(1);
        kernel::wake(reinterpret_cast<const std::uint32_t*>(&news_), made);
        for (int i = 0; i < made; ++i) pthread_join(ids_[i], nullptr);
        for (int i = 0; i < made; ++i) {
            for (int rests = 0; rests < kMostRests && kernel::has_thread(numbers_[i].load()); ++rests) kernel::rest();
        }
        begun_.store(0);
        ends_.store(false);
    }
    if (made >= kNone) started_.store(for_good ? kOver : kNone);
    errno = saved;
}

void* Askers::run(void* askers) {
    auto& self = *static_cast<Askers*>(askers);
    self.numbers_[self.begun_.fetch_add(1)].store(kernel::thread());
    for (;;) {
        const std::uint32_t seen = self.news_.load();
        if (self.ends_.load()) return nullptr;
        bool any = false;
        self.table_.each([&](Descriptor& one) { any = serve(one) || any; });
        if (any) continue;
        kernel::wait(reinterpret_cast<const std::uint32_t*>(&self.news_), seen);
        // A cancelled main thread ends without a call that stands in for libc's. The process is to end with the last
        // thread of the program: none may live on here, or be started.
        if (self.news_.load() == seen && kernel::main_thread_is_gone()) {
            self.started_.store(kOver);
            return nullptr;
        }
    }
}

}  // namespace preload
