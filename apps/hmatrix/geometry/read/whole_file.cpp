// See whole_file.hpp.
#include "hmatrix/geometry/read/whole_file.hpp"

#include <unistd.h>

#include <cerrno>

#include "os/refusal.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::size_t kPiece = 1 << 20;

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) os::refuse("write surface", path, errno);
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

WholeFile::WholeFile(const std::string& path)
    : path_(path), file_(os::real_system(), path, {.replace = true, .unnamed = true}) {}

void WholeFile::flush() {
    write_all(file_.fd(), kept_, path_);
    kept_.clear();
}

void WholeFile::append(std::string_view bytes) {
    kept_ += bytes;
    if (kept_.size() >= kPiece) flush();
}

void WholeFile::commit() {
    flush();
    file_.publish(true);
}

}  // namespace penstock::hmatrix
