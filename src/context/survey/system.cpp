// The survey of the operating system: asynchronous interfaces, limits, NUMA, power counters.
//
// An interface counts as there only when both the kernel lets this process use it and this build was made with its
// library; the advice says which of the two is missing.
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "context/survey/item.hpp"
#include "penstock/types.hpp"

namespace penstock::context {
namespace {

#if defined(PENSTOCK_HAS_URING)
constexpr bool kBuiltWithUring = true;
#else
constexpr bool kBuiltWithUring = false;
#endif
#if defined(PENSTOCK_HAS_AIO)
constexpr bool kBuiltWithAio = true;
#else
constexpr bool kBuiltWithAio = false;
#endif

constexpr std::uint64_t kEnoughLocked = 256 * kMiB;  // the default staging budget, registered with the ring

SurveyItem io_uring_item(const os::Limits& limits, const std::string& root) {
    SurveyItem item{"io_uring", SurveyState::yes, "a ring can be set up", ""};
    const std::string disabled = file_text(root + "/proc/sys/kernel/io_uring_disabled");
    const std::string rebuild = "install liburing-dev and rebuild";
    if (!limits.io_uring.usable) {
        item.state = SurveyState::no;
        item.detail = limits.io_uring.cause;
        item.advice = !disabled.empty() && disabled[0] != '0'
                          ? "as root: sysctl kernel.io_uring_disabled=0"
                          : "a kernel of 5.6 or later, and a container profile that allows io_uring_setup, "
                            "io_uring_enter and io_uring_register";
    } else if (!kBuiltWithUring) {
        item = {"io_uring", SurveyState::partly, "the kernel has it, this build was made without liburing", rebuild};
    } else if (!disabled.empty() && disabled[0] == '1') {
        item.detail += " (kernel.io_uring_disabled is 1: privileged processes only)";
    }
    return item;
}

SurveyItem aio_item(const os::Ability& native_aio) {
    if (!native_aio.usable) {
        return {"libaio", SurveyState::no, native_aio.cause, "a kernel with CONFIG_AIO; a higher fs.aio-max-nr"};
    }
    if (!kBuiltWithAio) {
        return {"libaio", SurveyState::partly, "the kernel has native AIO, this build was made without libaio",
                "install libaio-dev and rebuild"};
    }
    return {"libaio", SurveyState::yes, "an AIO context can be set up", ""};
}

SurveyItem cachestat_item(const os::Limits& limits) {
    if (limits.cachestat.usable) return {"cachestat", SurveyState::yes, "residency and dirty pages can be asked", ""};
    return {"cachestat", SurveyState::partly, limits.cachestat.cause + "; dirty pages stay unknown",
            "Linux 6.5 or later, and a container profile that allows it"};
}

SurveyItem memlock_item(const os::Limits& limits) {
    const std::uint64_t bytes = limits.memlock_bytes;
    if (bytes == os::kUnlimited) return {"memlock", SurveyState::yes, "unlimited", ""};
    const std::string detail = std::to_string(bytes / 1024) + " KiB";
    if (bytes >= kEnoughLocked) return {"memlock", SurveyState::yes, detail, ""};
    if (::geteuid() == 0) return {"memlock", SurveyState::yes, detail + ", which does not bind root", ""};
    return {"memlock", SurveyState::partly, detail + ": too little to register " +
            std::to_string(kEnoughLocked / kMiB) + " MiB of staging memory with io_uring",
            "ulimit -l unlimited, by memlock lines in /etc/security/limits.conf or LimitMEMLOCK= of the service"};
}

SurveyItem numa_item(const os::Limits& limits) {
    if (limits.numa_nodes.size() <= 1) return {"numa", SurveyState::yes, "one node: all memory is equally near", ""};
    return {"numa", SurveyState::yes, std::to_string(limits.numa_nodes.size()) + " nodes", ""};
}

// Intel and AMD both show package energy under powercap's intel-rapl names.
SurveyItem cpu_power_item(const std::string& root) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    bool there = false;
    for (const auto& entry : fs::directory_iterator(root + "/sys/class/powercap", ignored)) {
        const std::string counter = entry.path().string() + "/energy_uj";
        if (::access(counter.c_str(), F_OK) != 0) continue;
        there = true;
        if (!file_text(counter).empty()) return {"power_cpu", SurveyState::yes, "RAPL energy counters can be read", ""};
    }
    if (there) {
        return {"power_cpu", SurveyState::no, "RAPL energy counters are there but not readable",
                "as root: chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"};
    }
    return {"power_cpu", SurveyState::no, "no RAPL energy counters", "a machine (not a virtual one) with the "
            "intel_rapl_msr module loaded"};
}

struct CloseLibrary {
    void operator()(void* library) const noexcept { ::dlclose(library); }
};

SurveyItem gpu_power_item() {
    const std::unique_ptr<void, CloseLibrary> nvml(::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL));
    if (nvml) return {"power_gpu", SurveyState::yes, "NVML is installed", ""};
    return {"power_gpu", SurveyState::no, "libnvidia-ml.so.1 cannot be loaded", "an NVIDIA GPU and its driver"};
}

}  // namespace

std::vector<SurveyItem> system_items(const os::Limits& limits, const std::string& root) {
    return {io_uring_item(limits, root), aio_item(os::probe_native_aio()), cachestat_item(limits), memlock_item(limits),
            numa_item(limits),           cpu_power_item(root), gpu_power_item()};
}

}  // namespace penstock::context
