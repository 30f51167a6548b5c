// See profiles.hpp.
#include "context/profiles.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "os/fd.hpp"
#include "os/file/identity.hpp"
#include "os/limits.hpp"

namespace penstock::context {
namespace {

constexpr std::size_t kTextMax = 4 * kMiB;

[[noreturn]] void fail(const std::string& name, int error_number) {
    ErrorInfo info = errno_info("read machine profile", name, error_number);
    info.advice = "name a file that `penstock calibrate` wrote";
    throw Error(std::move(info));
}

void need_name(const std::string& name) {
    const char* wrong = nullptr;
    if (name.empty()) wrong = "profile: the name is empty";
    else if (name.find('\0') != std::string::npos) wrong = "profile: the name holds a NUL byte";
    if (wrong == nullptr) return;
    throw Error(ErrorCode::invalid_argument, "use machine profile", wrong,
                "name a file that `penstock calibrate` wrote, or a directory of such files");
}

std::string file_text(const std::string& name) {
    const os::UniqueFd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) fail(name, errno);
    std::string text;
    char block[16384];
    for (;;) {
        const ssize_t got = ::read(fd.get(), block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(name, errno);
        if (got == 0) return text;
        text.append(block, static_cast<std::size_t>(got));
        if (text.size() > kTextMax) fail(name, EFBIG);
    }
}

// The profile, when it is of this machine; else `why` says what differs.
std::shared_ptr<const policy::Costs> checked(const std::string& name, const MachineIdentity& here, std::string& why) {
    Profile profile = parse_profile(file_text(name), name);
    why = difference(profile.machine, here);
    if (!why.empty()) return nullptr;
    return std::make_shared<const policy::Costs>(std::move(profile));
}

std::string joined(std::string text, const std::string& more) { return text.empty() ? more : text + "; " + more; }

}  // namespace

std::vector<double> Corrections::factors() const {
    const std::lock_guard lock(mutex_);
    return factors_;
}

void Corrections::learn(std::uint32_t curve, double predicted_seconds, double seconds) {
    const std::lock_guard lock(mutex_);
    if (curve == 0 || curve > factors_.size() || predicted_seconds <= 0 || seconds <= 0) return;
    double& factor = factors_[curve - 1];
    const double observed = factor * seconds / predicted_seconds;
    factor = std::clamp((1 - kWeight) * factor + kWeight * observed, 1 / kBound, kBound);
}

MachineIdentity identity_of(const DeviceInfo& device) {
    MachineIdentity identity = os::machine_identity(os::limits());
    identity.device = device.model;
    identity.driver = static_cast<std::uint64_t>(device.driver_version);
    return identity;
}

Profile identity_at(const std::string& path, const DeviceInfo& device) {
    const os::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!fd) {
        ErrorInfo info = errno_info("identify", path, errno);
        info.advice = "name a file or a directory that exists";
        throw Error(std::move(info));
    }
    Profile profile;
    profile.machine = identity_of(device);
    profile.place = os::place_identity(os::file_stat(fd.get(), path));
    return profile;
}

Profiles::Profiles(const ContextOptions& options, const DeviceInfo& device) : adaptive_(options.adaptive) {
    if (options.profiles.empty()) return;
    const MachineIdentity here = identity_of(device);
    for (const std::string& name : options.profiles) {
        need_name(name);
        std::error_code error;
        if (std::filesystem::is_directory(name, error)) {
            read_directory(name, here);
            continue;
        }
        std::string why;
        auto costs = checked(name, here, why);
        if (!costs) {
            ErrorInfo info;
            info.code = ErrorCode::unsupported;
            info.operation = "use machine profile";
            info.file = name;
            info.cause = "it is of another machine: " + why;
            info.advice = "make one here with `penstock calibrate`";
            throw Error(std::move(info));
        }
        known_.push_back(std::move(costs));
    }
}

void Profiles::read_directory(const std::string& directory, const MachineIdentity& here) {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator entry(directory, error);
    for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
        if (entry->path().extension() == ".csv") names.push_back(entry->path().string());
    }
    if (error) passed_over_.push_back(directory + ": " + error.message());
    std::sort(names.begin(), names.end());  // the same answer whatever order the directory has
    for (const std::string& name : names) {
        std::string why;
        try {
            if (auto costs = checked(name, here, why)) known_.push_back(std::move(costs));
            else passed_over_.push_back("machine profile " + name + " is of another machine: " + why);
        } catch (const Error& problem) {
            passed_over_.push_back("machine profile " + name + " not used: " + problem.info().cause);
        }
    }
}

Place Profiles::find(const os::FileStat& facts) const {
    const PlaceIdentity here = os::place_identity(facts);
    Place place;
    for (const auto& costs : known_) {
        const std::string why = difference(costs->profile().place, here);
        if (why.empty()) {
            place.costs = costs;
            place.refusal.clear();
            if (adaptive_) place.corrections = std::make_shared<Corrections>(costs->curves());
            return place;
        }
        place.refusal = joined(place.refusal, "machine profile " + costs->profile().name +
                                                  " is of another file system: " + why);
    }
    for (const std::string& reason : passed_over_) place.refusal = joined(place.refusal, reason);
    return place;
}

std::shared_ptr<const Place> Profiles::place_of(int fd, const std::string& name) {
    if (known_.empty() && passed_over_.empty()) return nullptr;
    const os::FileStat brief = os::stat_without_mount(fd, name);
    const std::lock_guard lock(mutex_);
    auto& place = places_[{brief.device_major, brief.device_minor}];
    if (!place) place = std::make_shared<const Place>(find(os::file_stat(fd, name)));
    return place;
}

}  // namespace penstock::context
