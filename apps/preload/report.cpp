// See report.hpp.
#include "preload/report.hpp"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace preload {
namespace {

// At a lock, before a row is given up: its holder may be the caller itself, interrupted by a signal.
constexpr int kLooks = 1000;
constexpr std::uint64_t kTextBytes = 1024 * 1024;

std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Memory of a mapping of its own, all zero: the program's allocator may be what failed. Null where there is none.
template <typename Item>
class Mapped {
public:
    explicit Mapped(std::uint64_t items) : bytes_(items * sizeof(Item)) {
        void* found = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        data_ = found == MAP_FAILED ? nullptr : static_cast<Item*>(found);
    }
    ~Mapped() {
        if (data_ != nullptr) ::munmap(data_, bytes_);
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    Item* data() const { return data_; }

private:
    std::uint64_t bytes_;
    Item* data_;
};

// The bytes of the character of UTF-8 that begins here; 0: none does.
int text_length(const char* text) {
    const auto byte = [text](int at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const int length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4) return 0;
    for (int at = 1; at < length; ++at) {
        if ((byte(at) & 0xc0) != 0x80) return 0;
    }
    const bool is_longer = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool is_beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
    return is_longer || is_beyond ? 0 : length;
}

}  // namespace

class JsonText {
public:
    JsonText() : memory_(kTextBytes), data_(memory_.data()) {}

    __attribute__((format(printf, 2, 3))) void put(const char* format, ...) {
        if (data_ == nullptr) return;
        va_list values;
        va_start(values, format);
        const int wrote = std::vsnprintf(data_ + used_, kTextBytes - used_, format, values);
        va_end(values);
        if (wrote > 0) used_ += std::min<std::uint64_t>(static_cast<std::uint64_t>(wrote), kTextBytes - used_ - 1);
    }
    // Names of files are bytes. Those that are no UTF-8 are told as Python names them, by U+DC80 to U+DCFF.
    void put_quoted(const char* name) {
        put("\"");
        for (int length = 1; *name != '\0'; name += length) {
            const auto byte = static_cast<unsigned char>(*name);
            length = text_length(name);
            if (byte == '"' || byte == '\\') put("\\%c", byte);
            else if (length == 0) put("\\udc%02x", byte), length = 1;
            else if (byte < 0x20) put("\\u%04x", byte);
            else put("%.*s", length, name);
        }
        put("\"");
    }
    const char* data() const { return data_; }
    std::uint64_t used() const { return used_; }

private:
    Mapped<char> memory_;
    char* data_;
    std::uint64_t used_ = 0;
};

void Report::begin() {
    began_ns_ = now_ns();
    count_ = 0;
    busy_.clear();
    written_.store(false);
    for (Count* one : {&opened_, &missed_, &small_files_, &small_bytes_}) one->store(0);
}

bool Report::lock() {
    for (int i = 0; i < kLooks; ++i) {
        if (!busy_.test_and_set(std::memory_order_acquire)) return true;
        ::sched_yield();
    }
    return false;
}

void Report::closed(const Descriptor& descriptor) {
    const std::uint64_t bytes = descriptor.counts[0].bytes.value() + descriptor.counts[1].bytes.value();
    const bool of_gpu = value(descriptor.counts[0].gpu) + value(descriptor.counts[1].gpu) +
                            value(descriptor.counts[0].bounced) + value(descriptor.counts[1].bounced) != 0;
    if (!of_gpu && bytes < static_cast<std::uint64_t>(settings_.limits.least_bytes)) {
        add(small_files_, 1);
        add(small_bytes_, bytes);
        return;
    }
    if (!lock()) return missed();
    join(descriptor, rows_, count_);
    unlock();
}

void Report::join(const Descriptor& descriptor, Row* rows, int& count) {
    Row* row = rows;
    const auto is_same = [&](const Row& one) {
        return one.device == descriptor.device && one.inode == descriptor.inode && one.born_ns == descriptor.born_ns;
    };
    while (row != rows + count && !is_same(*row)) ++row;
    if (row == rows + kMostRows) return missed();
    if (row == rows + count) {
        ++count;
        std::memset(static_cast<void*>(row), 0, sizeof *row);
        row->device = descriptor.device;
        row->inode = descriptor.inode;
        row->born_ns = descriptor.born_ns;
        row->ways[0].why = row->ways[1].why = kernel::Why::small;
    }
    std::memcpy(row->name, descriptor.name, sizeof row->name);
    for (const int at : {0, 1}) {
        const Counts& counts = descriptor.counts[at];
        Row::Way& way = row->ways[at];
        way.bytes += counts.bytes.value();
        way.asked += value(counts.asked);
        way.cached += value(counts.cached);
        way.gpu += value(counts.gpu);
        way.bounced += value(counts.bounced);
        const kernel::Why why = counts.why.load(std::memory_order_relaxed);
        if (why != kernel::Why::small) way.why = why;
    }
}

void Report::write(int threads) {
    if (settings_.report == nullptr) return;
    JsonText text;
    if (text.data() == nullptr || !lock()) return;
    const Mapped<Row> rows(kMostRows);
    int count = rows.data() == nullptr ? 0 : count_;
    if (count != 0) std::memcpy(static_cast<void*>(rows.data()), rows_, sizeof(Row) * static_cast<std::size_t>(count));
    table_.each([&](Descriptor& one) {  // still open: told as they are now, and counted once more when they are closed
        const std::uint64_t bytes = one.counts[0].bytes.value() + one.counts[1].bytes.value();
        const bool told = one.at_work.is_open() && bytes >= static_cast<std::uint64_t>(settings_.limits.least_bytes);
        if (told && rows.data() != nullptr) join(one, rows.data(), count);
    });
    unlock();
    put_head(text, threads);
    for (int i = 0; i < count; ++i) {
        if (i != 0) text.put(",");
        put_row(text, rows.data()[i]);
    }
    text.put("\n ]\n}\n");
    char name[4096];
    const int process = kernel::process();
    const bool first = settings_.first_process == 0 || settings_.first_process == process;
    std::snprintf(name, sizeof name, first ? "%s" : "%s.%d", settings_.report, process);
    written_.store(kernel::write_file(name, text.data(), text.used()));
}

void Report::put_head(JsonText& text, int threads) const {
    char program[4096] = {};
    if (::readlink("/proc/self/exe", program, sizeof program - 1) < 0) program[0] = '\0';
    text.put("{\n \"program\": ");
    text.put_quoted(program);
    text.put(",\n \"process\": %d,\n \"seconds\": %.3f,\n", kernel::process(),
             static_cast<double>(now_ns() - began_ns_) * 1e-9);
    const auto number = [](const Count& count) { return static_cast<unsigned long long>(value(count)); };
    text.put(" \"threads\": %d,\n \"files_opened\": %llu,\n", threads < 0 ? 0 : threads, number(opened_));
    text.put(" \"small_files\": {\"closed\": %llu, \"bytes\": %llu},\n", number(small_files_), number(small_bytes_));
    text.put(" \"files_not_listed\": %llu,\n \"files\": [", number(missed_));
}

void Report::put_row(JsonText& text, const Row& row) {
    text.put("\n  {\"name\": ");
    text.put_quoted(row.name);
    const char* directions[] = {"read", "written"};
    const char* early[] = {"read_ahead_bytes", "early_writeback_bytes"};
    for (const int at : {0, 1}) {
        const Row::Way& way = row.ways[at];
        if (way.bytes == 0) continue;
        const auto number = [](std::uint64_t bytes) { return static_cast<unsigned long long>(bytes); };
        text.put(",\n   \"%s\": {\"bytes\": %llu", directions[at], number(way.bytes));
        text.put(", \"%s\": %llu", early[at], number(way.asked));
        if (at == 0) text.put(", \"cached_bytes\": %llu", number(way.cached));
        if (way.gpu + way.bounced != 0) {
            text.put(", \"gpu_bytes\": %llu, \"gpu_by_host_bytes\": %llu", number(way.gpu), number(way.bounced));
        }
        const bool by_engine = way.gpu + way.bounced == way.bytes;
        text.put(", \"why\": \"%s\"}", by_engine ? "memory of a GPU" : kernel::words(way.why));
    }
    text.put("}");
}

}  // namespace preload
