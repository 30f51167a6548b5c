// What the Python modules share: classes whose objects cross modules, borrowed memory, interruptible waits, options
// from keywords. Each module contains a copy of this code, so the code has no state. join.hpp says how modules meet.
//
// Rules of these modules: Code that waits or moves bytes releases the GIL, by the guards of gil.hpp. Worker threads
// never call Python code (progress is polled), so no wait can deadlock on the GIL; those of DeviceCalls do, and whoever
// waits for them has released it. A transfer holds memory of other
// owners until it is done.
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

#include "penstock/context.hpp"
#include "python/shared/gil.hpp"

namespace penstock::python {

namespace nb = nanobind;

// A Buffer or a part of one, and what an export needs to know of its device.
struct PythonBuffer {
    std::optional<Context> context;
    Buffer owner;     // keeps the memory alive
    MemoryView part;  // the part that this object stands for
    bool emulated = true;
    int device_index = 0;
};

// A File and its context, which BorrowedMemory needs to judge pointers, and the transfers started on the file. Python
// waits for these before it closes the file, because the core's close() waits too but cannot be interrupted. Requires:
// the GIL, for all of it.
class PythonFile {
  public:
    PythonFile(Context owner, File opened) : context(std::move(owner)), file(std::move(opened)) {}
    void began(const Transfer& transfer);
    void wait() const;  // raises what a signal handler raised; the transfers then continue

    Context context;
    File file;

  private:
    std::vector<Transfer> under_way_;
    std::size_t forget_at_ = 64;  // when there are this many, finished transfers are dropped
};

// Memory named by a Python object: a penstock Buffer, a DLPackMemory, or an object with __cuda_array_interface__, the
// buffer protocol or __dlpack__. Keeps the memory's owner alive. Requires: the GIL, to make and destroy it.
class BorrowedMemory {
  public:
    enum class Use { read_from, write_into };  // write_into refuses read-only exports
    struct Loan {
        Use use;
        bool waits = true;           // for work that the array's library has begun on the memory. If not, see after()
        nb::object description = {};  // its __cuda_array_interface__ or None, where the caller asked for that already
    };
    BorrowedMemory(const Context& context, nb::handle object, Loan loan);
    BorrowedMemory(const Context& context, nb::handle object, Use use) : BorrowedMemory(context, object, Loan{use}) {}
    ~BorrowedMemory();
    BorrowedMemory(const BorrowedMemory&) = delete;
    BorrowedMemory& operator=(const BorrowedMemory&) = delete;
    const MemoryView& view() const noexcept { return view_; }
    // Where the loan does not wait: the stream with such work, which is to come first.
    std::optional<std::uintptr_t> after() const noexcept { return after_; }
    bool is_foreign() const noexcept { return foreign_; }  // not from Context::allocate: a transfer must not outlive it

  private:
    // An object and its __cuda_array_interface__, if it has one.
    struct Given {
        nb::handle object;
        nb::object description;                      // a dict, or nothing
        nb::object data, typestr, shape, strides, stream;  // of the description; nothing where it does not say
    };
    static Given given_of(nb::handle object, nb::object description);
    bool from_cuda_array(const Context& context, const Given& given, const Loan& loan);
    bool from_dlpack(const Context& context, const Given& given, Use use);
    void from_buffer_protocol(nb::handle object, Use use);

    MemoryView view_;
    nb::object owner_;
    std::optional<Py_buffer> exported_;
    std::optional<std::uintptr_t> after_;
    bool foreign_ = true;
};
// Throws Error{invalid_argument} for memory that this context's device does not know, such as a Buffer of another
// context.
void need_known(const Context& context, const MemoryView& view);
using SharedMemory = std::shared_ptr<BorrowedMemory>;

// How long the code that cancels or drops a transfer waits for the operations under way.
constexpr auto kLeavePatience = std::chrono::milliseconds(200);

// A Transfer and the memory that it uses. Destroying it while a caller's memory is in use cancels the transfer. If the
// system does not end its operations, the memory is kept until it does.
class PythonTransfer {
  public:
    PythonTransfer(Transfer transfer, std::vector<SharedMemory> memory, Deadline deadline);
    ~PythonTransfer();
    PythonTransfer(const PythonTransfer&) = delete;
    PythonTransfer& operator=(const PythonTransfer&) = delete;
    // Returns false at the deadline. Raises what a signal handler raised (KeyboardInterrupt), and the transfer then
    // continues. If `progress` is not None, it is called with (done_bytes, total_bytes) about 10 times a second and
    // once at the end.
    bool wait(Deadline deadline, nb::handle progress) const;
    // As wait(). Also returns true when result() can answer although the system does not end some operations: after the
    // transfer's deadline, or kLeavePatience after cancel().
    bool settle(Deadline deadline) const;
    Outcome result() const;  // waits as settle() does
    void cancel();
    const Transfer& transfer() const noexcept { return transfer_; }

  private:
    bool ended() const noexcept;
    Deadline patience() const noexcept;

    Transfer transfer_;
    std::vector<SharedMemory> memory_;
    Deadline deadline_;  // of the transfer
    std::atomic<Clock::time_point> cancelled_at_{Clock::time_point::max()};
};

// Calls `slice` without the GIL until it returns true, the deadline passes, or a Python signal handler raises.
// Requires: `slice` waits at most about 50 ms and returns whether it is done.
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

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();  // the largest file offset

// Numbers from Python. A wrong value raises one line with the argument's name and range: ValueError for a number out of
// range, TypeError for a value that is no whole number.
std::uint64_t whole_number(const std::string& name, nb::handle value, std::uint64_t most);
inline std::uint64_t byte_count(const std::string& name, nb::handle value) {
    return whole_number(name, value, kMostBytes);
}
[[noreturn]] void refuse_type(const std::string& name, nb::handle value, const char* wanted);

// An argument that may be None, because the function itself checks it and raises one line.
inline auto any(const char* name) { return nb::arg(name).none(); }

// Returns the value of an argument or keyword. Raises the errors of whole_number.
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

// Throws Error{unsupported} in a forked child, where the device's threads and handles belong to the parent. Functions
// that ask the device directly call this. All other calls of the core check it themselves.
void need_own_process(const Context& context);
// None means never. Raises ValueError with the argument's name for a negative number and for a value that is no number
// of seconds.
Deadline deadline_after(const std::string& name, nb::handle seconds);
// Takes the keywords path, chunk_bytes, workers, depth, strict, durable, full_evidence, caller_waits, timeout_s. Others
// raise TypeError.
TransferOptions transfer_options(const nb::kwargs& keywords);
// Returns a file name as the system spells it. Bytes that are not UTF-8 are kept, as by os.fsencode and os.fsdecode. An
// empty name is refused with an error of `operation`.
std::string file_name(nb::handle name, const char* operation);
nb::object text(const std::string& bytes);
PathKind path_kind(const std::string& name);  // throws Error that lists the valid names

}  // namespace penstock::python
