// Context in Python: its device, settings and copies. A Context value is a handle of shared state, so copies in Python
// objects are cheap.
#include "core.hpp"

namespace penstock::python {
namespace {

// Returns file names as the system spells them, with any bytes. The core refuses names of missing files.
std::vector<std::string> profile_names(nb::handle values) {
    std::vector<std::string> names;
    for (const nb::handle value : nb::cast<nb::sequence>(values)) {
        const nb::object encoded = nb::steal(PyUnicode_EncodeFSDefault(value.ptr()));
        if (!encoded.is_valid()) throw nb::python_error();
        names.emplace_back(PyBytes_AS_STRING(encoded.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(encoded.ptr())));
    }
    return names;
}

ContextOptions context_options(const nb::kwargs& keywords) {
    ContextOptions options;
    options.end_patience = kLeavePatience;  // the thread that drops the last handle holds the GIL
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "device")
            options.device = option<std::string>(name, value);
        else if (name == "path")
            options.path = path_kind(option<std::string>(name, value));
        else if (name == "workers")
            options.workers = option<std::uint32_t>(name, value);
        else if (name == "budget_bytes")
            options.budget_bytes = option<std::uint64_t>(name, value);
        else if (name == "strict")
            options.strict = option<bool>(name, value);
        else if (name == "profiles")
            options.profiles = profile_names(value);
        else if (name == "adaptive")
            options.adaptive = option<bool>(name, value);
        else if (name == "host_bandwidth_bytes_per_s")
            options.host.bandwidth_bytes_per_s = option<double>(name, value);
        else if (name == "host_latency_ns")
            options.host.latency_ns = option<std::uint64_t>(name, value);
        else if (name == "host_memory_bytes")
            options.host.memory_bytes = option<std::uint64_t>(name, value);
        else
            throw nb::type_error(("a context has no option '" + name + "'").c_str());
    }
    return options;
}

void make_context(Context* self, const nb::kwargs& keywords) {
    const ContextOptions options = context_options(keywords);
    const GilReleased release;
    new (self) Context(options);
}

nb::dict device_info(const Context& self) {
    need_own_process(self);
    DeviceInfo info;
    {
        const GilReleased release;
        info = self.device().info();
    }
    nb::dict fields;
    fields["name"] = info.name;
    fields["model"] = info.model;
    fields["index"] = info.index;
    fields["emulated"] = info.emulated;
    fields["total_bytes"] = info.total_bytes;
    fields["free_bytes"] = info.free_bytes;
    fields["numa_node"] = info.numa_node;
    fields["bus"] = info.bus;
    fields["coherent_with_host"] = info.coherent_with_host;
    fields["registers_mappings"] = info.registers_mappings;
    fields["driver_version"] = info.driver_version;
    fields["runtime_version"] = info.runtime_version;
    return fields;
}

void need_same_size(const BorrowedMemory& to, const BorrowedMemory& from) {
    if (to.view().bytes == from.view().bytes) return;
    throw Error(ErrorCode::invalid_argument, "copy",
                "the destination has " + std::to_string(to.view().bytes) + " bytes, the source " +
                    std::to_string(from.view().bytes),
                "pass memory of equal size");
}

void copy_to_host(const Context& self, nb::handle host, nb::handle device) {
    const BorrowedMemory to(self, host, BorrowedMemory::Use::write_into);
    const BorrowedMemory from(self, device, BorrowedMemory::Use::read_from);
    need_same_size(to, from);
    const GilReleased release;
    if (to.view().bytes > 0) self.copy_to_host(to.view().data, from.view().data, to.view().bytes);
}

void copy_to_device(const Context& self, nb::handle device, nb::handle host) {
    const BorrowedMemory to(self, device, BorrowedMemory::Use::write_into);
    const BorrowedMemory from(self, host, BorrowedMemory::Use::read_from);
    need_same_size(to, from);
    const GilReleased release;
    if (to.view().bytes > 0) self.copy_to_device(to.view().data, from.view().data, to.view().bytes);
}

std::uint64_t pinned_bytes(const Context& self) {
    need_own_process(self);
    return self.pinned_bytes();
}

std::uint64_t pinned_peak_bytes(const Context& self) {
    need_own_process(self);
    return self.pinned_peak_bytes();
}

}  // namespace

void bind_context(nb::module_& module) {
    nb::class_<Context>(module, "Context")
        .def("__init__", &make_context)
        .def_prop_ro("device_info", &device_info)
        .def_prop_ro("pinned_bytes", &pinned_bytes)
        .def_prop_ro("pinned_peak_bytes", &pinned_peak_bytes)
        .def("copy_to_host", &copy_to_host, any("host"), any("device"))
        .def("copy_to_device", &copy_to_device, any("device"), any("host"));
}

}  // namespace penstock::python
