// See refusal.hpp.
#include "os/refusal.hpp"

#include <utility>

namespace penstock::os {
namespace {

const char* advice_for(int error_number) {
    switch (error_number) {
        case ENOENT: return "check the path";
        case EACCES:
        case EPERM: return "check the permissions of the file and its directories";
        case EROFS: return "the file system is mounted read-only";
        case ENOSPC:
        case EDQUOT: return "free space on the file system or write less";
        case EFBIG: return "raise the limit on file sizes (ulimit -f), or use a file system for larger files";
        case ENAMETOOLONG: return "give a shorter name";
        case ELOOP: return "its symbolic links lead in a circle: name the file itself";
        case EMFILE: return "raise the limit of open files (ulimit -n)";
        default: return "";
    }
}

}  // namespace

ErrorInfo refusal(const char* operation, const std::string& name, int error_number, const char* advice) {
    ErrorInfo info = errno_info(operation, name, error_number);
    info.advice = *advice != 0 ? advice : advice_for(error_number);
    return info;
}

void refuse(const char* operation, const std::string& name, int error_number, const char* advice) {
    throw Error(refusal(operation, name, error_number, advice));
}

}  // namespace penstock::os
