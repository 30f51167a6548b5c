// See watch.hpp.
#include "preload/watch.hpp"

#include <fcntl.h>
#include <pthread.h>

#include "preload/gpu/moves.hpp"
#include "preload/gpu/loaded.hpp"

namespace preload {

constinit Watch watch;

namespace {

void child_begins() { watch.begin_child(); }

__attribute__((constructor)) void library_begins() { watch.begin(); }
__attribute__((destructor)) void library_ends() { watch.end(); }

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

void Watch::begin() {
    read_settings(settings_);
    process_ = kernel::process();
    report_.begin();
    pthread_atfork(nullptr, nullptr, child_begins);
}

void Watch::begin_child() {
    process_ = kernel::process();
    askers_.forget();
    table_.forget();
    forget_engine();
    report_.begin();
}

void Watch::end() {
    if (!is_ours()) return;
    if (settings_.durable) flush_all();
    report_.write(askers_.threads());
}

void Watch::opened(int number, const char* name, const void* caller) {
    if (number < 0 || process_ == 0) return;
    kernel::FileFacts facts;
    if (!kernel::stat(number, facts) || !facts.regular || (facts.flags & O_PATH) != 0) return replaced(number);
    if (!writes(facts.flags) && facts.bytes < settings_.limits.least_bytes) return replaced(number);
    if (!is_ours() || !is_matched(settings_, name) || is_of_engine(caller)) return replaced(number);
    replaced(number);
    report_.opened();
    if (table_.put(number, name, facts) == nullptr) report_.missed();
}

// Where the kernel says that both stand, the calls of both are one sequence each: what they ask for may be asked twice.
void Watch::duplicated(int number, int other) {
    if (other < 0) return;
    const Descriptor* one = table_.find(number);
    kernel::FileFacts facts;
    if (one == nullptr || !is_ours() || !kernel::stat(other, facts)) return;
    replaced(other);
    if (table_.put(other, one->name, facts) == nullptr) report_.missed();
}

void Watch::moved(Descriptor& descriptor, const Moved& moved) {
    const int at = static_cast<int>(moved.direction);
    const auto bytes = static_cast<std::uint64_t>(moved.bytes);
    const std::uint64_t before = descriptor.counts[at].bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (!is_placed(before, moved.bytes) || descriptor.is_refused(moved.direction)) return;
    const std::int64_t end = moved.offset >= 0 ? moved.offset + moved.bytes : kernel::position(descriptor.number);
    if (end < 0 || descriptor.state.test_and_set(std::memory_order_acquire)) return;
    const Span span = descriptor.sequences[at].moved(span_to(end, moved.bytes), settings_.limits);
    if (!span.empty()) descriptor.asked[at].leave(span);
    descriptor.state.clear(std::memory_order_release);
    if (!span.empty() && is_ours()) askers_.wake();
}

Descriptor* Watch::closing(int number, int& error) {
    error = 0;
    if (table_.find(number) == nullptr || !is_ours()) return nullptr;
    Descriptor* descriptor = table_.take(number);
    if (descriptor == nullptr) return nullptr;
    descriptor->at_work.end();
    while (descriptor->at_work.busy()) {  // for one piece at most
        kernel::rest();
    }
    if (settings_.durable && value(descriptor->of(Direction::write).bytes) != 0) error = kernel::flush(number);
    close_engine_files(*descriptor);
    return descriptor;
}

void Watch::closed(Descriptor* descriptor) {
    if (descriptor == nullptr) return;
    if (askers_.threads() < 0) {
        for (Counts& counts : descriptor->counts) counts.why.store(kernel::Why::no_thread);
    }
    report_.closed(*descriptor);
    table_.give_back(*descriptor);
    if (report_.is_written()) report_.write(askers_.threads());  // the program has ended, and its runtime closes files
}

void Watch::replaced(int number) {
    int error = 0;
    closed(closing(number, error));
}

void Watch::flush_all() {
    table_.each([&](Descriptor& one) {
        if (one.at_work.is_open() && value(one.of(Direction::write).bytes) != 0) kernel::flush(one.number);
    });
}

}  // namespace preload
