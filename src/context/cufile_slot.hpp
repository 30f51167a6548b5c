// CuFileSlot: the context's share of cuFile, opened by the first transfer that asks for a gds path and not before.
//
// What gds-compat gets never moves bytes natively: where the driver is open without its compatibility mode forced, and
// native transfers are possible, it gets a refusal. So does every path on the emulated device: cuFile moves bytes of
// GPUs, and its batch and stream calls on other memory fail, or leave it as it was. Files let go of are forgotten, so
// that no registration outlives its descriptor.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "path/cufile/cufile.hpp"

namespace penstock::context {

class CuFileSlot {
  public:
    explicit CuFileSlot(const DeviceInfo& device) : emulated_(device.emulated) { options_.device_index = device.index; }
    explicit CuFileSlot(path::CuFileOptions options) : options_(std::move(options)) {}

    // Why this device has no cuFile, whatever is installed; empty: it may have one, which get() finds out.
    std::string_view refusal() const noexcept { return emulated_ ? kEmulated : std::string_view(); }

    // Opens at the first call. Throws Error{unsupported} with the cause when cuFile cannot be used here, or not for
    // this path any more.
    std::shared_ptr<path::CuFile> get(PathKind kind) {
        if (emulated_) {
            throw Error(ErrorCode::unsupported, "open cuFile", kEmulated,
                        "make the context on a GPU; see penstock doctor");
        }
        const std::lock_guard lock(mutex_);
        const bool force_compat = kind == PathKind::gds_compat;
        if (!cufile_ || (force_compat && !cufile_->options().force_compat)) {
            path::CuFileOptions options = options_;
            options.force_compat = force_compat;
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
    static constexpr const char* kEmulated = "the device is emulated, and cuFile moves bytes of GPUs";

    const bool emulated_ = false;
    path::CuFileOptions options_;
    mutable std::mutex mutex_;
    std::shared_ptr<path::CuFile> cufile_;  // guarded by mutex_
};

}  // namespace penstock::context
