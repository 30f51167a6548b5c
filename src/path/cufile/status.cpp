// Turns what the probe saw into a CuFileStatus: what works, why not, and what to do about it.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>

#include "path/cufile/cufile.hpp"
#include "path/cufile/probe.hpp"

namespace penstock::path {
namespace {

using Words = std::map<std::string, std::string>;

std::string word(const ProbeRun& run, const char* key) {
    const auto at = run.words.find(key);
    return at == run.words.end() ? "" : at->second;
}

std::uint64_t number(const ProbeRun& run, const char* key) {
    return std::strtoull(word(run, key).c_str(), nullptr, 10);
}

std::vector<std::string> arguments_of(const CuFileOptions& options, const std::string& file, bool counters) {
    std::vector<std::string> arguments{"--cuda-library", options.libraries.cuda_library, "--device",
                                       std::to_string(options.device_index)};
    const std::string library = options.libraries.library.empty() ? cufile::held_library() : options.libraries.library;
    if (!library.empty()) arguments.insert(arguments.end(), {"--library", library});
    for (const std::string& folder : options.libraries.directories) {
        arguments.insert(arguments.end(), {"--directory", folder});
    }
    if (!file.empty()) arguments.insert(arguments.end(), {"--file", file});
    if (options.force_compat) arguments.emplace_back("--force-compat");
    if (options.skip_topology) arguments.emplace_back("--skip-topology");
    if (!counters) arguments.emplace_back("--no-counters");
    return arguments;
}

void read_properties(const ProbeRun& run, const CuFileOptions& options, CuFileStatus& status) {
    cufile::Properties& properties = status.properties;
    const auto get = [&](const char* key) { return static_cast<std::uint32_t>(number(run, key)); };
    properties.nvfs_major = get("nvfs_major");
    properties.nvfs_minor = get("nvfs_minor");
    properties.status_flags = get("status_flags");
    properties.control_flags = get("control_flags");
    properties.feature_flags = get("feature_flags");
    properties.max_direct_io_kb = number(run, "max_direct_io_kb");
    properties.max_batch_size = get("max_batch_size");
    properties.max_pinned_kb = get("max_pinned_kb");
    status.pool_slabs = get("pool_slabs");
    const bool nvfs = properties.nvfs_major != 0 || properties.nvfs_minor != 0;
    const bool p2p = (properties.feature_flags & cufile::kFeatureP2p) != 0;
    status.native_possible = !options.force_compat && (nvfs || p2p);
}

// Says how the probe ended if a signal or the time limit ended it. Otherwise returns an empty string.
std::string death_of(const ProbeRun& run, const CuFileOptions& options) {
    const std::string step = word(run, "step");
    if (run.timed_out) {
        return "libcufile did not return from " + step + " within " + std::to_string(options.probe_limit.count()) +
               " ms";
    }
    if (run.signal != 0) return "libcufile crashed in " + step + " (signal " + std::to_string(run.signal) + ")";
    return "";
}

// A failure of these steps costs at most the counters. The driver still works.
bool harmless(const std::string& step) {
    return step == "stats_start" || step == "stats_l3" || step == "driver_close" || step == "end";
}

std::string advice_for_library(const std::string& last_step) {
    if (last_step == "load_cuda") return "install the NVIDIA driver: nvidia-smi must list the GPU";
    return "install cuFile again (gds-tools); cufile.log in the current folder says more";
}

std::string advice_for_file(const std::string& file) {
    std::string device = "<major>:<minor>";
    struct stat facts {};
    if (::stat(file.c_str(), &facts) == 0) {
        device = std::to_string(major(facts.st_dev)) + ":" + std::to_string(minor(facts.st_dev));
    }
    return "cuFile takes files on ext4 and XFS, never on tmpfs, and asks udev which one it is: where no udev runs, "
           "/run/udev/data/b" +
           device + " has to hold the lines E:ID_FS_USAGE=filesystem and E:ID_FS_TYPE=ext4 (or xfs)";
}

void judge_mode(const ProbeRun& run, const std::string& file, const CuFileOptions& options, CuFileStatus& status) {
    status.mode = CuFileMode::compat;
    const std::uint64_t native = number(run, "nvfs_reads") + number(run, "p2p_reads");
    const std::uint64_t posix = number(run, "posix_reads");
    if (options.force_compat) {
        status.cause = "compatibility mode was asked for";
    } else if (!status.native_possible) {
        status.cause = "neither nvidia-fs nor PCI peer-to-peer is there";
    } else if (file.empty()) {
        status.cause = "native transfers have not been shown for a file yet";
    } else if (!status.counters) {
        status.cause = "nothing shows native transfers: level 3 statistics could not be read";
    } else if (native > 0 && posix == 0) {
        status.mode = CuFileMode::native;
    } else {
        status.cause = "cuFile's own counters show compatibility mode (" + std::to_string(posix) + " POSIX reads, " +
                       std::to_string(native) + " native)";
    }
}

CuFileStatus status_of(const ProbeRun& run, const CuFileOptions& options, const std::string& file) {
    CuFileStatus status;
    status.library = word(run, "library");
    status.version = static_cast<int>(number(run, "version"));
    status.last_step = word(run, "step");
    if (const std::string note = word(run, "note"); !note.empty()) status.notes.push_back(note);
    const std::string death = death_of(run, options);
    if (word(run, "driver") != "open" || (!death.empty() && !harmless(status.last_step))) {
        status.cause = !death.empty() ? death : word(run, "cause");
        if (status.cause.empty()) status.cause = "the probe ended with code " + std::to_string(run.exit_code);
        status.advice = advice_for_library(status.last_step);
        return status;
    }
    read_properties(run, options, status);
    status.counters = word(run, "counters") == "ok";
    if (!death.empty()) status.notes.push_back(death + "; counters are not used");
    if (!file.empty() && word(run, "file") != "ok") {
        status.cause = word(run, "cause");
        status.advice = advice_for_file(file);
        return status;
    }
    status.usable = true;
    judge_mode(run, file, options, status);
    return status;
}

}  // namespace

const char* to_string(CuFileMode mode) noexcept {
    switch (mode) {
        case CuFileMode::compat:
            return "compat";
        case CuFileMode::native:
            return "native";
        case CuFileMode::unusable:
            break;
    }
    return "unusable";
}

std::string CuFileStatus::version_text() const {
    if (version == 0) return "libcufile of unknown version";
    return "libcufile " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

CuFileStatus probe_cufile(const CuFileOptions& options, const std::string& file) {
    CuFileStatus status;
    const std::string program = options.probe_program.empty() ? find_probe_program() : options.probe_program;
    if (program.empty()) {
        status.cause = "penstock-cufile-probe was not found beside the library: cuFile is not opened untested";
        status.advice = "install Penstock whole, or name the program in the options";
        return status;
    }
    ProbeRun run = run_probe(program, arguments_of(options, file, true), options.probe_limit);
    // The driver may work although its statistics crash, so the probe runs again without them.
    if (run.started && (run.signal != 0 || run.timed_out) && word(run, "step") == "stats_start") {
        run = run_probe(program, arguments_of(options, file, false), options.probe_limit);
    }
    if (run.started) return status_of(run, options, file);
    status.cause = "the probe did not start: " + run.cause;
    return status;
}

}  // namespace penstock::path
