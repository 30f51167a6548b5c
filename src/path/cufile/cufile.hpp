// CuFile: NVIDIA's libcufile behind an owner, and what is known about it on this machine.
//
// libcufile is trusted with nothing before it has proven itself: its driver first opens in a separate process
// (penstock-cufile-probe) under a time limit, because some versions hang and some of its calls crash. What the probe
// saw is the status; only then is the driver opened here. "Native" means shown by cuFile's own counters for a file on
// the same file system; everything else is compatibility mode, whatever the configuration hopes for.
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
#include "penstock/path.hpp"

namespace penstock::path {

enum class CuFileMode : std::uint8_t { unusable, compat, native };
const char* to_string(CuFileMode mode) noexcept;

struct CuFileOptions {
    bool force_compat = false;
    // Opening then takes 0.2 s less, but starting the counters crashed in libcufile 1.15 (H200 host): no evidence.
    bool skip_topology = false;
    cufile::LibraryOptions libraries{};
    std::string probe_program;  // empty: penstock-cufile-probe beside our own program or library
    std::chrono::milliseconds probe_limit{10'000};
    int device_index = 0;  // CUDA ordinal that the probe reads into
};

struct CuFileStatus {
    CuFileMode mode = CuFileMode::unusable;
    bool usable = false;
    std::string cause;  // why unusable, or why not native; empty when native
    std::string advice;
    std::string library;           // the file that was loaded
    int version = 0;               // 1150 is 1.15
    bool counters = false;         // level 3 statistics were read without harm
    bool native_possible = false;  // nvidia-fs or PCI peer-to-peer is there: a file may be native
    cufile::Properties properties{};
    std::uint32_t pool_slabs = 0;  // buffers of the compatibility mode's smallest pool; 0: unknown
    std::string last_step;         // what the probe did last
    std::vector<std::string> notes;
    std::string version_text() const;  // "libcufile 1.15"
};

// Runs the probe: nothing of libcufile enters this process. With a file, that file is also registered, read and
// compared.
CuFileStatus probe_cufile(const CuFileOptions& options, const std::string& file = {});

class CuFile {
  public:
    CuFile(const CuFileOptions& options, CuFileStatus status);  // opens the driver; use open_cufile
    ~CuFile();
    CuFile(const CuFile&) = delete;
    CuFile& operator=(const CuFile&) = delete;

    const CuFileStatus& status() const noexcept { return status_; }
    // What holds where compatibility mode is not forced: the status itself, or, when it was forced, that of a probe
    // that runs once. Tells what this machine lacks for native transfers from what somebody asked for.
    const CuFileStatus& unforced();
    const cufile::Api& api() const noexcept { return library_.api; }
    const CuFileOptions& options() const noexcept { return options_; }

    // The mode that files on this file's file system get; asked once for each file system, by the probe, and only where
    // native is possible at all. The cause tells why a file is not native.
    struct FileMode {
        CuFileMode mode = CuFileMode::compat;
        std::string cause;
    };
    FileMode mode_of(const FileHandle& file);

    // The registered handle of a file, made at first use. On failure returns nullptr and sets `error` (cuFile's code).
    cufile::Handle handle_of(const FileHandle& file, bool direct, int& error);
    void forget(std::uint64_t file_id) noexcept;  // before the file's descriptors close

    // Level 3 counters since the driver opened, summed over GPUs; nothing when they could not be read safely.
    std::optional<CuFileCounters> counters() const;

  private:
    using Key = std::pair<std::uint64_t, bool>;  // file id, through the O_DIRECT descriptor
    CuFileOptions options_;
    CuFileStatus status_;
    cufile::Library library_;
    bool owns_driver_ = false;  // somebody else in the process may have opened it
    mutable std::mutex mutex_;  // guards handles_, modes_ and unforced_
    std::map<Key, cufile::Handle> handles_;
    std::map<std::uint64_t, FileMode> modes_;  // by device number of the file system
    std::optional<CuFileStatus> unforced_;
};

// libcufile's driver is one for each process, so its owner is too: callers share it, and the last one closes it. Throws
// Error{unsupported} with the cause when cuFile is unusable, or open already with other settings that make a
// difference: forcing compatibility mode makes none where native transfers are impossible.
std::shared_ptr<CuFile> open_cufile(const CuFileOptions& options = {});

// gds, gds_compat, gds_batch or gds_stream over options.cufile. Throws Error{unsupported} with the cause.
std::unique_ptr<Path> make_cufile_path(PathKind kind, const PathOptions& options);

}  // namespace penstock::path
