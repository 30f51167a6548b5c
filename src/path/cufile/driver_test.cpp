// A process has one cuFile driver: asking for gds-compat is refused when the driver may move bytes natively.
#include <gtest/gtest.h>

#include <cstdlib>

#include "path/cufile/cufile.hpp"
#include "path/make.hpp"
#include "penstock/device.hpp"

namespace penstock::path {
namespace {

CuFileOptions stand_in() {
    CuFileOptions options;
    options.libraries.library = FAKE_CUFILE;
    options.libraries.cuda_library = FAKE_LIBCUDA;
    options.probe_program = CUFILE_PROBE;
    return options;
}

std::unique_ptr<Path> make_compat(const std::shared_ptr<CuFile>& cufile) {
    const auto device = make_host_device();
    PathOptions options;
    options.device = device.get();
    options.cufile = cufile;
    return make_cufile_path(PathKind::gds_compat, options);
}

TEST(CuFileDriver, gds_compat_after_gds_is_refused_where_its_bytes_would_move_natively) {
    CuFileOptions forced = stand_in();
    forced.force_compat = true;
    auto unforced = open_cufile(stand_in());
    EXPECT_EQ(open_cufile(forced), unforced) << "forcing makes no difference where nothing native is there";
    EXPECT_NE(make_compat(unforced), nullptr);
    unforced.reset();
    ::setenv("FAKE_CUFILE_BEHAVIOUR", "native", 1);
    unforced = open_cufile(stand_in());
    const auto cause = [](const auto& call) -> std::string {
        try {
            call();
        } catch (const Error& error) {
            EXPECT_EQ(error.info().code, ErrorCode::unsupported);
            return error.info().cause;
        }
        return "no error";
    };
    EXPECT_NE(cause([&] { open_cufile(forced); }).find("open in native mode in this process"), std::string::npos);
    EXPECT_NE(cause([&] { make_compat(unforced); }).find("open in native mode"), std::string::npos);
    unforced.reset();
    EXPECT_NE(open_cufile(forced), nullptr) << "the driver was closed: the next one can be forced";
    ::unsetenv("FAKE_CUFILE_BEHAVIOUR");
}

}  // namespace
}  // namespace penstock::path
