// What the files of the Python module share: borrowed memory, interruptible waits, options from keywords.
//
// Rules of this module: the GIL is released around everything that waits or moves bytes, by the guards of gil.hpp; no
// Python code is ever called from a worker thread (progress is polled), so no wait can deadlock on the GIL; memory of
// other owners is held by the transfer that uses it until that transfer is done.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "gil.hpp"
#include "penstock/context.hpp"

namespace penstock::python {

namespace nb = nanobind;

// A Buffer, or a part of one, with what an export needs to know of its device.
struct PythonBuffer {
    std::optional<Context> context;
    Buffer owner;     // keeps the memory
    MemoryView part;  // what this object stands for
    bool emulated = true;
    int device_index = 0;
};

// A File with its context, which BorrowedMemory needs to judge pointers, and the transfers started on it, for which
// Python waits before it closes: the core's close() waits too, but cannot be interrupted. All of it under the GIL.
class PythonFile {
  public:
    PythonFile(Context owner, File opened) : context(std::move(owner)), file(std::move(opened)) {}
    void began(const Transfer& transfer);
    void wait() const;  // raises what a signal handler raised; the transfers then run on

    Context context;
    File file;

  private:
    std::vector<Transfer> under_way_;
    std::size_t forget_at_ = 64;  // how many there may be before those that are done are let go
};

// Memory named by a Python object: a penstock Buffer, a DLPackMemory, an object with __cuda_array_interface__, one with
// the buffer protocol, or one with __dlpack__. Holds what keeps it alive; needs the GIL to be made and destroyed.
class BorrowedMemory {
  public:
    enum class Use { read_from, write_into };  // write_into refuses read-only exports
    BorrowedMemory(const Context& context, nb::handle object, Use use);
    ~BorrowedMemory();
    BorrowedMemory(const BorrowedMemory&) = delete;
    BorrowedMemory& operator=(const BorrowedMemory&) = delete;
    const MemoryView& view() const noexcept { return view_; }
    bool is_foreign() const noexcept { return foreign_; }  // not from Context::allocate: a transfer must not outlive it

  private:
    bool from_cuda_array(const Context& context, nb::handle object, Use use);
    bool from_dlpack(const Context& context, nb::handle object, Use use);
    void from_buffer_protocol(nb::handle object, Use use);

    MemoryView view_;
    nb::object owner_;
    std::optional<Py_buffer> exported_;
    bool foreign_ = true;
};
// Throws Error{invalid_argument} for memory that this context's device does not know: a Buffer of another context.
void need_known(const Context& context, const MemoryView& view);
using SharedMemory = std::shared_ptr<BorrowedMemory>;

// How long operations under way are waited for by whoever cancelled their transfer, or lets go of it.
constexpr auto kLeavePatience = std::chrono::milliseconds(200);

// A Transfer and the memory it uses. Destroying it while foreign memory is in use cancels it; where the system does not
// end its operations, the memory is kept until it does.
class PythonTransfer {
  public:
    PythonTransfer(Transfer transfer, std::vector<SharedMemory> memory, Deadline deadline);
    ~PythonTransfer();
    PythonTransfer(const PythonTransfer&) = delete;
    PythonTransfer& operator=(const PythonTransfer&) = delete;
    // False at the deadline. Raises what a signal handler raised (KeyboardInterrupt); the transfer then runs on.
    // `progress`, unless None, is called with (done_bytes, total_bytes) about 10 times a second and once at the end.
    bool wait(Deadline deadline, nb::handle progress) const;
    // As wait(), but true also when result() answers although operations are under way that the system does not end:
    // after the transfer's deadline, or kLeavePatience after cancel().
    bool settle(Deadline deadline) const;
    Outcome result() const;  // waits as settle()
    void cancel();
    const Transfer& transfer() const noexcept { return transfer_; }

  private:
    bool ended() const noexcept;
    Deadline patience() const noexcept;

    Transfer transfer_;
    std::vector<SharedMemory> memory_;
    Deadline deadline_;  // the transfer's
    std::atomic<Clock::time_point> cancelled_at_{Clock::time_point::max()};
};

// Runs `slice` (which waits at most about 50 ms and says whether it is done) without the GIL until it is done, the
// deadline passed, or a Python signal handler raised.
template <class Slice>
bool wait_in_slices(Deadline deadline, Slice slice) {
    constexpr auto kSlice = std::chrono::milliseconds(50);
    for (;;) {
        bool done = false;
        {
            const GilReleased release;
            const Deadline next = Deadline::after(std::min<std::chrono::nanoseconds>(kSlice, deadline.left()));
            done = slice(next);
        }
        if (done) return true;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (deadline.passed()) return false;
    }
}

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();  // what a file offset holds

// Numbers from Python. What does not fit raises one line with the argument's name and range: ValueError for a number
// out of its range, TypeError for what is no whole number.
std::uint64_t whole_number(const std::string& name, nb::handle value, std::uint64_t most);
inline std::uint64_t byte_count(const std::string& name, nb::handle value) {
    return whole_number(name, value, kMostBytes);
}
[[noreturn]] void refuse_type(const std::string& name, nb::handle value, const char* wanted);

// An argument that the function itself examines: None reaches it too, so that one line answers for it.
inline auto any(const char* name) { return nb::arg(name).none(); }

// The value of an argument or keyword; the errors of whole_number.
template <class Value>
Value option(const std::string& name, nb::handle value) {
    constexpr bool kTruth = std::is_same_v<Value, bool>;
    if constexpr (std::is_unsigned_v<Value> && !kTruth) {
        return static_cast<Value>(whole_number(name, value, std::numeric_limits<Value>::max()));
    } else {
        Value taken{};
        if (nb::try_cast<Value>(value, taken)) return taken;
        PyErr_Clear();
        refuse_type(name, value,
                    kTruth                               ? "True or False"
                    : std::is_same_v<Value, std::string> ? "a str"
                    : std::is_same_v<Value, double>      ? "a number"
                                                         : "a number or None");
    }
}

// Throws Error{unsupported} in a forked child, where the device's threads and handles are the parent's: for what asks
// the device itself. All other calls of the core look by themselves.
void need_own_process(const Context& context);
// None: never. ValueError for less than 0 and for what is no number of seconds, in one line that names the argument.
Deadline deadline_after(const std::string& name, nb::handle seconds);
// Keywords path, chunk_bytes, workers, depth, strict, durable, full_evidence, caller_waits, timeout_s. Others raise
// TypeError.
TransferOptions transfer_options(const nb::kwargs& keywords);
// File names pass as the system spells them: bytes that are no UTF-8 are kept, as os.fsencode and os.fsdecode do.
// An empty one is refused: the system's answer would name nothing. `operation` is for that error.
std::string file_name(nb::handle name, const char* operation);
nb::object text(const std::string& bytes);
PathKind path_kind(const std::string& name);  // throws Error that lists the valid names
nb::dict plan_to_dict(const Plan& plan);
nb::dict error_to_dict(const ErrorInfo& info);

void bind_errors(nb::module_& module);
void bind_buffer(nb::module_& module);
void bind_transfer(nb::module_& module);
void bind_file(nb::module_& module);
void bind_new_file(nb::module_& module);
void bind_context(nb::module_& module);
void bind_stamp(nb::module_& module);
void bind_baseline(nb::module_& module);
void bind_load(nb::module_& module);
void bind_storm(nb::module_& module);
void bind_profile(nb::module_& module);
void bind_table(nb::module_& module);
void bind_boxes(nb::module_& module);
void bind_device_cache(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_dlpack_export(nb::module_& module);

}  // namespace penstock::python
