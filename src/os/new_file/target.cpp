// See target.hpp. Names are looked up relative to an open folder, so that all answers concern the same folder.
#include "os/new_file/target.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <utility>

#include "os/refusal.hpp"

namespace penstock::os {
namespace {

constexpr int kLinksMax = 40;  // as in Linux
constexpr int kTriesMax = 10;  // attempts at a name that other processes keep changing

struct SplitName {
    std::string folder;
    std::string base;
};

// "/." makes the kernel resolve a link at the end of the folder's path.
SplitName split(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos) return {".", name};
    return {name.substr(0, slash) + "/.", name.substr(slash + 1)};
}

struct stat facts_of(int fd, const std::string& name, const char* operation) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) refuse(operation, name, errno);
    return facts;
}

bool same(const struct stat& one, const struct stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Other users may add names to the folder but cannot remove ours.
bool shared_and_sticky(const struct stat& folder) {
    return (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

class Resolver {
  public:
    Resolver(System& system, const std::string& name, const char* operation)
        : system_(system), name_(name), operation_(operation) {}

    Target resolve() {
        Target at = enter(AT_FDCWD, name_);
        for (int link = 0; link < kLinksMax; ++link) {
            at.there = open(at, O_NOFOLLOW);
            if (!at.there || !S_ISLNK(facts_of(at.there.get(), name_, operation_).st_mode)) return at;
            const UniqueFd end = open(at, 0);  // the kernel follows, and refuses links that it does not trust
            if (end) return home_of(end);
            need_trusted(at);
            at = enter(at.folder.get(), content(at.there.get()));
        }
        refuse(operation_, name_, ELOOP);
    }

  private:
    // Returns an empty UniqueFd if there is no such name.
    UniqueFd open(const Target& at, int flags) const {
        UniqueFd found(system_.openat(at.folder.get(), at.base.c_str(), O_PATH | O_CLOEXEC | flags, 0), system_);
        if (!found && errno != ENOENT) refuse(operation_, name_, errno);
        return found;
    }

    Target enter(int from, const std::string& path) const {
        const SplitName parts = split(path);
        if (parts.base.empty() || parts.base == "." || parts.base == "..") {
            refuse(operation_, name_, EISDIR, "give a file name");
        }
        Target at;
        at.base = parts.base;
        at.folder = UniqueFd(
            system_.openat(from, parts.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0), system_);
        if (!at.folder) refuse(operation_, name_, errno);
        return at;
    }

    // Returns the folder and name of the file that a link led to. Its path counts only if it leads to the same file
    // again.
    Target home_of(const UniqueFd& end) const {
        const struct stat wanted = facts_of(end.get(), name_, operation_);
        for (int attempt = 0; attempt < kTriesMax; ++attempt) {
            Target at = enter(AT_FDCWD, path_of(end.get(), name_, operation_));
            at.there = open(at, O_NOFOLLOW);
            if (at.there && same(facts_of(at.there.get(), name_, operation_), wanted)) return at;
        }
        ErrorInfo info = refusal(operation_, name_, ENOENT);
        info.cause = "what its symbolic link leads to has no name, or others rename it";
        throw Error(std::move(info));
    }

    // For a link to a missing file the kernel checks nothing. So its rule is applied here to the link that was read.
    void need_trusted(const Target& at) const {
        const struct stat folder = facts_of(at.folder.get(), name_, operation_);
        const struct stat link = facts_of(at.there.get(), name_, operation_);
        if (!shared_and_sticky(folder) || link.st_uid == ::geteuid() || link.st_uid == folder.st_uid) return;
        refuse(operation_, name_, EACCES, "it is another user's symbolic link: name the file that it leads to");
    }

    std::string content(int link) const {
        std::string text(PATH_MAX, '\0');
        const ssize_t length = ::readlinkat(link, "", text.data(), text.size());
        if (length < 0) refuse(operation_, name_, errno);
        text.resize(static_cast<std::size_t>(length));
        return text;
    }

    System& system_;
    const std::string& name_;
    const char* operation_;
};

}  // namespace

Target resolve(System& system, const std::string& name, const char* operation) {
    return Resolver(system, name, operation).resolve();
}

UniqueFd look(System& system, const Target& target) {
    return UniqueFd(system.openat(target.folder.get(), target.base.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0),
                    system);
}

void need_replaceable(const Target& target, int there, const std::string& name) {
    const struct stat folder = facts_of(target.folder.get(), name, "replace");
    const struct stat file = facts_of(there, name, "replace");
    if (shared_and_sticky(folder) && file.st_uid != ::geteuid() && file.st_uid != folder.st_uid) {
        ErrorInfo info = refusal("replace", name, EACCES, "remove it, or give another name");
        info.cause = "the file of this name belongs to another user, and its folder is sticky";
        throw Error(std::move(info));
    }
    if (file.st_uid == ::geteuid() && (file.st_mode & S_IWUSR) != 0) return;
    const std::string self = "/proc/self/fd/" + std::to_string(there);
    if (::faccessat(AT_FDCWD, self.c_str(), W_OK, AT_EACCESS) == 0) return;
    refuse("replace", name, errno, errno == EROFS ? "" : "you may not write into that file: remove it first");
}

std::string path_of(int fd, const std::string& name, const char* operation) {
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    std::string path(PATH_MAX, '\0');
    const ssize_t length = ::readlink(self.c_str(), path.data(), path.size());
    if (length < 0) refuse(operation, name, errno, "is /proc mounted?");
    path.resize(static_cast<std::size_t>(length));
    return path;
}

}  // namespace penstock::os
