// What was done and what was not, told at the end as JSON: bytes of each file, the way they took, and why no other.
//
// Files are told when they are closed, and those that are still open when the report is written. Descriptors of one
// file are one row. Rows have a fixed pool; what does not fit is counted. The report is written again if a library
// closes files after the program's end, as runtimes of Fortran do.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/settings.hpp"
#include "preload/ask/table.hpp"

namespace preload {

inline constexpr int kMostRows = 512;

// One file. Plain numbers, guarded by the report's lock.
struct Row {
    struct Way {
        std::uint64_t bytes, asked, cached, gpu, bounced;
        kernel::Why why;
    };
    Way ways[2];
    std::uint64_t device, inode;
    std::int64_t born_ns;
    char name[kMostName];
};

class JsonText;

class Report {
public:
    constexpr Report(Settings& settings, Table& table) : settings_(settings), table_(table) {}

    void begin();  // of the process, or of the child of a fork
    // A descriptor that was closed: its counts join the row of its file.
    void closed(const Descriptor& descriptor);
    void opened() { add(opened_, 1); }
    void missed() { add(missed_, 1); }
    bool has_missed() const { return value(missed_) != 0; }
    // If a report was asked for. Threads are those of the askers.
    void write(int threads);
    bool is_written() const { return written_.load(std::memory_order_relaxed); }

private:
    void join(const Descriptor& descriptor, Row* rows, int& count);
    void put_head(JsonText& text, int threads) const;
    static void put_row(JsonText& text, const Row& row);
    bool lock();
    void unlock() { busy_.clear(std::memory_order_release); }

    Settings& settings_;
    Table& table_;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;  // guards rows_, count_
    std::atomic<bool> written_{false};
    Count opened_{0}, missed_{0}, small_files_{0}, small_bytes_{0};
    std::int64_t began_ns_ = 0;
    int count_ = 0;
    Row rows_[kMostRows] = {};
};

}  // namespace preload
