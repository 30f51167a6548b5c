// The gds and gds-compat paths: submit() makes one cuFileRead or cuFileWrite for each operation.
//
// Both make the same calls and promise different things. gds moves bytes only if the probe saw native transfers on that
// file system, and fails otherwise. gds-compat is for users who want to use or to measure compatibility mode.
#include "path/cufile/gds.hpp"

#include <cerrno>

#include "path/check.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

ErrorCode code_of(int cufile_error) noexcept {
    switch (cufile_error) {
        case 5007:
        case 5008:
        case 5009:
        case 5013:
        case 5018:
        case 5019:
        case 5027:
        case 5038:
        case 5049:
            return ErrorCode::unsupported;
        case 5012:
        case 5014:
        case 5022:
            return ErrorCode::invalid_argument;
        case 5011:
        case 5015:
            return ErrorCode::device_error;
        case 5016:
        case 5036:
            return ErrorCode::out_of_memory;
        case 5025:
            return ErrorCode::permission_denied;
        default:
            return ErrorCode::io_error;
    }
}

class GdsPath final : public Path {
  public:
    GdsPath(PathKind kind, const PathOptions& options)
        : cufile_(options.cufile), capabilities_(gds_capabilities(kind, *cufile_)) {}

    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    std::size_t submit(std::span<const Operation> operations) override {
        if (operations.empty() || !ready_.empty()) return 0;
        ready_.push(work(operations.front()));
        return 1;
    }

    std::size_t reap(std::span<Completion> completions, Deadline) override { return ready_.pop(completions); }

  private:
    Completion work(const Operation& operation) {
        const Prepared prepared = prepare(operation, capabilities_, *cufile_);
        if (prepared.refused.status != ErrorCode::ok) return prepared.refused;
        const auto offset = static_cast<off_t>(operation.offset_bytes);
        const cufile::Api& api = cufile_->api();
        errno = 0;
        const ssize_t result = operation.direction == Direction::read
                                   ? api.read(prepared.handle, operation.memory, operation.bytes, offset, 0)
                                   : api.write(prepared.handle, operation.memory, operation.bytes, offset, 0);
        return gds_completion(operation.tag, result == -1 ? -(errno == 0 ? EIO : errno) : result);
    }

    std::shared_ptr<CuFile> cufile_;
    Capabilities capabilities_;
    Ready ready_;
};

}  // namespace

Completion gds_completion(std::uint64_t tag, std::int64_t result) noexcept {
    if (result > -cufile::kFirstError) return completion_of(tag, result);
    Completion completion;
    completion.tag = tag;
    completion.system_code = static_cast<int>(-result);
    completion.status = code_of(completion.system_code);
    return completion;
}

Capabilities gds_capabilities(PathKind kind, const CuFile& cufile) {
    Capabilities capabilities;
    capabilities.kind = kind;
    capabilities.memory = OperationMemory::device;
    capabilities.notes = cufile.status().version_text() + ", " + to_string(cufile.status().mode);
    if (!cufile.status().cause.empty()) capabilities.notes += ": " + cufile.status().cause;
    return capabilities;
}

Prepared prepare(const Operation& operation, const Capabilities& capabilities, CuFile& cufile) {
    Prepared prepared;
    prepared.refused = check(operation, capabilities);
    if (prepared.refused.status != ErrorCode::ok) return prepared;
    const bool native = cufile.mode_of(*operation.file).mode == CuFileMode::native;
    if (capabilities.kind == PathKind::gds && !native) {
        prepared.refused.status = ErrorCode::unsupported;
        return prepared;
    }
    // In compatibility mode cuFile reads through the page cache when it has a buffered descriptor, which is its one
    // advantage.
    const bool direct = (native && operation.file->direct_fd >= 0) || operation.file->buffered_fd < 0;
    int error = 0;
    prepared.handle = cufile.handle_of(*operation.file, direct, error);
    if (prepared.handle == nullptr) prepared.refused = gds_completion(operation.tag, -error);
    return prepared;
}

std::unique_ptr<Path> make_gds_sync(PathKind kind, const PathOptions& options) {
    CuFile& cufile = *options.cufile;
    if (kind == PathKind::gds_compat && cufile.status().native_possible) {
        throw Error(ErrorCode::unsupported, "make path gds-compat",
                    "cuFile is open in native mode, and its bytes would move natively",
                    "use gds-compat in a process that does not use gds");
    }
    if (kind == PathKind::gds && !cufile.status().native_possible) {
        const CuFileStatus& unforced = cufile.unforced();
        if (unforced.native_possible) {
            throw Error(ErrorCode::unsupported, "make path gds",
                        "cuFile was opened in compatibility mode before, for gds-compat, and has one driver for each "
                        "process",
                        "use gds in a process that does not use gds-compat");
        }
        throw Error(ErrorCode::unsupported, "make path gds",
                    "cuFile would use its compatibility mode: " + unforced.cause,
                    "use gds-compat to have that, or a path that is faster: buffered or direct");
    }
    return std::make_unique<GdsPath>(kind, options);
}

// Requires: options.cufile is open. Otherwise throws Error{unsupported}.
std::unique_ptr<Path> make_cufile_path(PathKind kind, const PathOptions& options) {
    if (!options.cufile) {
        throw Error(ErrorCode::unsupported, std::string("make path ") + to_string(kind), "cuFile is not open",
                    "see penstock doctor");
    }
    switch (kind) {
        case PathKind::gds:
        case PathKind::gds_compat:
            return make_gds_sync(kind, options);
        case PathKind::gds_batch:
            return make_gds_batch(options);
        case PathKind::gds_stream:
            return make_gds_stream(options);
        default:
            break;
    }
    throw Error(ErrorCode::invalid_argument, "make path", std::string(to_string(kind)) + " is not a cuFile path");
}

}  // namespace penstock::path
