// The survey of the GPU: whether there is one, its driver, and how fast its link copies pinned memory.
//
// The link is timed on the first GPU only: making a context on every GPU of a node would take seconds and memory that
// belongs to others. The best of three rounds counts, because the first pays for page faults and clocks.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "context/survey/item.hpp"
#include "penstock/device.hpp"
#include "penstock/error.hpp"

namespace penstock::context {
namespace {

constexpr std::uint64_t kLinkBytes = 256 * kMiB;
constexpr std::uint64_t kLinkBufferBytes = 64 * kMiB;  // copied several times: allocating pinned memory is slow
constexpr int kLinkRounds = 3;

// Memory of a device for the length of a scope.
class ScopedMemory {
  public:
    ScopedMemory(Device& device, MemoryKind kind) : device_(device), kind_(kind) {
        memory_ = device_.allocate(kind_, kLinkBufferBytes);
    }
    ~ScopedMemory() { device_.release(kind_, memory_); }
    ScopedMemory(const ScopedMemory&) = delete;
    ScopedMemory& operator=(const ScopedMemory&) = delete;
    void* get() const noexcept { return memory_; }

  private:
    Device& device_;
    MemoryKind kind_;
    void* memory_ = nullptr;
};

double best_bytes_per_second(Stream& stream, CopyDirection direction, void* to, const void* from) {
    double best = 0;
    for (int round = 0; round < kLinkRounds; ++round) {
        const auto start = Clock::now();
        for (std::uint64_t done = 0; done < kLinkBytes; done += kLinkBufferBytes) {
            stream.copy(direction, to, from, kLinkBufferBytes);
        }
        stream.synchronize();
        const std::chrono::duration<double> seconds = Clock::now() - start;
        best = std::max(best, static_cast<double>(kLinkBytes) / seconds.count());
    }
    return best;
}

SurveyItem link_item(const SurveyGpus& gpus) {
    if (gpus.found.empty()) {
        return {"link", SurveyState::no, "no GPU", "run it where a GPU is, which it measures copies to and from"};
    }
    try {
        const auto device = make_cuda_device(gpus.found.front().index);
        const DeviceScope current(*device);
        const ScopedMemory host(*device, MemoryKind::pinned);
        const ScopedMemory memory(*device, MemoryKind::device);
        const auto stream = device->make_stream();
        const double up = best_bytes_per_second(*stream, CopyDirection::to_device, memory.get(), host.get());
        const double down = best_bytes_per_second(*stream, CopyDirection::to_host, host.get(), memory.get());
        std::array<char, 128> text{};
        std::snprintf(text.data(), text.size(), "%s: %.1f GB/s to the GPU, %.1f GB/s back (pinned memory)",
                      device->name().c_str(), up / 1e9, down / 1e9);
        return {"link", SurveyState::yes, text.data(), ""};
    } catch (const Error& error) {
        return {"link", SurveyState::no, error.what(), "free GPU memory or lockable host memory (128 MiB are enough)"};
    }
}

SurveyItem gpu_item(const SurveyGpus& gpus) {
    if (gpus.found.empty()) {
        return {"gpu", SurveyState::no, gpus.why,
                built_with_cuda() ? "an NVIDIA GPU that nvidia-smi lists; the emulated device serves until then"
                                  : "install the CUDA toolkit (nvcc) and rebuild; the emulated device serves"};
    }
    const DeviceInfo& first = gpus.found.front();
    std::string detail = std::to_string(gpus.found.size()) + " x " + first.model + ", " +
                         decimal_bytes(first.total_bytes) + ", " + decimal_bytes(first.free_bytes) + " free";
    if (!first.bus.empty()) detail += ", at " + first.bus;
    return {"gpu", SurveyState::yes, std::move(detail), ""};
}

// First line of /proc/driver/nvidia/version, e.g. "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 580.95 ...".
SurveyItem driver_item(const SurveyGpus& gpus, const std::string& root) {
    std::string version = file_text(root + "/proc/driver/nvidia/version");
    version = version.substr(0, version.find('\n'));
    if (!gpus.found.empty()) {
        const int cuda = gpus.found.front().driver_version;  // 1000 * major + 10 * minor
        std::string detail = "CUDA " + std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
        if (!version.empty()) detail += "; " + version;
        return {"driver", SurveyState::yes, std::move(detail), ""};
    }
    if (!version.empty()) {
        return {"driver", SurveyState::partly, version + ", but no GPU can be used: " + gpus.why,
                "check nvidia-smi, CUDA_VISIBLE_DEVICES and the permissions of /dev/nvidia*"};
    }
    return {"driver", SurveyState::no, "no NVIDIA kernel driver is loaded",
            "install the NVIDIA driver; nvidia-smi must list the GPU"};
}

}  // namespace

SurveyGpus survey_gpus() {
    SurveyGpus gpus;
    const int count = cuda_device_count(gpus.why);
    for (int index = 0; index < count; ++index) {
        try {
            gpus.found.push_back(make_cuda_device(index)->info());
        } catch (const Error& error) {
            gpus.why = error.what();
        }
    }
    return gpus;
}

std::vector<SurveyItem> gpu_items(const SurveyGpus& gpus, const std::string& root) {
    return {gpu_item(gpus), driver_item(gpus, root), link_item(gpus)};
}

}  // namespace penstock::context
