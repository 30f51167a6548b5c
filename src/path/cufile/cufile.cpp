// See cufile.hpp. The driver opens only after the probe has opened it in another process and survived.
#include "path/cufile/cufile.hpp"

#include <sys/stat.h>

#include <utility>

namespace penstock::path {
namespace {

Error unusable(const CuFileStatus& status) {
    return Error(ErrorCode::unsupported, "open cuFile", status.cause, status.advice);
}

Error open_natively() {
    return Error(ErrorCode::unsupported, "open cuFile",
                 "cuFile is open in native mode in this process, which has one driver: compatibility mode can be "
                 "forced no more, and gds-compat would move bytes natively",
                 "use gds-compat in a process that does not use gds, or after the contexts that used gds are closed");
}

// libcufile has one driver in a process, so the process has one slot for the driver's owner. The slot keeps nothing
// alive.
struct DriverSlot {
    std::mutex mutex;
    std::weak_ptr<CuFile> owner;
};

DriverSlot& process_slot() {
    static DriverSlot slot;
    return slot;
}

bool serves(CuFile& owner, const CuFileOptions& asked) {
    if (owner.options().libraries.library != asked.libraries.library) return false;
    if (owner.options().force_compat == asked.force_compat) return true;
    if (asked.force_compat) return !owner.status().native_possible;
    return owner.options().force_compat && owner.unforced().usable && !owner.unforced().native_possible;
}

std::uint64_t file_system_of(const FileHandle& file) {
    struct stat facts {};
    const int fd = file.buffered_fd >= 0 ? file.buffered_fd : file.direct_fd;
    return ::fstat(fd, &facts) == 0 ? facts.st_dev : 0;
}

}  // namespace

CuFile::CuFile(const CuFileOptions& options, CuFileStatus status) : options_(options), status_(std::move(status)) {
    const auto refuse = [&](const std::string& why) {
        status_.cause = why;
        throw unusable(status_);
    };
    std::string why;
    const auto cuda = cufile::open_cuda(options_.libraries.cuda_library, why);
    if (!cuda || !cufile::ensure_context(*cuda, options_.device_index, why)) refuse(why);
    cufile::LibraryOptions proven = options_.libraries;
    proven.library = status_.library;
    auto library = cufile::open_library(proven, why);
    if (!library) refuse(why);
    library_ = *library;
    for (std::string& note : cufile::configure(api(), {options_.force_compat, options_.skip_topology})) {
        status_.notes.push_back(std::move(note));
    }
    const cufile::CuFileError opened = api().driver_open();
    if (opened.error != 0 && opened.error != cufile::kDriverAlreadyOpen) {
        refuse("cuFileDriverOpen: " + cufile::error_text(opened));
    }
    owns_driver_ = opened.error == 0;
    if (!owns_driver_) status_.notes.emplace_back("the driver was open already: its settings are another library's");
    if (!status_.counters) return;
    status_.counters = api().set_stats_level(3).error == 0;
    if (status_.counters && api().stats_start != nullptr) api().stats_start();
}

CuFile::~CuFile() {
    for (const auto& [key, handle] : handles_) api().handle_deregister(handle);
    if (owns_driver_) api().driver_close();
}

CuFile::FileMode CuFile::mode_of(const FileHandle& file) {
    if (!status_.native_possible) return {CuFileMode::compat, status_.cause};
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = modes_.try_emplace(file_system_of(file));
    if (is_new) {
        const CuFileStatus shown = probe_cufile(options_, file.name);
        at->second = {shown.mode == CuFileMode::native ? CuFileMode::native : CuFileMode::compat, shown.cause};
    }
    return at->second;
}

const CuFileStatus& CuFile::unforced() {
    if (!options_.force_compat) return status_;
    const std::lock_guard lock(mutex_);
    if (!unforced_) {
        CuFileOptions options = options_;
        options.force_compat = false;
        options.libraries.library = status_.library;
        unforced_ = probe_cufile(options);
    }
    return *unforced_;
}

cufile::Handle CuFile::handle_of(const FileHandle& file, bool direct, int& error) {
    const std::lock_guard lock(mutex_);
    const Key key{file.id, direct};
    if (const auto at = handles_.find(key); at != handles_.end()) return at->second;
    cufile::Descriptor descriptor{};
    descriptor.type = 1;
    descriptor.file.fd = direct ? file.direct_fd : file.buffered_fd;
    cufile::Handle handle = nullptr;
    error = api().handle_register(&handle, &descriptor).error;
    if (error != 0) return nullptr;
    handles_.emplace(key, handle);
    return handle;
}

void CuFile::forget(std::uint64_t file_id) noexcept {
    const std::lock_guard lock(mutex_);
    for (const bool direct : {false, true}) {
        const auto at = handles_.find({file_id, direct});
        if (at == handles_.end()) continue;
        api().handle_deregister(at->second);
        handles_.erase(at);
    }
}

std::optional<CuFileCounters> CuFile::counters() const {
    if (!status_.counters) return std::nullopt;
    std::vector<unsigned char> stats(cufile::kStatsBytes);
    const std::lock_guard lock(mutex_);
    if (api().stats_l3(stats.data()).error != 0) return std::nullopt;
    const cufile::Operations counted = cufile::count_operations(stats.data(), status_.version);
    CuFileCounters counters;
    counters.nvfs_reads = counted.nvfs_reads;
    counters.nvfs_writes = counted.nvfs_writes;
    counters.p2p_reads = counted.p2p_reads;
    counters.p2p_writes = counted.p2p_writes;
    counters.posix_reads = counted.posix_reads;
    counters.posix_writes = counted.posix_writes;
    counters.library = status_.version_text();
    return counters;
}

std::shared_ptr<CuFile> open_cufile(const CuFileOptions& options) {
    DriverSlot& slot = process_slot();
    const std::lock_guard lock(slot.mutex);
    if (auto owner = slot.owner.lock()) {
        if (serves(*owner, options)) return owner;
        if (options.force_compat && owner->status().native_possible) throw open_natively();
        throw Error(
            ErrorCode::unsupported, "open cuFile",
            "cuFile is open already in this process with other settings, and it has one driver for each process",
            "use one setting of compatibility mode in a process");
    }
    CuFileStatus status = probe_cufile(options);
    if (!status.usable) throw unusable(status);
    auto owner = std::make_shared<CuFile>(options, std::move(status));
    slot.owner = owner;
    return owner;
}

}  // namespace penstock::path
