// What can go wrong, in one shape.
//
// Opening, registering and configuring throw `Error`; moving data returns a value that holds an `ErrorInfo`. Both say
// the operation, the file, the byte range, the cause and, where there is one, what to do next. Nothing else in Penstock
// reports failure, and nothing is ever printed by the library.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace penstock {

// Values are part of the C ABI (penstock.h): never renumber, only append.
enum class ErrorCode : int {
    ok = 0,
    invalid_argument = 1,
    not_found = 2,
    permission_denied = 3,
    not_a_regular_file = 4,
    end_of_file = 5,  // the file ended before the range did; bytes that came are valid
    no_space = 6,
    out_of_memory = 7,
    unsupported = 8,  // this machine, build or file cannot do it; the cause says why
    timed_out = 9,
    cancelled = 10,
    io_error = 11,
    device_error = 12,
    read_only = 13,
    fallback_refused = 14,  // strict transfer that would have taken another path than asked
    internal = 15,
};

// Lower-case words, e.g. "no_space".
const char* to_string(ErrorCode code) noexcept;

// The code that fits an errno value; io_error when none fits better.
ErrorCode code_from_errno(int error_number) noexcept;

struct ErrorInfo {
    ErrorCode code = ErrorCode::ok;
    int system_code = 0;       // errno, CUresult/cudaError_t or cuFile code; 0 when there is none
    std::string operation;     // "open", "read", "register", ...
    std::string file;          // path as the user gave it; empty when no file is concerned
    std::uint64_t offset_bytes = 0;
    std::uint64_t length_bytes = 0;  // 0: no range is concerned
    std::string cause;
    std::string advice;        // what to do next; may be empty

    bool ok() const noexcept { return code == ErrorCode::ok; }
    // One line: "read data.bin [4096, +1048576): Input/output error; check the disk".
    std::string message() const;
};

// An ErrorInfo for a failed system call.
ErrorInfo errno_info(std::string operation, std::string file, int error_number);

class Error : public std::exception {
  public:
    explicit Error(ErrorInfo info);
    Error(ErrorCode code, std::string operation, std::string cause, std::string advice = {});
    const char* what() const noexcept override { return text_.c_str(); }
    const ErrorInfo& info() const noexcept { return info_; }
    ErrorCode code() const noexcept { return info_.code; }

  private:
    ErrorInfo info_;
    std::string text_;
};

}  // namespace penstock
