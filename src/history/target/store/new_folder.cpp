// See new_folder.hpp.
#include "history/target/store/new_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "history/target/history_target.hpp"
#include "penstock/error.hpp"

namespace penstock::history {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameBytes = 200;  // of a store's name in that of the folder beside: names have 255
constexpr const char* kStoreMarks[] = {"zarr.json", ".zgroup", ".zarray", "penstock.json"};

bool is_store(const fs::path& name) {
    std::error_code ignored;
    for (const char* mark : kStoreMarks) {
        if (fs::exists(name / mark, ignored)) return true;
    }
    return fs::is_empty(name, ignored);
}

}  // namespace

NewFolder::NewFolder(const fs::path& name) : spare_(name.string()) {
    for (unsigned number = 0;; ++number) {
        path_ = name.parent_path() / ("." + name.filename().string().substr(0, kNameBytes) + ".penstock-" +
                                      std::to_string(::getpid()) + "-" + std::to_string(number));
        if (::mkdir(path_.c_str(), 0777) == 0) return;
        if (errno != EEXIST) throw Error(errno_info("open history", name.string(), errno));
    }
}

NewFolder::~NewFolder() {
    spare_.release();
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);  // else another may have a folder of that name by now
}

void NewFolder::take_free_name(const std::string& name) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0) return path_.clear();
    const bool has_no_such_rename = errno == EINVAL || errno == ENOSYS;
    if (has_no_such_rename && ::rename(path_.c_str(), name.c_str()) == 0) return path_.clear();
    if (errno == EEXIST || errno == ENOTEMPTY) refuse_second_writer(name);
    throw Error(errno_info("open history", name, errno));
}

void NewFolder::replace(const std::string& name) {
    if (::rename(path_.c_str(), name.c_str()) == 0) return path_.clear();  // an empty folder was there
    if (errno != ENOTEMPTY && errno != EEXIST) throw Error(errno_info("open history", name, errno));
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) == 0) return;
    const std::string old = path() + "-old";
    if (::rename(name.c_str(), old.c_str()) != 0) throw Error(errno_info("open history", name, errno));
    if (::rename(path_.c_str(), name.c_str()) != 0) {
        const int failure = errno;
        static_cast<void>(::rename(old.c_str(), name.c_str()));  // the older store has its name again
        throw Error(errno_info("open history", name, failure));
    }
    path_ = old;
}

os::UniqueFd locked_folder(const std::string& name) {
    os::UniqueFd folder(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) throw Error(errno_info("open history", name, errno));
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_second_writer(name);
    return folder;
}

// A child that was forked has the lock too: it goes for both.
void unlock_folder(const os::UniqueFd& folder) {
    if (folder) ::flock(folder.get(), LOCK_UN);
}

void sync_folder(const std::string& name) {
    const os::UniqueFd folder(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::fsync(folder.get()) != 0) throw Error(errno_info("sync folder", name, errno));
}

os::UniqueFd locked_older(const std::string& name, bool may_replace) {
    struct stat named {
    }, opened{};
    if (::lstat(name.c_str(), &named) != 0) {
        if (errno == ENOENT) return {};
        throw Error(errno_info("open history", name, errno));
    }
    if (!may_replace) throw Error(errno_info("open history", name, EEXIST));
    if (!S_ISDIR(named.st_mode) || !is_store(name)) {
        refuse_target(name, "it is there, and no store of Zarr or of raw files",
                      "give a store a name that nothing has, or remove it");
    }
    os::UniqueFd folder = locked_folder(name);
    const bool has_name = ::fstat(folder.get(), &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
                          named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
    if (!has_name) refuse_second_writer(name);  // another history replaced it since
    return folder;
}

}  // namespace penstock::history
