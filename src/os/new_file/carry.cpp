// See carry.hpp. Sets the user attributes first and the mode last, because after a change of owner the caller may no
// longer set the attributes.
#include "os/new_file/carry.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "os/refusal.hpp"

namespace penstock::os {
namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kAttributeBytesMax = 65536;  // of a value or key list: XATTR_SIZE_MAX in linux/limits.h
constexpr mode_t kPermissions = 0777;
constexpr mode_t kOfFolders = S_ISGID | S_ISVTX;  // a write does not clear these bits of a folder
constexpr mode_t kOwnerOnly = 0700;
constexpr const char* kPosixList = "system.posix_acl_access";
constexpr std::array<std::string_view, 4> kLists{kPosixList, "system.posix_acl_default", "system.nfs4_acl",
                                                 "system.richacl"};
// The format of an access control list (linux/posix_acl_xattr.h): a header of four bytes, then entries {tag, rights,
// number}.
constexpr std::size_t kListHead = 4, kListEntry = 8;
constexpr std::uint16_t kOwningGroup = 0x04, kOthers = 0x20;

std::string self(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// Falls back to /proc, because a descriptor of O_PATH gives no attributes.
ssize_t get(int fd, const char* key, std::string& value) {
    const ssize_t length = ::fgetxattr(fd, key, value.data(), value.size());
    if (length >= 0 || errno != EBADF) return length;
    return ::getxattr(self(fd).c_str(), key, value.data(), value.size());
}

ssize_t list(int fd, std::string& keys) {
    const ssize_t length = ::flistxattr(fd, keys.data(), keys.size());
    if (length >= 0 || errno != EBADF) return length;
    return ::listxattr(self(fd).c_str(), keys.data(), keys.size());
}

std::string value_of(int fd, const std::string& key) {
    std::string value(256, '\0');
    ssize_t length = get(fd, key.c_str(), value);
    if (length < 0 && errno == ERANGE) {
        value.resize(kAttributeBytesMax);
        length = get(fd, key.c_str(), value);
    }
    value.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return value;
}

std::vector<std::string> keys_of(int fd) {
    std::string all(256, '\0');
    ssize_t length = list(fd, all);
    if (length < 0 && errno == ERANGE) {
        all.resize(kAttributeBytesMax);
        length = list(fd, all);
    }
    std::vector<std::string> keys;
    for (ssize_t at = 0; at < length; at += static_cast<ssize_t>(keys.back().size()) + 1) {
        keys.emplace_back(all.data() + at);
    }
    return keys;
}

bool is_list(const std::string& key) { return std::find(kLists.begin(), kLists.end(), key) != kLists.end(); }

const std::string* find(const Named& values, const std::string& key) {
    const auto found = std::find_if(values.begin(), values.end(), [&](const auto& one) { return one.first == key; });
    return found == values.end() ? nullptr : &found->second;
}

std::uint16_t half(const std::string& list, std::size_t at) {
    std::uint16_t value = 0;
    std::memcpy(&value, list.data() + at, sizeof(value));
    return value;
}

// The new file has another owning group, so that group gets the rights of all others.
std::string for_another_group(std::string list) {
    std::uint16_t others = 0;
    for (std::size_t at = kListHead; at + kListEntry <= list.size(); at += kListEntry) {
        if (half(list, at) == kOthers) others = half(list, at + 2);
    }
    for (std::size_t at = kListHead; at + kListEntry <= list.size(); at += kListEntry) {
        if (half(list, at) != kOwningGroup) continue;
        const auto rights = static_cast<std::uint16_t>(half(list, at + 2) & others);
        std::memcpy(list.data() + at + 2, &rights, sizeof(rights));
    }
    return list;
}

// Returns whether the new file now has the wanted list, or no list if `wanted` is null.
bool set_list(int fd, const std::string& key, const std::string* wanted) {
    if (wanted == nullptr) return ::fremovexattr(fd, key.c_str()) == 0 || errno == ENODATA;
    if (value_of(fd, key) == *wanted) return true;
    return ::fsetxattr(fd, key.c_str(), wanted->data(), wanted->size(), 0) == 0;
}

// Also removes lists that the new file inherited from its folder.
bool set_lists(const Named& wanted, int fd, bool has_group) {
    bool kept = true;
    for (const std::string& key : keys_of(fd)) {
        if (is_list(key) && find(wanted, key) == nullptr) kept = set_list(fd, key, nullptr) && kept;
    }
    for (const auto& [key, value] : wanted) {
        if (!has_group && !key.starts_with("system.posix_acl_")) return false;
        const std::string fitting = has_group ? value : for_another_group(value);
        kept = set_list(fd, key, &fitting) && kept;
    }
    return kept;
}

bool same_lists(const Named& wanted, int fd) {
    const Attributes now = attributes_of(fd, {});
    return now.lists == wanted;
}

void set_mode(int fd, const std::string& name, mode_t mode) {
    struct stat now {};
    if (::fstat(fd, &now) == 0 && S_ISDIR(now.st_mode)) mode |= now.st_mode & kOfFolders;
    if (::fchmod(fd, mode) != 0) refuse("set the permissions of", name, errno);
}

mode_t without_group(mode_t mode) { return mode & ~(S_IRWXG & ~((mode & S_IRWXO) << 3)); }

void narrow(const Attributes& old, int fd, const std::string& name) {
    const Attributes now = attributes_of(fd, name);
    mode_t mode = old.mode & now.mode;
    if (now.group != old.group) mode = without_group(mode);
    if (!same_lists(old.lists, fd)) mode &= kOwnerOnly;
    if (mode != now.mode) set_mode(fd, name, mode);
}

}  // namespace

Attributes attributes_of(int fd, const std::string& name) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) refuse("fstat", name, errno);
    const mode_t kept = kPermissions | (S_ISDIR(facts.st_mode) ? kOfFolders : 0);
    Attributes found{facts.st_mode & kept, facts.st_uid, facts.st_gid, {}, {}};
    for (const std::string& key : keys_of(fd)) {
        if (is_list(key)) found.lists.emplace_back(key, value_of(fd, key));
        if (key.starts_with("user.")) found.notes.emplace_back(key, value_of(fd, key));
    }
    return found;
}

void carry(const Attributes& old, int fd, const std::string& name, Carry how) {
    if (how == Carry::narrow) {
        narrow(old, fd, name);
        return;
    }
    for (const auto& [key, value] : old.notes) {  // ignores errors: no user's rights depend on these attributes
        static_cast<void>(::fsetxattr(fd, key.c_str(), value.data(), value.size(), 0));
    }
    struct stat now {};
    if (::fstat(fd, &now) != 0) refuse("fstat", name, errno);
    bool has_group = now.st_gid == old.group;
    if (now.st_uid != old.owner || !has_group) {
        const uid_t same_owner = static_cast<uid_t>(-1);
        has_group = ::fchown(fd, old.owner, old.group) == 0 || has_group || ::fchown(fd, same_owner, old.group) == 0;
    }
    mode_t mode = has_group ? old.mode : without_group(old.mode);
    if (!set_lists(old.lists, fd, has_group)) mode &= kOwnerOnly;
    else if (!old.lists.empty() && !has_group) mode = old.mode;  // the group bits of the mode are the mask of the list
    set_mode(fd, name, mode);
}

}  // namespace penstock::os
