// See refusal.hpp.
#include "os/refusal.hpp"

#include <utility>

namespace penstock::os {

const char* advice_for(int error_number) {
    switch (error_number) {
        case ENOENT: return "check the path";
        case ENOTDIR: return "a part of the path is a file, not a directory: check the path";
        case EISDIR: return "give the name of a file";
        case EACCES:
        case EPERM: return "check the permissions of the file and its directories";
        case EROFS: return "remount the file system read-write, or name a file on another one";
        case ENOSPC:
        case EDQUOT: return "free space on the file system or write less";
        case EFBIG: return "raise the limit on file sizes (ulimit -f), or use a file system for larger files";
        case ENAMETOOLONG: return "give a shorter name";
        case ELOOP: return "its symbolic links lead in a circle: name the file itself";
        case ENFILE: return "close files of other programs, or raise fs.file-max with sysctl";
        case ETXTBSY: return "it is a program that runs: write another file";
        case ESTALE: return "it was replaced or removed on its server: open it again";
        case EIO: return "check the disk, or the server that holds the file";
        case EMFILE: return "raise the limit of open files (ulimit -n)";
        default: return "";
    }
}

bool is_out_of_descriptors(int error_number) noexcept { return error_number == EMFILE || error_number == ENFILE; }

ErrorInfo refusal(const char* operation, const std::string& name, int error_number, const char* advice) {
    ErrorInfo info = errno_info(operation, name, error_number);
    info.advice = *advice != 0 ? advice : advice_for(error_number);
    return info;
}

void refuse(const char* operation, const std::string& name, int error_number, const char* advice) {
    throw Error(refusal(operation, name, error_number, advice));
}

}  // namespace penstock::os
