// The machine profiles of a context: which one is of the file system a file lies on, why another is not used, and what
// was learnt of it. A profile of another machine, kernel, driver or file system never answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "os/file/file_stat.hpp"
#include "penstock/context.hpp"
#include "penstock/device.hpp"
#include "policy/costs.hpp"

namespace penstock::context {

// Corrections of a profile's curves on one file system, by what transfers took: observed over predicted, smoothed and
// bounded, so that one odd transfer cannot turn a choice. Thread-safe.
class Corrections {
  public:
    explicit Corrections(std::size_t curves) : factors_(curves, 1.0) {}
    static constexpr double kBound = 2.0;   // a factor stays within 1/kBound and kBound
    static constexpr double kWeight = 0.2;  // of the newest observation

    std::vector<double> factors() const;
    // `predicted_seconds` as the policy said, with the factor of that time in it.
    void learn(std::uint32_t curve, double predicted_seconds, double seconds);

  private:
    mutable std::mutex mutex_;
    std::vector<double> factors_;
};

// What is known of one file system. `costs` is null where no profile is of it; `refusal` says why, if there are any.
struct Place {
    std::shared_ptr<const policy::Costs> costs;
    std::shared_ptr<Corrections> corrections;  // null unless the context learns
    std::string refusal;
};

class Profiles {
  public:
    // Throws Error{invalid_argument} for a named file that is no profile, Error{unsupported} for one of another
    // machine, and the system's for one that cannot be read. In a directory such files are passed over with the reason.
    Profiles(const ContextOptions& options, const DeviceInfo& device);

    // Null without any profiles. The first question about a file system reads its mount.
    std::shared_ptr<const Place> place_of(int fd, const std::string& name);

  private:
    void read_directory(const std::string& directory, const MachineIdentity& here);
    Place find(const os::FileStat& facts) const;

    bool adaptive_;
    std::vector<std::shared_ptr<const policy::Costs>> known_;
    std::vector<std::string> passed_over_;  // files of directories, each with the reason
    std::mutex mutex_;
    std::map<std::pair<unsigned, unsigned>, std::shared_ptr<const Place>> places_;  // by device number; of mutex_
};

// Of this process's machine, with this device.
MachineIdentity identity_of(const DeviceInfo& device);
// A profile without rows, of this machine and the file system `path` lies on. Throws Error.
Profile identity_at(const std::string& path, const DeviceInfo& device);

}  // namespace penstock::context
