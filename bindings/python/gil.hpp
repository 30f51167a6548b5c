// The GIL, given up and taken again by threads that the end of the interpreter may overtake.
//
// Up to Python 3.13, a thread that takes the GIL while the interpreter ends is ended by pthread_exit(). That unwinds
// the C++ frames of the thread, and a destructor that may not throw then aborts the process. Python 3.14 lets such a
// thread sleep until the process is gone. Here it sleeps with every version: the unwinding is caught where it begins.
// Nothing else in this module may use nanobind's guards of the GIL.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace penstock::python {

// Where the interpreter ended under a thread: its objects stay as they are until the process ends.
[[noreturn]] inline void sleep_until_exit() noexcept {
    for (;;) ::pause();
}

// Calls what takes the GIL or runs Python code. `call` holds the GIL when it returns.
template <class Call>
decltype(auto) in_python(const Call& call) {
    try {
        return call();
    } catch (abi::__forced_unwind&) {  // must not be left: the thread would be unwound further, or the process aborted
        sleep_until_exit();
    }
}

// No GIL as long as this lives.
class GilReleased {
  public:
    GilReleased() noexcept : thread_(PyEval_SaveThread()) {}
    ~GilReleased() {
        in_python([this] { PyEval_RestoreThread(thread_); });
    }
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

  private:
    PyThreadState* thread_;
};

// The GIL as long as this lives, for a thread that may have none.
class GilHeld {
  public:
    GilHeld() noexcept : state_(in_python([] { return PyGILState_Ensure(); })) {}
    ~GilHeld() { PyGILState_Release(state_); }
    GilHeld(const GilHeld&) = delete;
    GilHeld& operator=(const GilHeld&) = delete;

  private:
    PyGILState_STATE state_;
};

}  // namespace penstock::python
