// Guards of the GIL for threads that may still run when the interpreter ends.
//
// Up to Python 3.13, a thread that takes the GIL while the interpreter ends is ended by pthread_exit(). That unwinds
// the thread's C++ frames, and a destructor that must not throw then aborts the process. Python 3.14 lets such a thread
// sleep until the process ends. Here it sleeps with every version, because the unwinding is caught where it begins. No
// other code of this module may use nanobind's guards of the GIL.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace penstock::python {

// Called when the interpreter ended under a thread. The thread's objects stay as they are until the process ends.
[[noreturn]] inline void sleep_until_exit() noexcept {
    for (;;) ::pause();
}

// Calls code that takes the GIL or runs Python. Requires: `call` holds the GIL when it returns.
template <class Call>
decltype(auto) in_python(const Call& call) {
    try {
        return call();
    } catch (abi::__forced_unwind&) {  // leaving this block would unwind the thread further or abort the process
        sleep_until_exit();
    }
}

// Releases the GIL for the lifetime of this object.
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

// Holds the GIL for the lifetime of this object. The calling thread may have had none.
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
