// See whole_file.hpp.
#include "hmatrix/geometry/whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr int kMode = 0666;
constexpr int kAttempts = 1000;

[[noreturn]] void fail(const std::string& path, int error_number) {
    throw Error(errno_info("write surface", path, error_number));
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) fail(path, errno);
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

WholeFile::WholeFile(std::string path) : path_(std::move(path)) {
    for (int attempt = 0; descriptor_ < 0; ++attempt) {
        temporary_ = path_ + ".part-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
        descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
        if (descriptor_ < 0 && (errno != EEXIST || attempt == kAttempts)) fail(path_, errno);
    }
}

WholeFile::~WholeFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void WholeFile::flush() {
    write_all(descriptor_, kept_, path_);
    kept_.clear();
}

void WholeFile::append(std::string_view bytes) {
    kept_ += bytes;
    if (kept_.size() >= kPiece) flush();
}

void WholeFile::commit() {
    flush();
    if (::fsync(descriptor_) != 0) fail(path_, errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, errno);
    temporary_.clear();
}

}  // namespace penstock::hmatrix
