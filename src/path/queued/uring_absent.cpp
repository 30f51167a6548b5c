// Replaces uring.cpp in builds without liburing.
#include "path/make.hpp"

namespace penstock::path {

std::unique_ptr<Path> make_uring(PathKind kind, const PathOptions&) {
    throw Error(ErrorCode::unsupported, std::string("make path ") + to_string(kind),
                "this build lacks io_uring: liburing was not found",
                "install liburing-dev (Debian, Ubuntu) or liburing-devel (Fedora, RHEL) and build again");
}

}  // namespace penstock::path
