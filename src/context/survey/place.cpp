// The survey of a place: its file system, its room, and O_DIRECT by a real file there.
//
// For a directory the trial is an unnamed file where the file system has those, else a temporary one that is unlinked
// at once, so that nothing is left even if the process dies.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "context/survey/item.hpp"
#include "os/fd.hpp"
#include "os/file/direct.hpp"
#include "penstock/error.hpp"
#include "penstock/profile.hpp"

namespace penstock::context {
namespace {

constexpr std::size_t kTrialBytes = 64 * 1024;  // a multiple of every alignment that is tried
constexpr std::uint64_t kLittleSpace = 4'000'000'000;

bool is_directory(const SurveyPlace& place) { return place.facts.type == os::FileType::directory; }

// An open file at the place that holds kTrialBytes or more, or the user's own file; empty with errno set on failure.
os::UniqueFd trial_file(const SurveyPlace& place) {
    if (!is_directory(place)) return os::UniqueFd(::open(place.path.c_str(), O_RDONLY | O_CLOEXEC));
    os::UniqueFd fd(::open(place.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!fd) {
        std::string name = place.path + "/.penstock-survey-XXXXXX";
        fd = os::UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
        if (fd) ::unlink(name.c_str());
    }
    if (!fd) return fd;
    const std::vector<char> zeros(kTrialBytes);
    if (::pwrite(fd.get(), zeros.data(), zeros.size(), 0) != static_cast<ssize_t>(zeros.size())) fd.reset();
    return fd;
}

SurveyItem o_direct_item(const SurveyPlace& place) {
    const os::UniqueFd fd = trial_file(place);
    if (!fd) {
        return {"o_direct", SurveyState::partly, std::string("not tried: ") + std::strerror(errno),
                "name a file you may read or a directory you may write"};
    }
    const os::DirectFile direct = os::open_direct(os::real_system(), fd.get());
    if (!direct.facts.usable) {
        return {"o_direct", SurveyState::no, direct.facts.cause, "a file system on a disk, such as ext4 or XFS"};
    }
    std::string detail = "offsets aligned to " + std::to_string(direct.facts.offset_alignment) + ", memory to " +
                         std::to_string(direct.facts.memory_alignment) + " bytes (" + direct.facts.source + ")";
    const std::string& unknown =
        direct.facts.unknown_cause.empty() ? direct.facts.write_unknown_cause : direct.facts.unknown_cause;
    if (unknown.empty()) return {"o_direct", SurveyState::yes, std::move(detail), ""};
    return {"o_direct", SurveyState::partly, detail + "; whether bytes go past the page cache is unknown: " + unknown,
            "a file system whose kernel promises it, such as ext4 or XFS; strict transfers are refused here"};
}

SurveyItem file_system_item(const SurveyPlace& place) {
    std::string detail = place.facts.file_system;
    if (!place.facts.mount_point.empty()) detail += " mounted on " + place.facts.mount_point;
    const std::string options = public_mount_options(place.facts.mount_options);
    if (!options.empty()) detail += " (" + options + ")";
    return {"file_system", SurveyState::yes, std::move(detail), ""};
}

SurveyItem free_space_item(const SurveyPlace& place) {
    struct statvfs status {};
    if (::statvfs(place.path.c_str(), &status) != 0) {
        return {"free_space", SurveyState::partly, std::strerror(errno), "a file system that answers statvfs"};
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
    const std::string detail = decimal_bytes(bytes) + " free";
    if (bytes >= kLittleSpace) return {"free_space", SurveyState::yes, detail, ""};
    return {"free_space", bytes == 0 ? SurveyState::no : SurveyState::partly, detail,
            "remove files, or use a place with at least " + decimal_bytes(kLittleSpace) + " for measurements"};
}

SurveyItem writable_item(const SurveyPlace& place) {
    if (::access(place.path.c_str(), W_OK) == 0) return {"writable", SurveyState::yes, "you may write here", ""};
    const int error = errno;
    return {"writable", SurveyState::no, std::strerror(error),
            error == EROFS ? "remount the file system read-write" : "ask its owner for write permission"};
}

}  // namespace

SurveyPlace survey_place(const std::string& path, const std::string& root) {
    const os::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!fd) {
        ErrorInfo info = errno_info("survey", path, errno);
        info.advice = "name a file or a directory that exists";
        throw Error(std::move(info));
    }
    SurveyPlace place{path, os::file_stat(fd.get(), path), false};
    if (place.facts.type != os::FileType::regular && place.facts.type != os::FileType::directory) {
        ErrorInfo info;
        info.code = ErrorCode::not_a_regular_file;
        info.operation = "survey";
        info.file = path;
        info.cause = std::string("it is a ") + os::to_string(place.facts.type);
        info.advice = "name a regular file or a directory";
        throw Error(std::move(info));
    }
    std::error_code ignored;
    const auto device = std::filesystem::canonical(root + "/sys/dev/block/" +
        std::to_string(place.facts.device_major) + ":" + std::to_string(place.facts.device_minor), ignored);
    place.nvme = device.string().find("/nvme") != std::string::npos;
    return place;
}

std::vector<SurveyItem> place_items(const SurveyPlace& place) {
    std::vector<SurveyItem> items = server_items(place);
    items.insert(items.begin(),
                 {file_system_item(place), free_space_item(place), writable_item(place), o_direct_item(place)});
    return items;
}

}  // namespace penstock::context
