// See target_file.hpp.
#include "snapshot/target_file.hpp"

#include <cerrno>
#include <utility>

#include "os/new_file/writer_locks.hpp"
#include "os/refusal.hpp"
#include "os/system.hpp"

namespace penstock::snapshot {
namespace {

// So that a full disk shows before any process writes.
void reserve(const os::NewFile& made, const SnapshotFileOptions& options) {
    os::System& system = os::real_system();
    if (options.bytes == 0 || system.fallocate(made.fd(), 0, options.bytes) == 0) return;
    ErrorInfo info = os::refusal("reserve space for", options.name, errno);
    info.length_bytes = options.bytes;
    const bool is_missing = errno == EOPNOTSUPP || errno == ENOSYS;
    if (!is_missing || system.ftruncate(made.fd(), options.bytes) != 0) throw Error(std::move(info));
}

std::unique_ptr<os::NewFile> made_shared(const SnapshotFileOptions& options) {
    if (!options.is_shared) return nullptr;
    auto made =
        std::make_unique<os::NewFile>(os::real_system(), options.name, os::NewFileOptions{.replace = options.replace});
    reserve(*made, options);
    return made;
}

// Of two snapshots with one name, and of a snapshot and a history, the second is refused.
os::NameLock taken_name(const std::string& name) {
    os::NameLock lock(os::real_system(), name, "write snapshot");
    os::need_no_writer(name);
    return lock;
}

File opened_file(const Context& context, const SnapshotFileOptions& options, const std::string& place) {
    if (options.is_shared) return context.open(place, {.mode = OpenMode::read_write});
    return context.open(options.name, {.mode = OpenMode::create,
                                       .size_bytes = options.bytes,
                                       .durable = options.durable,
                                       .replace = options.replace});
}

}  // namespace

SnapshotFile::SnapshotFile(const Context& context, const SnapshotFileOptions& options)
    : durable_(options.durable),
      name_(options.name),
      lock_(taken_name(options.name)),
      made_(made_shared(options)),
      file_(opened_file(context, options, made_ ? made_->temporary() : "")) {
    if (made_) place_ = made_->temporary();
}

SnapshotFile::SnapshotFile(const Context& context, const std::string& place, bool durable)
    : durable_(durable), place_(place), file_(context.open(place, {.mode = OpenMode::read_write})) {}

void SnapshotFile::settle() {
    if (place_.empty()) return;  // publish() does it
    if (durable_) file_.sync();
    if (!made_) file_.close();
}

void SnapshotFile::publish() {
    os::need_no_writer(name_);  // a history may have begun since
    file_.close();
    if (made_) made_->publish(durable_);
    lock_.release();
}

}  // namespace penstock::snapshot
