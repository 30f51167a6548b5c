// Replaces aio.cpp in builds without libaio.
#include "path/make.hpp"

namespace penstock::path {

std::unique_ptr<Path> make_aio(PathKind, const PathOptions&) {
    throw Error(ErrorCode::unsupported, "make path aio", "this build lacks native aio: libaio was not found",
                "install libaio-dev (Debian, Ubuntu) or libaio-devel (Fedora, RHEL) and build again");
}

}  // namespace penstock::path
