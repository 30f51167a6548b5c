// Storms of raw requests, element loads and checks of gathered rows in Python. The suite gpu-io measures with these.
#include "load/storm/storm.hpp"

#include <functional>
#include <string>
#include <unordered_map>

#include "measure.hpp"

namespace penstock::python {
namespace {

using load::LoadsOptions;
using load::Storm;
using load::StormOptions;
using load::StormSetup;
using load::StormSource;
using Use = BorrowedMemory::Use;

template <class Options>
using Setters = std::unordered_map<std::string, std::function<void(Options&, const std::string&, nb::handle)>>;

template <class Options, class Field>
auto to(Field Options::*field) {
    return [field](Options& options, const std::string& name, nb::handle value) {
        options.*field = option<Field>(name, value);
    };
}

template <class Options>
Options options_of(const nb::kwargs& keywords, const Setters<Options>& known, const char* what) {
    Options options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        const auto found = known.find(name);
        if (found == known.end()) throw nb::type_error((std::string(what) + " no option '" + name + "'").c_str());
        found->second(options, name, value);
    }
    return options;
}

StormSource source_of(const std::string& name) {
    if (name == "service") return StormSource::service;
    if (name == "mapping") return StormSource::mapping;
    if (name == "memory") return StormSource::memory;
    if (name == "mailbox") return StormSource::mailbox;
    if (name == "nvme") return StormSource::nvme;
    throw Error(ErrorCode::invalid_argument, "measure requests of the device", "there is no source '" + name + "'",
                "use one of service, mapping, memory, mailbox, nvme");
}

StormSetup setup_of(const nb::kwargs& keywords) {
    static const Setters<StormSetup> known{
        {"source",
         [](StormSetup& setup, const std::string& name, nb::handle value) {
             setup.source = source_of(option<std::string>(name, value));
         }},
        {"slots", to(&StormSetup::slots)},
        {"slot_bytes", to(&StormSetup::slot_bytes)},
        {"service_threads", to(&StormSetup::service_threads)},
        {"queues", to(&StormSetup::queues)},
        {"window_bytes", to(&StormSetup::window_bytes)},
        {"writable", to(&StormSetup::writable)},
    };
    return options_of(keywords, known, "a storm has");
}

StormOptions run_options(const nb::kwargs& keywords) {
    static const Setters<StormOptions> known{
        {"blocks", to(&StormOptions::blocks)},       {"threads", to(&StormOptions::threads)},
        {"in_flight", to(&StormOptions::in_flight)}, {"rings", to(&StormOptions::rings)},
        {"seconds", to(&StormOptions::seconds)},     {"request_bytes", to(&StormOptions::request_bytes)},
        {"requests", to(&StormOptions::requests)},   {"seed", to(&StormOptions::seed)},
        {"turn", to(&StormOptions::turn)},           {"writes", to(&StormOptions::writes)},
        {"checked", to(&StormOptions::checked)},     {"sequential", to(&StormOptions::sequential)},
    };
    return options_of(keywords, known, "a run of a storm has");
}

LoadsOptions loads_options(const nb::kwargs& keywords) {
    static const Setters<LoadsOptions> known{
        {"blocks", to(&LoadsOptions::blocks)}, {"threads", to(&LoadsOptions::threads)},
        {"rounds", to(&LoadsOptions::rounds)}, {"tile", to(&LoadsOptions::tile)},
        {"blocked", to(&LoadsOptions::blocked)}, {"resident", to(&LoadsOptions::resident)},
    };
    return options_of(keywords, known, "loads have");
}

struct PythonStorm {
    Context context;  // keeps the device alive
    std::unique_ptr<Storm> storm;

    Storm& open() const {
        if (storm) return *storm;
        throw Error(ErrorCode::invalid_argument, "measure requests of the device", "the storm is closed", "make one");
    }
};

std::unique_ptr<PythonStorm> make(const Context& context, nb::handle name, const nb::kwargs& keywords) {
    const StormSetup setup = setup_of(keywords);
    const std::string file = file_name(name, "measure requests of the device");
    need_own_process(context);
    const GilReleased release;
    context.device().enter_thread();
    return std::make_unique<PythonStorm>(
        PythonStorm{context, std::make_unique<Storm>(context.device(), file, setup)});
}

nb::dict served_to_dict(const ondevice::ServiceEvidence& served) {
    nb::dict fields;
    for (std::size_t i = 0; i < ondevice::kSources; ++i) {
        const ondevice::ServedCount& one = served.by_source[i];
        if (one.requests == 0) continue;
        fields[to_string(static_cast<ondevice::Source>(i))] = nb::make_tuple(one.requests, one.bytes);
    }
    return fields;
}

nb::dict run_storm(const PythonStorm& self, const nb::kwargs& keywords) {
    const StormOptions options = run_options(keywords);
    need_own_process(self.context);
    load::StormReport report;
    {
        const GilReleased release;
        self.context.device().enter_thread();
        report = self.open().run(options);
    }
    nb::dict fields;
    fields["seconds"] = report.seconds;
    fields["warps"] = report.warps;
    fields["requests"] = report.requests;
    fields["bad_words"] = report.bad_words;
    fields["failures"] = report.failures;
    fields["busy"] = report.busy;
    fields["turn"] = report.turn;
    fields["cycles"] = report.cycles;
    fields["cycles_per_ns"] = report.cycles_per_ns;
    nb::list latency;
    for (std::uint32_t bucket = 0; bucket < report.latency.size(); ++bucket) {
        if (report.latency[bucket] == 0) continue;
        latency.append(nb::make_tuple(load::cycle_bucket_low(bucket), load::cycle_bucket_low(bucket + 1),
                                      report.latency[bucket]));
    }
    fields["latency"] = latency;
    fields["served"] = served_to_dict(report.served);
    fields["failed_requests"] = report.served.failed;
    fields["direct_by"] = report.served.direct_by;
    return fields;
}

// Elements to load: of the cached array at address `ref`, or of `plain` memory if that is 0.
struct LoadedElements {
    std::uintptr_t ref;
    nb::handle plain;
    nb::handle items;
};

nb::tuple time_loads(const Context& context, const LoadedElements& asked, const nb::kwargs& keywords) {
    const LoadsOptions options = loads_options(keywords);
    const std::uint64_t count = whole_number("items", asked.items, kMostBytes / sizeof(float));
    need_own_process(context);
    std::optional<BorrowedMemory> memory;
    const float* from = nullptr;
    if (!asked.plain.is_none()) {
        memory.emplace(context, asked.plain, Use::read_from);
        need_known(context, memory->view());
        if (memory->view().bytes / sizeof(float) < count) {
            throw Error(ErrorCode::invalid_argument, "load elements", "the memory holds fewer elements",
                        "give memory of items * 4 bytes");
        }
        from = reinterpret_cast<const float*>(memory->view().data);
    }
    if ((from == nullptr) == (asked.ref == 0)) {
        throw Error(ErrorCode::invalid_argument, "load elements", "give a cached array or plain memory, one of them",
                    "pass ref, or 0 and the memory");
    }
    load::Loads found;
    {
        const GilReleased release;
        context.device().enter_thread();
        const auto* array = reinterpret_cast<const ondevice::StoredRef*>(asked.ref);
        found = load::time_loads(context.device(), {array, from, count}, options);
    }
    return nb::make_tuple(found.seconds, found.sum);
}

std::uint64_t wrong_words(const Context& context, nb::handle rows, nb::handle memory, nb::handle seed) {
    const BorrowedMemory numbers(context, rows, Use::read_from), gathered(context, memory, Use::read_from);
    const auto mixed = option<std::uint64_t>("seed", seed);
    need_own_process(context);
    need_known(context, numbers.view());
    need_known(context, gathered.view());
    const std::uint64_t count = numbers.view().bytes / sizeof(std::uint64_t);
    if (count == 0 || gathered.view().bytes % (count * sizeof(std::uint64_t)) != 0) {
        throw Error(ErrorCode::invalid_argument, "check rows", "the memory holds no whole rows of 8-byte words",
                    "give the numbers of the rows, and memory of as many rows");
    }
    const load::RowsWork work{reinterpret_cast<const ondevice::u64*>(numbers.view().data),
                              reinterpret_cast<const ondevice::u64*>(gathered.view().data), count,
                              gathered.view().bytes / count / sizeof(std::uint64_t), mixed, nullptr};
    const GilReleased release;
    context.device().enter_thread();
    return load::wrong_words(context.device(), work);
}

}  // namespace

void bind_storm(nb::module_& module) {
    using nb::arg;
    nb::class_<PythonStorm>(module, "Storm")
        .def("run", &run_storm, arg("options"))
        .def("warps", [](const PythonStorm& self, const nb::kwargs& keywords) {
            return self.open().warps(run_options(keywords));
        })
        .def("close", [](PythonStorm& self) { self.storm.reset(); }, nb::call_guard<GilReleased>());
    module.def("storm", &make, arg("context"), any("file"), arg("options"));
    module.def(
        "time_loads",
        [](const Context& context, std::uintptr_t ref, nb::handle plain, nb::handle items, const nb::kwargs& options) {
            return time_loads(context, {ref, plain, items}, options);
        },
        arg("context"), arg("ref"), any("plain"), any("items"), arg("options"));
    module.def("wrong_words", &wrong_words, arg("context"), any("rows"), any("memory"), any("seed"));
}

}  // namespace penstock::python
