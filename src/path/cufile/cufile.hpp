// CuFile: owns NVIDIA's libcufile, and says what it can do on this machine.
//
// Some versions of libcufile hang, and some of its calls crash. So a separate process (penstock-cufile-probe) opens the
// driver first, under a time limit. Its findings become the CuFileStatus, and only then does this process open the
// driver. "Native" means that cuFile's own counters showed native transfers for a file on the same file system.
// Everything else counts as compatibility mode, whatever the configuration says.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "path/cufile/library.hpp"
#include "penstock/evidence.hpp"
#include "path/path.hpp"

namespace penstock::path {

enum class CuFileMode : std::uint8_t { unusable, compat, native };
const char* to_string(CuFileMode mode) noexcept;

struct CuFileOptions {
    bool force_compat = false;
    // Saves 0.2 s at opening. But then starting the counters crashes libcufile 1.15, so there is no evidence.
    bool skip_topology = false;
    cufile::LibraryOptions libraries{};
    std::string probe_program;  // empty: penstock-cufile-probe beside the running program or library
    std::chrono::milliseconds probe_limit{10'000};
    int device_index = 0;  // CUDA ordinal of the device that the probe reads into
};

struct CuFileStatus {
    CuFileMode mode = CuFileMode::unusable;
    bool usable = false;
    std::string cause;  // why cuFile is unusable or not native; empty when native
    std::string advice;
    std::string library;           // the file that was loaded
    int version = 0;               // 1150 is 1.15
    bool counters = false;         // the probe read level 3 statistics without a crash
    bool native_possible = false;  // nvidia-fs or PCI peer-to-peer is there, so a file may be native
    cufile::Properties properties{};
    std::uint32_t pool_slabs = 0;  // buffers in the smallest pool of the compatibility mode; 0: unknown
    std::string last_step;         // the last step that the probe began
    std::vector<std::string> notes;
    std::string version_text() const;  // "libcufile 1.15"
};

// Runs the probe. libcufile is not loaded into this process. If `file` is given, the probe also registers it, reads it
// and compares the bytes.
CuFileStatus probe_cufile(const CuFileOptions& options, const std::string& file = {});

class CuFile {
  public:
    CuFile(const CuFileOptions& options, CuFileStatus status);  // opens the driver; callers use open_cufile
    ~CuFile();
    CuFile(const CuFile&) = delete;
    CuFile& operator=(const CuFile&) = delete;

    const CuFileStatus& status() const noexcept { return status_; }
    // The status without forced compatibility mode. If compatibility mode was forced, the first call runs a probe
    // without it. So the caller can tell what this machine lacks from what the user asked for.
    const CuFileStatus& unforced();
    const cufile::Api& api() const noexcept { return library_.api; }
    const CuFileOptions& options() const noexcept { return options_; }

    // The mode of files on the file system of `file`. The probe finds it once for each file system, and only where
    // native transfers are possible. `cause` says why the file is not native.
    struct FileMode {
        CuFileMode mode = CuFileMode::compat;
        std::string cause;
    };
    FileMode mode_of(const FileHandle& file);

    // Returns the registered handle of a file and registers it at first use. On failure returns nullptr and sets
    // `error` to cuFile's code.
    cufile::Handle handle_of(const FileHandle& file, bool direct, int& error);
    void forget(std::uint64_t file_id) noexcept;  // Requires: the file's descriptors are still open.

    // Level 3 counters since the driver opened, summed over GPUs. Empty if they cannot be read safely.
    std::optional<CuFileCounters> counters() const;

  private:
    using Key = std::pair<std::uint64_t, bool>;  // file id; whether through the O_DIRECT descriptor
    CuFileOptions options_;
    CuFileStatus status_;
    cufile::Library library_;
    bool owns_driver_ = false;  // false if other code in this process opened it first
    mutable std::mutex mutex_;  // guards handles_, modes_ and unforced_
    std::map<Key, cufile::Handle> handles_;
    std::map<std::uint64_t, FileMode> modes_;  // by the file system's device number
    std::optional<CuFileStatus> unforced_;
};

// Returns the owner of the process's only libcufile driver. Callers share the owner, and the last one closes the
// driver. Throws Error{unsupported} with the cause if cuFile is unusable, or if it is open with other settings that
// matter. Forced compatibility mode does not matter where native transfers are impossible.
std::shared_ptr<CuFile> open_cufile(const CuFileOptions& options = {});

}  // namespace penstock::path
