// The message of an Error, and the mapping from errno. The message contains operation, file, range, cause and advice,
// in that order.
#include "penstock/error.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock {

const char* to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::ok: return "ok";
        case ErrorCode::invalid_argument: return "invalid_argument";
        case ErrorCode::not_found: return "not_found";
        case ErrorCode::permission_denied: return "permission_denied";
        case ErrorCode::not_a_regular_file: return "not_a_regular_file";
        case ErrorCode::end_of_file: return "end_of_file";
        case ErrorCode::no_space: return "no_space";
        case ErrorCode::out_of_memory: return "out_of_memory";
        case ErrorCode::unsupported: return "unsupported";
        case ErrorCode::timed_out: return "timed_out";
        case ErrorCode::cancelled: return "cancelled";
        case ErrorCode::io_error: return "io_error";
        case ErrorCode::device_error: return "device_error";
        case ErrorCode::read_only: return "read_only";
        case ErrorCode::fallback_refused: return "fallback_refused";
        case ErrorCode::internal: return "internal";
    }
    return "unknown";
}

ErrorCode code_from_errno(int error_number) noexcept {
    switch (error_number) {
        case 0: return ErrorCode::ok;
        case EINVAL: return ErrorCode::invalid_argument;
        case ENOENT:
        case ENOTDIR: return ErrorCode::not_found;
        case EACCES:
        case EPERM: return ErrorCode::permission_denied;
        case EISDIR: return ErrorCode::not_a_regular_file;
        case ENOSPC:
        case EDQUOT:
        case EFBIG: return ErrorCode::no_space;
        case ENOMEM: return ErrorCode::out_of_memory;
        case EOPNOTSUPP:
        case ENOSYS: return ErrorCode::unsupported;
        case ETIMEDOUT:
        case ETIME: return ErrorCode::timed_out;
        case ECANCELED: return ErrorCode::cancelled;
        case EROFS: return ErrorCode::read_only;
        default: return ErrorCode::io_error;
    }
}

std::string ErrorInfo::message() const {
    std::string text = operation.empty() ? "operation" : operation;
    if (!file.empty()) text += " " + file;
    if (length_bytes != 0) {
        text += " at offset " + std::to_string(offset_bytes) + " length " + std::to_string(length_bytes);
    }
    text += ": " + (cause.empty() ? std::string(to_string(code)) : cause);
    if (!advice.empty()) text += "; " + advice;
    return text;
}

ErrorInfo errno_info(std::string operation, std::string file, int error_number) {
    ErrorInfo info;
    info.code = code_from_errno(error_number);
    info.system_code = error_number;
    info.operation = std::move(operation);
    info.file = std::move(file);
    info.cause = std::strerror(error_number);
    return info;
}

Error::Error(ErrorInfo info) : info_(std::move(info)), text_(info_.message()) {}

Error::Error(ErrorCode code, std::string operation, std::string cause, std::string advice) {
    info_.code = code;
    info_.operation = std::move(operation);
    info_.cause = std::move(cause);
    info_.advice = std::move(advice);
    text_ = info_.message();
}

}  // namespace penstock
