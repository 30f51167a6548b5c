// What the functions that stand in for libc's call: a file was opened, moved bytes, is about to be closed.
//
// The one process-wide object. It is constant-initialised, because libc's functions are called before any constructor
// runs. A child of vfork shares the parent's memory, and must not change it: what opens and closes asks first whose
// process this is.
#pragma once

#include "preload/ask/askers.hpp"
#include "preload/report.hpp"
#include "preload/settings.hpp"
#include "preload/ask/table.hpp"

namespace preload {

struct Moved {
    Direction direction;
    std::int64_t bytes;
    std::int64_t offset = -1;  // below 0: where the descriptor stands
};

class Watch {
public:
    constexpr Watch() : askers_(table_), report_(settings_, table_) {}

    void begin();       // at the library's constructor
    void begin_child();  // after a fork
    void end();         // at the end of the process
    // Before end(), where files are to be durable and the runtime will write out its streams: it does so after this
    // library's end. Not at _exit(), at which what a stream holds is not written.
    void flush_streams();

    // The main thread ends and the process goes on: it must end with the program's last thread.
    void main_thread_ends() {
        if (is_ours()) askers_.end(true);
    }
    // The kernel is about to be asked for what it gives a process of one thread only.
    void be_one_thread() {
        if (is_ours()) askers_.end(false);
    }

    // The program is about to give up system calls: the report is written, and from now on the library makes none.
    void stand_aside();

    // `number` was opened, whatever it was before, by code at `caller`. `name` as the program gave it.
    void opened(int number, const char* name, const void* caller);
    void streamed(int number, void* stream);  // the program has a FILE on it
    void duplicated(int number, int other);
    void moved(Descriptor& descriptor, const Moved& moved);
    Descriptor* find(int number) { return table_.find(number); }
    // A descriptor is about to be closed: nothing works for its number when this returns. Where files are to be durable
    // it is so then. Null: nothing is known of it. Give the result to `closed` after the close.
    Descriptor* closing(int number, int& error);
    void closed(Descriptor* descriptor);
    // Another number was put in the place of this one, or it went with others: closing and closed in one.
    void replaced(int number);

    Settings& settings() { return settings_; }
    bool is_ours() const { return process_ != 0 && process_ == kernel::process(); }

private:
    void forget(int number);  // the kernel has given it to another file: what was known of it is of none
    // Where files are to be durable: those that are still open.
    void flush_all();
    bool flushes_unlisted() const;
    int flush_unlisted(int number);

    Settings settings_;
    Table table_;
    Askers askers_;
    Report report_;
    int process_ = 0;  // 0: none, and nothing is asked
    bool aside_ = false;
};

extern Watch watch;

}  // namespace preload
