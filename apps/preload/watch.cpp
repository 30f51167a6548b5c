// See watch.hpp.
#include "preload/watch.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "preload/gpu/moves.hpp"
#include "preload/gpu/loaded.hpp"

namespace preload {

constinit Watch watch;

namespace {

void child_begins() { watch.begin_child(); }
void process_ends() { watch.end(); }

__attribute__((constructor)) void library_begins() { watch.begin(); }
__attribute__((destructor)) void library_ends() {
    watch.flush_streams();
    watch.end();
}

// Unless another thread is in it: that one may wait for a terminal, and the program must end.
void flush_stream(FILE* stream) {
    if (stream == nullptr || ::ftrylockfile(stream) != 0) return;
    ::fflush_unlocked(stream);
    ::funlockfile(stream);
}

}  // namespace

void Watch::begin() {
    read_settings(settings_);
    process_ = kernel::process();
    report_.begin();
    pthread_atfork(nullptr, nullptr, child_begins);
    if (settings_.durable) ::at_quick_exit(process_ends);
}

void Watch::begin_child() {
    process_ = aside_ ? 0 : kernel::process();
    askers_.forget();
    table_.forget();
    read_list_without_lock();
    forget_engine();
    report_.begin();
}

void Watch::end() {
    if (!is_ours()) return;
    if (settings_.durable) flush_all();
    report_.write(askers_.threads());
}

void Watch::stand_aside() {
    if (!is_ours()) return;
    askers_.end(true);
    report_.write(askers_.threads());
    table_.forget();
    settings_.durable = false;
    aside_ = true;
    process_ = 0;
}

void Watch::opened(int number, const char* name, const void* caller) {
    if (number < 0 || process_ == 0) return;
    kernel::FileFacts facts;
    forget(number);
    if (!kernel::stat(number, facts) || !facts.regular || (facts.flags & O_PATH) != 0) return;
    if (!kernel::writes(facts) && facts.bytes < settings_.limits.least_bytes) return;
    if (!is_ours() || !is_matched(settings_, name) || is_of_engine(caller)) return;
    report_.opened();
    if (table_.put(number, name, facts) == nullptr) report_.missed();
}

void Watch::streamed(int number, void* stream) {
    if (Descriptor* one = is_ours() ? table_.find(number) : nullptr) one->stream.store(stream);
}

// Where the kernel says that both stand, the calls of both are one sequence each: what they ask for may be asked twice.
void Watch::duplicated(int number, int other) {
    if (other < 0) return;
    const Descriptor* one = table_.find(number);
    kernel::FileFacts facts;
    if (one == nullptr || !is_ours() || !kernel::stat(other, facts)) return;
    forget(other);
    if (table_.put(other, one->name, facts) == nullptr) report_.missed();
}

void Watch::moved(Descriptor& descriptor, const Moved& moved) {
    const int at = static_cast<int>(moved.direction);
    const auto bytes = static_cast<std::uint64_t>(moved.bytes);
    const std::uint64_t before = descriptor.counts[at].bytes.add(bytes);
    if (!is_placed(before, moved.bytes) || descriptor.is_refused(moved.direction)) return;
    const std::int64_t end = moved.offset >= 0 ? moved.offset + moved.bytes : kernel::position(descriptor.number);
    if (end < 0 || descriptor.state.test_and_set(std::memory_order_acquire)) return;
    const Span span = descriptor.sequences[at].moved(span_to(end, moved.bytes), settings_.limits);
    const bool asks = !span.empty() && is_ours() && Askers::suits(descriptor, moved.direction);
    if (asks) descriptor.asked[at].leave(span);
    descriptor.state.clear(std::memory_order_release);
    if (asks) askers_.wake();
}

Descriptor* Watch::closing(int number, int& error) {
    error = 0;
    const bool is_listed = table_.find(number) != nullptr;
    if (!is_listed && !flushes_unlisted()) return nullptr;
    if (!is_ours()) return nullptr;
    if (!is_listed) error = flush_unlisted(number);
    Descriptor* descriptor = is_listed ? table_.take(number) : nullptr;
    if (descriptor == nullptr) return nullptr;
    descriptor->at_work.end();
    while (descriptor->at_work.busy()) {  // for one piece at most
        kernel::rest();
    }
    // Not only if writes were seen: fprintf, copy_file_range, sendfile and mmap write unseen.
    if (settings_.durable && descriptor->may_write) error = kernel::flush(number);
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

void Watch::forget(int number) {
    if (table_.find(number) != nullptr) replaced(number);
}

void Watch::flush_streams() {
    if (!settings_.durable || !is_ours()) return;
    flush_stream(stdout);
    table_.each([](Descriptor& one) {
        if (one.at_work.is_open() && one.may_write) flush_stream(static_cast<FILE*>(one.stream.load()));
    });
}

void Watch::flush_all() {
    table_.each([](Descriptor& one) {
        if (one.at_work.is_open() && one.may_write) kernel::flush(one.number);
    });
    const int numbers = flushes_unlisted() ? std::min(kMostNumber, kernel::most_numbers()) : 0;
    for (int number = 0; number < numbers; ++number) {
        if (table_.find(number) == nullptr) flush_unlisted(number);
    }
}

// A file has no entry where the table is full, and where the program was given it open, by its starter or by another
// process. Whether its name matches is not known.
bool Watch::flushes_unlisted() const {
    return settings_.durable && (settings_.match == nullptr || report_.has_missed());
}

int Watch::flush_unlisted(int number) {
    kernel::FileFacts facts;
    const bool may_write = kernel::stat(number, facts) && facts.regular && kernel::writes(facts);
    return may_write ? kernel::flush(number) : 0;
}

}  // namespace preload
