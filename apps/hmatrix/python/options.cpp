// See options.hpp.
#include "hmatrix/python/options.hpp"

namespace penstock::python {
namespace {

template <class Number>
Number number(const std::string& name, nb::handle value) {
    Number taken{};
    if (nb::try_cast<Number>(value, taken)) return taken;
    PyErr_Clear();
    refuse_type(name, value, std::is_floating_point_v<Number> ? "a number" : "a whole number");
}

[[noreturn]] void unknown(const char* what, const std::string& name) {
    throw nb::type_error((std::string(what) + " has no option '" + name + "'").c_str());
}

hmatrix::Encoding encoding_of(const std::string& name) {
    if (name == "tiers") return hmatrix::Encoding::tiers;
    if (name == "fp64") return hmatrix::Encoding::fp64;
    throw Error(ErrorCode::invalid_argument, "assemble a matrix", "there is no encoding '" + name + "'",
                "use tiers or fp64");
}

hmatrix::AssembleOn assemble_on(const std::string& name) {
    if (name == "auto") return hmatrix::AssembleOn::automatic;
    if (name == "host") return hmatrix::AssembleOn::host;
    if (name == "gpu") return hmatrix::AssembleOn::gpu;
    throw Error(ErrorCode::invalid_argument, "assemble a matrix", "assemble_on cannot be '" + name + "'",
                "use auto, host or gpu");
}

hmatrix::Verify verify_of(const std::string& name) {
    if (name == "first") return hmatrix::Verify::first;
    if (name == "never") return hmatrix::Verify::never;
    if (name == "always") return hmatrix::Verify::always;
    throw Error(ErrorCode::invalid_argument, "open a matrix", "verify cannot be '" + name + "'",
                "use first, always or never");
}

// The name "gpu" lets the device's own threads ask for the batches.
void set_path(hmatrix::SystemOptions& options, const std::string& name) {
    options.gpu_initiated = name == "gpu";
    if (!options.gpu_initiated) options.cache.path = path_kind(name);
}

}  // namespace

hmatrix::AssembleOptions assemble_options(const nb::dict& keywords) {
    hmatrix::AssembleOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "eps")
            options.eps = number<double>(name, value);
        else if (name == "eta")
            options.eta = number<double>(name, value);
        else if (name == "leaf_size")
            options.leaf_size = number<std::int64_t>(name, value);
        else if (name == "aca_plus")
            options.aca_plus = option<bool>(name, value);
        else if (name == "encoding")
            options.encoding = encoding_of(option<std::string>(name, value));
        else if (name == "accuracies")
            options.accuracies = nb::cast<std::vector<double>>(value);
        else if (name == "batch_bytes")
            options.batch_bytes = number<std::int64_t>(name, value);
        else if (name == "batches")
            options.batches = number<std::int64_t>(name, value);
        else if (name == "check_rows")
            options.check_rows = number<std::int64_t>(name, value);
        else if (name == "refuse_error")
            options.refuse_error = number<double>(name, value);
        else if (name == "assemble_on")
            options.on = assemble_on(option<std::string>(name, value));
        else if (name == "gpu_bytes")
            options.gpu_bytes = number<std::int64_t>(name, value);
        else if (name == "about")
            options.about = option<std::string>(name, value);
        else
            unknown("assembly", name);
    }
    return options;
}

hmatrix::SystemOptions system_options(const nb::dict& keywords) {
    hmatrix::SystemOptions options;
    options.cache.pinned_tiers = -1;
    options.cache.pinned_batches = -1;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "cache_bytes")
            options.cache.cache_bytes = static_cast<std::int64_t>(byte_count(name, value));
        else if (name == "pinned_tiers")
            options.cache.pinned_tiers = number<int>(name, value);
        else if (name == "pinned_batches")
            options.cache.pinned_batches = number<std::int64_t>(name, value);
        else if (name == "read_ahead")
            options.cache.read_ahead = number<int>(name, value);
        else if (name == "path")
            set_path(options, option<std::string>(name, value));
        else if (name == "verify")
            options.cache.verify = verify_of(option<std::string>(name, value));
        else if (name == "on_host")
            options.on_host = option<bool>(name, value);
        else if (name == "zig_zag")
            options.zig_zag = option<bool>(name, value);
        else if (name == "workers")
            options.workers = number<int>(name, value);
        else if (name == "block_size")
            options.block_size = number<std::int64_t>(name, value);
        else
            unknown("an open matrix", name);
    }
    return options;
}

hmatrix::SystemSolve solve_options(const nb::dict& keywords) {
    hmatrix::SystemSolve how;
    hmatrix::SolveOptions& options = how.options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "method")
            options.method = hmatrix::method_from_name(option<std::string>(name, value));
        else if (name == "tol")
            options.tolerance = number<double>(name, value);
        else if (name == "max_iterations")
            options.max_iterations = number<std::int64_t>(name, value);
        else if (name == "restart")
            options.restart = number<std::int64_t>(name, value);
        else if (name == "relaxed")
            options.relaxed = option<bool>(name, value);
        else if (name == "inner_tolerance")
            options.inner_tolerance = number<double>(name, value);
        else if (name == "inner_iterations")
            options.inner_iterations = number<std::int64_t>(name, value);
        else if (name == "surrogate")
            how.surrogate = option<bool>(name, value);
        else if (name == "preconditioner")
            how.preconditioner = option<bool>(name, value);
        else if (name == "checkpoint_sweeps")
            options.checkpoint_sweeps = number<std::int64_t>(name, value);
        else
            unknown("a solve", name);
    }
    return how;
}

}  // namespace penstock::python
