// CuFileSlot: the context's share of cuFile, opened by the first transfer that asks for a gds path and not before.
//
// Files let go of are forgotten by it, so that no registration outlives its descriptor.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "path/cufile.hpp"

namespace penstock::context {

class CuFileSlot {
  public:
    explicit CuFileSlot(int device_index) : device_index_(device_index) {}

    // Opens at the first call. Throws Error{unsupported} with the cause when cuFile cannot be used here.
    std::shared_ptr<path::CuFile> get(PathKind kind) {
        const std::lock_guard lock(mutex_);
        if (!cufile_) {
            path::CuFileOptions options;
            options.force_compat = kind == PathKind::gds_compat;
            options.device_index = device_index_;
            cufile_ = path::open_cufile(options);
        }
        return cufile_;
    }
    // Counters since the driver opened; nothing when it is not open or they cannot be read safely.
    std::optional<CuFileCounters> counters() const {
        const std::lock_guard lock(mutex_);
        return cufile_ ? cufile_->counters() : std::nullopt;
    }
    void forget(std::uint64_t file_id) {
        const std::lock_guard lock(mutex_);
        if (cufile_) cufile_->forget(file_id);
    }

  private:
    int device_index_;
    mutable std::mutex mutex_;
    std::shared_ptr<path::CuFile> cufile_;  // guarded by mutex_
};

}  // namespace penstock::context
