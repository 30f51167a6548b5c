// See identity.hpp.
#include "os/file/identity.hpp"

#include <sys/vfs.h>

#include <filesystem>
#include <fstream>

namespace penstock::os {
namespace {

std::string trimmed(std::string text) {
    const auto last = text.find_last_not_of(" \t\r\n");
    if (last == std::string::npos) return {};
    text.erase(last + 1);
    return text.substr(text.find_first_not_of(" \t\r\n"));
}

std::string first_line(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return trimmed(line);
}

// x86 has a "model name". ARM may only have the numbers of the implementer and the part.
std::string cpu_model(const std::string& root) {
    std::ifstream file(root + "/proc/cpuinfo");
    std::string line;
    std::string parts;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) {
            if (!parts.empty()) break;  // the first processor ends here
            continue;
        }
        const std::string name = trimmed(line.substr(0, colon));
        const std::string value = trimmed(line.substr(colon + 1));
        if (name == "model name" || name == "Model") return value;
        if (name == "CPU implementer" || name == "CPU part") parts += (parts.empty() ? "" : " ") + value;
    }
    return parts.empty() ? "unknown" : parts;
}

}  // namespace

MachineIdentity machine_identity(const Limits& limits, const std::string& root) {
    MachineIdentity identity;
    identity.cpu = cpu_model(root);
    identity.cores = limits.cpus;
    identity.memory_bytes = limits.memory_bytes;
    identity.page_bytes = limits.page_bytes;
    identity.architecture = limits.machine;
    identity.kernel = limits.kernel;
    return identity;
}

namespace {

// Names a disk that is really memory or a file, because its times are not those of a disk.
std::string what_below(const std::filesystem::path& disk) {
    const std::string name = disk.filename().string();
    if (name.starts_with("ram") || name.starts_with("zram")) return " (memory)";
    const std::string file = first_line(disk / "loop/backing_file");
    if (file.empty()) return {};
    struct statfs system {};
    if (::statfs(file.c_str(), &system) != 0) return " (a file)";
    const std::string below = file_system_from_magic(static_cast<std::uint64_t>(system.f_type));
    const bool direct = first_line(disk / "loop/dio") == "1";
    return " (a file of " + below + (direct ? ", by O_DIRECT)" : ", by the page cache)");
}

}  // namespace

PlaceIdentity place_identity(const FileStat& facts, const std::string& root) {
    namespace fs = std::filesystem;
    PlaceIdentity identity{facts.file_system, public_mount_options(facts.mount_options), {}};
    std::error_code error;
    fs::path node = fs::canonical(root + "/sys/dev/block/" + std::to_string(facts.device_major) + ":" +
                                      std::to_string(facts.device_minor), error);
    if (error) return identity;
    if (fs::exists(node / "partition", error)) node = node.parent_path();
    identity.disk = node.filename().string();
    for (const char* fact : {"device/model", "size"}) {
        const std::string text = first_line(node / fact);
        if (!text.empty()) identity.disk += " " + text;
    }
    identity.disk += what_below(node);
    return identity;
}

}  // namespace penstock::os
