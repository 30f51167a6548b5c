// DeviceCalls in Python: callables that kernels call. Threads of the owner take the GIL to run them; so who waits for
// these threads must not hold it.
#include "penstock/device_calls.hpp"

#include <stdexcept>

#include "python/core/core.hpp"

namespace penstock::python {
namespace {

// A callable that the threads of a DeviceCalls own.
class Registered {
  public:
    explicit Registered(nb::object function) : function_(std::move(function)) {}
    ~Registered() {
        const GilHeld held;
        function_.reset();
    }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

    HostAnswer call(const HostCall& call) const {
        const GilHeld held;
        return in_python([&] { return answered(call); });
    }

  private:
    HostAnswer answered(const HostCall& call) const {
        try {
            const auto* const argument = reinterpret_cast<const char*>(call.argument.data());
            return answer_of(function_(nb::bytes(argument, call.argument.size()), call.value), call.answer);
        } catch (const nb::python_error& error) {
            throw std::runtime_error(error.what());
        } catch (const nb::cast_error&) {
            throw std::runtime_error("it returned an int that has more than 64 bits");
        }
    }

    // None, an int, bytes, or both as a tuple.
    static HostAnswer answer_of(const nb::object& result, std::span<std::byte> room) {
        nb::object number = result, bytes;
        if (nb::isinstance<nb::tuple>(result) && nb::len(result) == 2) {
            number = result[0];
            bytes = result[1];
        } else if (nb::isinstance<nb::bytes>(result)) {
            number = nb::none();
            bytes = result;
        }
        HostAnswer answer;
        if (bytes.is_valid() && !nb::isinstance<nb::bytes>(bytes)) throw std::runtime_error(kTakes);
        if (!number.is_none()) {
            if (!nb::isinstance<nb::int_>(number)) throw std::runtime_error(kTakes);
            answer.value = nb::cast<std::int64_t>(number);
        }
        if (!bytes.is_valid()) return answer;
        const auto given = nb::borrow<nb::bytes>(bytes);
        if (given.size() > room.size()) {
            throw std::runtime_error("it returned " + std::to_string(given.size()) + " bytes, and the caller takes " +
                                     std::to_string(room.size()));
        }
        answer.bytes = given.size();
        std::copy_n(reinterpret_cast<const std::byte*>(given.c_str()), answer.bytes, room.data());
        return answer;
    }

    static constexpr const char* kTakes = "it returned neither None, an int, bytes, nor (int, bytes)";
    nb::object function_;
};

// Ends the threads without the GIL, for which they may wait.
class PythonDeviceCalls {
  public:
    explicit PythonDeviceCalls(DeviceCalls calls) : calls_(std::move(calls)) {}
    ~PythonDeviceCalls() {
        const GilReleased release;
        calls_.reset();
    }
    PythonDeviceCalls(const PythonDeviceCalls&) = delete;
    PythonDeviceCalls& operator=(const PythonDeviceCalls&) = delete;
    const DeviceCalls& operator*() const { return *calls_; }

  private:
    std::optional<DeviceCalls> calls_;
};

DeviceCallsOptions calls_options(const nb::kwargs& keywords) {
    DeviceCallsOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "threads")
            options.threads = option<std::uint32_t>(name, value);
        else if (name == "slots")
            options.slots = option<std::uint32_t>(name, value);
        else if (name == "slot_bytes")
            options.slot_bytes = option<std::uint32_t>(name, value);
        else if (name == "files")
            options.files = option<std::uint32_t>(name, value);
        else if (name == "timeout")
            options.timeout = deadline_after(name, value).left();
        else
            throw nb::type_error(("calls have no option '" + name + "'").c_str());
    }
    return options;
}

std::unique_ptr<PythonDeviceCalls> make_calls(const Context& context, const nb::kwargs& keywords) {
    const DeviceCallsOptions options = calls_options(keywords);
    const GilReleased release;
    return std::make_unique<PythonDeviceCalls>(DeviceCalls(context, options));
}

std::uint32_t add_function(const PythonDeviceCalls& self, const std::string& name, nb::object function) {
    const auto registered = std::make_shared<const Registered>(std::move(function));
    HostFunction call = [registered](const HostCall& one) { return registered->call(one); };
    const GilReleased release;
    return (*self).add(name, std::move(call));
}

nb::list errors_of(const PythonDeviceCalls& self) {
    nb::list errors;
    for (const FailedCall& one : (*self).errors()) errors.append(nb::make_tuple(text(one.function), text(one.what)));
    return errors;
}

nb::dict calls_statistics(const PythonDeviceCalls& self) {
    const DeviceCallsStatistics found = (*self).statistics();
    nb::dict fields;
    fields["calls"] = found.calls;
    fields["failures"] = found.failures;
    return fields;
}

}  // namespace

void bind_device_calls(nb::module_& module) {
    using Self = const PythonDeviceCalls&;
    using nb::arg;
    const auto release = nb::call_guard<GilReleased>();
    nb::class_<PythonDeviceCalls> type(module, "DeviceCalls");
    type.def("add", &add_function, arg("name"), any("function"));
    type.def("install", [](Self self, const std::string& file) { (*self).install(file); }, arg("library"), release);
    type.def("number", [](Self self, const std::string& name) { return (*self).number(name); }, arg("name"), release);
    type.def("ref", [](Self self) { return reinterpret_cast<std::uintptr_t>((*self).ref()); });
    type.def("errors", &errors_of);
    type.def("statistics", &calls_statistics);
    type.def("close", [](Self self) { (*self).close(); }, release);
    module.def("device_calls", &make_calls, arg("context"), arg("options"));
}

}  // namespace penstock::python
