// make_path: makes the path of a PathKind by the maker in its row of base/path_traits.hpp.
#include "path/make.hpp"

namespace penstock {

std::unique_ptr<Path> make_path(PathKind kind, const PathOptions& options) {
    switch (kind) {
#define PENSTOCK_PATH_CASE(path_kind, name, page_cache, family, io_uring, maker) \
    case PathKind::path_kind:                                                    \
        return path::make_##maker(kind, options);
        PENSTOCK_PATHS(PENSTOCK_PATH_CASE)
#undef PENSTOCK_PATH_CASE
        case PathKind::automatic:
            break;
    }
    throw Error(ErrorCode::invalid_argument, "make path", "\"auto\" is a request, not a path",
                "name one of: " + known_path_names());
}

}  // namespace penstock
