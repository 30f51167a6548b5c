// The one-line message of an error contains operation, file, range, cause and advice.
#include "penstock/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>

#include "base/current_error.hpp"
#include "base/in_file.hpp"

namespace penstock {
namespace {

TEST(ErrorInfo, message_names_everything_it_knows) {
    ErrorInfo info = errno_info("read", "/data/x", EIO);
    info.offset_bytes = 4096;
    info.length_bytes = 512;
    info.advice = "check the disk";
    EXPECT_EQ(info.message(), "read /data/x at offset 4096 length 512: Input/output error; check the disk");
    EXPECT_EQ(info.code, ErrorCode::io_error);
    EXPECT_EQ(info.system_code, EIO);
}

TEST(InFile, names_the_file_of_errors_that_name_none) {
    const auto message_of = [](Error error) {
        try {
            base::in_file("run.nc", [&] { throw error; });
        } catch (const Error& caught) {
            return std::string(caught.what());
        }
        return std::string();
    };
    EXPECT_EQ(message_of({ErrorCode::no_space, "put", "too large", "less"}), "put run.nc: too large; less");
    EXPECT_EQ(message_of(Error(errno_info("open", "other.nc", ENOENT))), "open other.nc: No such file or directory");
    EXPECT_EQ(base::in_file("run.nc", [] { return 7; }), 7);
}

TEST(ErrorInfo, errno_maps_to_the_code_users_handle) {
    EXPECT_EQ(code_from_errno(ENOSPC), ErrorCode::no_space);
    EXPECT_EQ(code_from_errno(EROFS), ErrorCode::read_only);
    EXPECT_EQ(code_from_errno(ENOENT), ErrorCode::not_found);
    EXPECT_EQ(code_from_errno(EACCES), ErrorCode::permission_denied);
    EXPECT_EQ(code_from_errno(ENXIO), ErrorCode::io_error);
}

TEST(Error, what_is_the_message) {
    const Error error(ErrorCode::unsupported, "make device", "no driver", "install one");
    EXPECT_STREQ(error.what(), "make device: no driver; install one");
}

template <typename Thrown>
ErrorInfo info_of(const Thrown& thrown) {
    try {
        throw thrown;
    } catch (...) {
        return info_of_current_exception("measure load");
    }
}

TEST(CurrentException, keeps_an_errors_own_words_and_finds_some_for_all_others) {
    const ErrorInfo own = info_of(Error(ErrorCode::no_space, "write", "full", "free some"));
    EXPECT_EQ(own.message(), "write: full; free some");
    EXPECT_EQ(own.code, ErrorCode::no_space);
    EXPECT_EQ(info_of(std::bad_alloc()).code, ErrorCode::out_of_memory);
    EXPECT_EQ(info_of(std::runtime_error("odd")).message(), "measure load: odd");
    EXPECT_EQ(info_of(7).message(), "measure load: something that is no exception was thrown");
    EXPECT_EQ(info_of(7).code, ErrorCode::internal);
}

}  // namespace
}  // namespace penstock
