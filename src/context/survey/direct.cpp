// The survey of the ways storage can reach GPU memory without the CPU: cuFile, nvidia-fs, PCI peer-to-peer.
//
// Loading modules and libraries proves little here, so the words stay careful: these items say what is present and what
// is missing; only the evidence of a transfer says which way bytes took.
#include <sys/utsname.h>

#include <chrono>
#include <filesystem>

#include "context/survey/item.hpp"
#include "path/cufile/cufile.hpp"

namespace penstock::context {
namespace {

bool exists(const std::string& name) {
    std::error_code ignored;
    return std::filesystem::exists(name, ignored);
}

constexpr std::chrono::seconds kProbeLimit{5};

SurveyItem cufile_item(const SurveyPlace& place) {
    path::CuFileOptions options;
    options.probe_limit = kProbeLimit;
    const bool regular = place.facts.type == os::FileType::regular && place.facts.size_bytes > 0;
    return described(path::probe_cufile(options, regular ? place.path : ""));
}

bool nvidia_fs_loaded(const std::string& root) {
    return exists(root + "/proc/driver/nvidia-fs/stats") || exists(root + "/sys/module/nvidia_fs");
}

SurveyItem nvidia_fs_item(const std::string& root) {
    if (!nvidia_fs_loaded(root)) {
        return {"nvidia_fs", SurveyState::no, "the nvidia-fs module is not loaded",
                "as root: install nvidia-fs-dkms (part of nvidia-gds) and modprobe nvidia-fs; or use PCI peer-to-peer "
                "(p2pdma), which needs no module"};
    }
    std::string version = file_text(root + "/proc/driver/nvidia-fs/version");
    version = version.substr(0, version.find('\n'));
    return {"nvidia_fs", SurveyState::yes, version.empty() ? "loaded" : "loaded, " + version, ""};
}

// CONFIG_PCI_P2PDMA as "y", "n" or "" where the kernel's configuration cannot be read.
std::string p2pdma_config(const std::string& root) {
    utsname system{};
    ::uname(&system);
    const std::string config = file_text(root + "/boot/config-" + system.release);
    if (!config.empty()) return config.find("\nCONFIG_PCI_P2PDMA=y") != std::string::npos ? "y" : "n";
    const std::string symbols = file_text(root + "/proc/kallsyms");
    if (symbols.empty()) return "";
    return symbols.find(" pci_p2pdma_add_resource") != std::string::npos ? "y" : "n";
}

// What stands between this machine and peer-to-peer DMA without nvidia-fs (CUDA 12.8 or later).
std::vector<std::string> p2pdma_obstacles(const SurveyGpus& gpus, const std::string& root) {
    std::vector<std::string> missing;
    if (gpus.found.empty()) missing.emplace_back("a GPU");
    if (!gpus.found.empty() && gpus.found.front().driver_version < 12080) missing.emplace_back("a CUDA 12.8 driver");
    if (file_text(root + "/proc/driver/nvidia/version").find("Open Kernel Module") == std::string::npos) {
        missing.emplace_back("the open NVIDIA kernel driver");
    }
    if (p2pdma_config(root) != "y") missing.emplace_back("a kernel of 6.2 or later with CONFIG_PCI_P2PDMA=y");
    if (file_text(root + "/proc/driver/nvidia/params").find("RMForceStaticBar1=1") == std::string::npos) {
        missing.emplace_back(
            "NVreg_RegistryDwords=\"RMForceStaticBar1=1;RmForceDisableIomapWC=1\" of the nvidia module");
    }
    return missing;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : "; ") + word;
    return text;
}

SurveyItem p2pdma_item(const std::vector<std::string>& missing) {
    if (missing.empty()) {
        return {"p2pdma", SurveyState::yes, "kernel, driver and module options for PCI peer-to-peer are there", ""};
    }
    return {"p2pdma", SurveyState::no, std::to_string(missing.size()) + " requirements are not met", joined(missing)};
}

bool file_system_fits(const SurveyPlace& place) {
    const std::string& name = place.facts.file_system;
    for (const char* shared : {"lustre", "wekafs", "nfs", "nfs4", "gpfs", "beegfs"}) {
        if (name == shared) return true;  // by their own clients, if those were built for it
    }
    return place.nvme && (name == "ext4" || name == "xfs");
}

// Direct transfers between the storage of this place and GPU memory, all conditions together.
SurveyItem gpu_direct_item(const SurveyGpus& gpus, const SurveyPlace& place, const std::string& root) {
    std::vector<std::string> missing;
    if (gpus.found.empty()) missing.emplace_back("a GPU");
    if (!nvidia_fs_loaded(root) && !p2pdma_obstacles(gpus, root).empty()) {
        missing.emplace_back("nvidia-fs or PCI peer-to-peer");
    }
    if (!file_system_fits(place)) {
        missing.emplace_back("ext4 or XFS directly on an NVMe device (here: " + place.facts.file_system + ")" +
                             ", or a parallel file system whose client supports it");
    }
    if (missing.empty()) {
        return {"gpu_direct", SurveyState::yes, "nothing known is missing; a transfer's evidence is the proof", ""};
    }
    return {"gpu_direct", SurveyState::no, "storage here cannot reach GPU memory without the CPU", joined(missing)};
}

}  // namespace

SurveyItem described(const path::CuFileStatus& status) {
    const bool native = status.usable && status.mode == path::CuFileMode::native;
    SurveyItem item{"cufile", status.usable ? SurveyState::partly : SurveyState::no, "", ""};
    if (native) item.state = SurveyState::yes;
    if (status.version != 0) item.detail = status.version_text() + ", ";
    item.detail += status.usable ? std::string(path::to_string(status.mode)) + " mode" : "unusable";
    if (!status.library.empty()) item.detail += " (" + status.library + ")";
    if (!status.cause.empty()) item.detail += ": " + status.cause;
    if (native) return item;
    item.advice = status.advice;
    if (item.advice.empty()) {
        item.advice = status.usable ? "nvidia-fs or PCI peer-to-peer, and a file system that supports it"
                                    : "an NVIDIA GPU with its driver, and libcufile (part of the CUDA toolkit)";
    }
    return item;
}

std::vector<SurveyItem> direct_items(const SurveyGpus& gpus, const SurveyPlace& place, const std::string& root) {
    return {cufile_item(place), nvidia_fs_item(root), p2pdma_item(p2pdma_obstacles(gpus, root)),
            gpu_direct_item(gpus, place, root)};
}

}  // namespace penstock::context
