// History in Python. Waits end where a signal handler raises: put() waits for its slot in slices before it packs, and
// close() for the steps before it closes.
#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "python/core/history/values.hpp"

namespace penstock::python {
namespace {

// A History is used by one thread at a time.
class PythonHistory {
  public:
    PythonHistory(const Context& owner, std::string name, const HistoryOptions& options)
        : context(owner), history_(std::make_unique<History>(owner, std::move(name), options)) {}
    ~PythonHistory();
    PythonHistory(const PythonHistory&) = delete;
    PythonHistory& operator=(const PythonHistory&) = delete;

    template <class Call>
    auto use(Call call) {
        const GilReleased release;
        return use_here(call);
    }
    // Requires: the GIL is released.
    template <class Call>
    auto use_here(Call call) {
        const std::lock_guard lock(mutex_);
        return call(*history_);
    }
    void wait() {
        wait_in_slices(Deadline::never(), [this](Deadline next) {
            return use_here([&](History& history) { return history.wait(next); });
        });
    }

    Context context;

  private:
    bool ends_soon() const noexcept;

    std::mutex mutex_;  // guards history_
    std::unique_ptr<History> history_;
};

// Also after a step that failed, and in a forked child, where nothing is left to wait for.
bool PythonHistory::ends_soon() const noexcept {
    try {
        return history_->wait(Deadline::after(kLeavePatience));
    } catch (const Error&) {
        return true;
    }
}

// A file that does not answer keeps a thread, and not the thread that drops the history.
PythonHistory::~PythonHistory() {
    const GilReleased release;
    if (ends_soon()) {
        history_.reset();
        return;
    }
    auto* left = history_.release();
    try {
        std::thread([left] { const std::unique_ptr<History> last(left); }).detach();
    } catch (const std::system_error&) {
    }
}

std::unique_ptr<PythonHistory> make_history(const Context& context, nb::handle name, const nb::kwargs& keywords) {
    const HistoryOptions options = history_options(keywords);
    const std::string file = file_name(name, "open history");
    const GilReleased release;
    return std::make_unique<PythonHistory>(context, file, options);
}

// Where an array lies, in Python: the address of its first element, or its distance from a memory, then strides in
// bytes and the stream that makes it.
struct PutPlace {
    explicit PutPlace(const nb::tuple& told)
        : first(nb::cast<std::uintptr_t>(told[0])),
          strides(nb::cast<std::vector<std::int64_t>>(told[1])),
          stream(nb::cast<std::uintptr_t>(told[2])) {}
    std::uintptr_t first;
    std::vector<std::int64_t> strides;
    std::uintptr_t stream;
};

void put_at(PythonHistory& self, const std::string& variable, const PutPlace& place) {
    wait_in_slices(Deadline::never(), [&](Deadline next) {
        return self.use_here([&](History& history) { return history.wait_for_slot(next); });
    });
    self.use([&](History& history) {
        history.use_stream(place.stream);
        history.put(variable, reinterpret_cast<const void*>(place.first), place.strides);
    });
}

void put(PythonHistory& self, const std::string& variable, nb::handle memory, const nb::tuple& told) {
    const BorrowedMemory borrowed(self.context, memory, BorrowedMemory::Use::read_from);
    PutPlace place(told);
    place.first += reinterpret_cast<std::uintptr_t>(borrowed.view().data);
    put_at(self, variable, place);
}

// Where the first element of an array of NumPy lies.
std::uintptr_t address_of(nb::handle array) {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
    const auto address = reinterpret_cast<std::uintptr_t>(view.buf);
    PyBuffer_Release(&view);
    return address;
}

void set_attribute(PythonHistory& self, const std::string& variable, const nb::tuple& attribute) {
    const HistoryAttribute made = history_attribute(attribute);
    self.use([&](History& history) { history.set_attribute(made, variable); });
}

// Of several processes: the cuts of this one become those of all.
void set_cuts(PythonHistory& self, const std::vector<std::uint64_t>& agreed) {
    self.use([&](History& history) {
        const std::span<std::uint64_t> cuts = history.cuts();
        if (cuts.size() != agreed.size()) {
            throw Error(ErrorCode::invalid_argument, "cut", "the processes have different numbers of cuts",
                        "define the same variables on each");
        }
        std::copy(agreed.begin(), agreed.end(), cuts.begin());
    });
}

// Of several processes: the numbers of this one become the sums of those of all.
void set_coverage(PythonHistory& self, const std::vector<std::uint64_t>& sums) {
    self.use([&](History& history) {
        const std::span<std::uint64_t> own = history.coverage();
        if (own.size() != sums.size()) {
            throw Error(ErrorCode::invalid_argument, "cover", "the processes have different numbers of variables",
                        "define the same variables on each");
        }
        std::copy(sums.begin(), sums.end(), own.begin());
    });
}

std::vector<std::uint64_t> coverage_of(PythonHistory& self) {
    return self.use([](History& history) {
        const std::span<std::uint64_t> own = history.coverage();
        return std::vector<std::uint64_t>(own.begin(), own.end());
    });
}

std::vector<std::uint64_t> cuts_of(PythonHistory& self) {
    return self.use([](History& history) {
        const std::span<std::uint64_t> cuts = history.cuts();
        return std::vector<std::uint64_t>(cuts.begin(), cuts.end());
    });
}

void close(PythonHistory& self) {
    try {
        self.wait();
    } catch (const Error&) {  // close() tells it too
    }
    self.use([](History& history) { history.close(); });
}

}  // namespace

void bind_history(nb::module_& module) {
    using nb::arg;
    nb::class_<PythonHistory>(module, "History")
        .def("define",
             [](PythonHistory& self, const nb::kwargs& keywords) {
                 const HistoryVariable made = history_variable(keywords);
                 self.use([&](History& history) { history.define(made); });
             })
        .def("define_constant",
             [](PythonHistory& self, const nb::kwargs& keywords) {
                 const HistoryConstant made = history_constant(keywords);
                 self.use([&](History& history) { history.define_constant(made); });
             })
        .def("set_attribute", &set_attribute, arg("variable"), arg("attribute"))
        .def("use_preset",
             [](PythonHistory& self, const nb::kwargs& keywords) {
                 const HistoryPreset preset = history_preset(keywords);
                 self.use([&](History& history) { history.use_preset(preset); });
             })
        .def("put", &put, arg("variable"), arg("memory"), arg("place"))
        .def("put_at",
             [](PythonHistory& self, const std::string& variable, const nb::tuple& place) {
                 put_at(self, variable, PutPlace(place));
             },
             arg("variable"), arg("place"))
        .def("check_step",
             [](PythonHistory& self, double time) { self.use([&](History& history) { history.check_step(time); }); },
             arg("time"))
        .def("end_step",
             [](PythonHistory& self, double time) { self.use([&](History& history) { history.end_step(time); }); },
             arg("time"))
        .def("begin", [](PythonHistory& self) { self.use([](History& history) { history.begin(); }); })
        .def("digest",
             [](PythonHistory& self) { return self.use([](History& history) { return history.digest(); }); })
        .def("cuts", &cuts_of)
        .def("set_cuts", &set_cuts, arg("cuts"))
        .def("coverage", &coverage_of)
        .def("set_coverage", &set_coverage, arg("sums"))
        .def("publish",
             [](PythonHistory& self, std::uint64_t steps) {
                 self.use([&](History& history) { history.publish(steps); });
             },
             arg("steps"))
        .def("wait", &PythonHistory::wait)
        .def("facts",
             [](PythonHistory& self) {
                 return facts_to_dict(self.use([](History& history) { return history.facts(); }));
             })
        .def("close", &close);
    module.def("address_of", &address_of, arg("array"));
    module.def("history_split",
               [](nb::handle length, nb::handle processes, nb::handle process) {
                   const HistoryShare share = history_split(
                       whole_number("length", length, kMostBytes), option<std::uint32_t>("processes", processes),
                       option<std::uint32_t>("process", process));
                   return nb::make_tuple(share.start, share.shape);
               },
               any("length"), any("processes"), any("process"));
    module.def("history", &make_history, arg("context"), any("name"), arg("options"));
}

}  // namespace penstock::python
