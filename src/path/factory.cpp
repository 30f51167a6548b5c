// make_path: makes the path of a PathKind.
#include "path/cufile/cufile.hpp"
#include "path/make.hpp"

namespace penstock {
std::unique_ptr<Path> make_path(PathKind kind, const PathOptions& options) {
    switch (kind) {
        case PathKind::null:
            return path::make_null(options);
        case PathKind::memory:
            return path::make_memory(options);
        case PathKind::buffered:
        case PathKind::direct:
            return path::make_posix(kind, options);
        case PathKind::aio:
            return path::make_aio(options);
        case PathKind::uring:
        case PathKind::uring_buffered:
            return path::make_uring(kind, options);
        case PathKind::mmap:
            return path::make_mmap(options);
        case PathKind::gds:
        case PathKind::gds_compat:
        case PathKind::gds_batch:
        case PathKind::gds_stream:
            return path::make_cufile_path(kind, options);
        case PathKind::automatic:
            break;
    }
    throw Error(ErrorCode::invalid_argument, "make path", "\"auto\" is a request, not a path",
                "name one of: " + known_path_names());
}

}  // namespace penstock
