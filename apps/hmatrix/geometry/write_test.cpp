// Surfaces as files: read back number by number. A failed write leaves the old file.
#include "hmatrix/geometry/write.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hmatrix/geometry/read.hpp"
#include "hmatrix/geometry/read/whole_file.hpp"
#include "hmatrix/geometry/shapes.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

class WriteSurface : public ::testing::Test {
  protected:
    WriteSurface() {
        std::string name = ::testing::TempDir() + "penstock-write-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        for (std::size_t t = 0; t < mesh_.triangles.size(); ++t) charge_.push_back(1.0 / 3 - static_cast<double>(t));
    }
    ~WriteSurface() override { std::filesystem::remove_all(folder_); }

    std::string path(const std::string& leaf) const { return folder_ + "/" + leaf; }
    std::string bytes(const std::string& leaf) const {
        std::ifstream stream(path(leaf), std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
    }

    Mesh mesh_ = sphere(80, 0.5);
    std::vector<double> charge_;
    std::string folder_;
};

template <class Number>
Number big_endian(const std::string& bytes, std::size_t at) {
    char raw[sizeof(Number)];
    for (std::size_t k = 0; k < sizeof raw; ++k) raw[k] = bytes[at + sizeof raw - 1 - k];
    Number value;
    std::memcpy(&value, raw, sizeof raw);
    return value;
}

// The offset after a line of the file. Fails the test if the line is missing.
std::size_t behind(const std::string& bytes, const std::string& line) {
    const std::size_t at = bytes.find(line + "\n");
    EXPECT_NE(at, std::string::npos) << line;
    return at + line.size() + 1;
}

TEST_F(WriteSurface, vtk_holds_points_polygons_and_numbers_big_endian) {
    write_surface(path("a.vtk"), mesh_, {{"charge", charge_}, {"again", charge_}});
    const std::string all = bytes("a.vtk");
    EXPECT_TRUE(all.starts_with("# vtk DataFile Version 3.0\n"));
    const std::size_t points = behind(all, "POINTS 42 double"), faces = behind(all, "POLYGONS 80 320");
    EXPECT_LT(behind(all, "DATASET POLYDATA"), points);
    for (std::size_t v = 0; v < 42; ++v) ASSERT_EQ(big_endian<double>(all, points + 24 * v + 8), mesh_.vertices[v].y);
    EXPECT_EQ(all.substr(points + 42 * 24, 1), "\n");
    for (std::size_t t = 0; t < 80; ++t) {
        ASSERT_EQ(big_endian<std::int32_t>(all, faces + 16 * t), 3);
        ASSERT_EQ(big_endian<std::int32_t>(all, faces + 16 * t + 12), mesh_.triangles[t][2]);
    }
    const std::size_t first = behind(all, "SCALARS charge double 1\nLOOKUP_TABLE default");
    const std::size_t second = behind(all, "SCALARS again double 1\nLOOKUP_TABLE default");
    EXPECT_EQ(behind(all, "CELL_DATA 80") + std::strlen("SCALARS charge double 1\nLOOKUP_TABLE default\n"), first);
    for (std::size_t t = 0; t < 80; ++t) {
        ASSERT_EQ(big_endian<double>(all, first + 8 * t), charge_[t]);
        ASSERT_EQ(big_endian<double>(all, second + 8 * t), charge_[t]);
    }
    EXPECT_EQ(all.size(), second + 80 * 8 + 1);
}

TEST_F(WriteSurface, ply_is_read_back_to_the_last_bit) {
    write_surface(path("a.ply"), mesh_, {{"charge", charge_}});
    const Mesh back = read_mesh(path("a.ply"));
    EXPECT_EQ(back.triangles, mesh_.triangles);
    for (std::size_t v = 0; v < 42; ++v) ASSERT_EQ(back.vertices[v].z, mesh_.vertices[v].z);
    const std::string all = bytes("a.ply");
    EXPECT_NE(all.find("property double charge\n"), std::string::npos);
    double last = 0;
    std::memcpy(&last, all.data() + all.size() - 8, 8);
    EXPECT_EQ(last, charge_.back());
}

TEST_F(WriteSurface, takes_the_place_of_an_older_file_with_ordinary_permissions) {
    std::ofstream(path("a.ply")) << "old";
    write_ply(path("a.ply"), mesh_, {});
    EXPECT_EQ(read_mesh(path("a.ply")).triangles.size(), 80u);
    EXPECT_EQ(files(), 1u);
    std::ofstream(path("plain")) << "new";
    struct stat made {}, plain {};
    ASSERT_EQ(::stat(path("a.ply").c_str(), &made), 0);
    ASSERT_EQ(::stat(path("plain").c_str(), &plain), 0);
    EXPECT_EQ(made.st_mode, plain.st_mode);
}

TEST_F(WriteSurface, what_fails_half_way_leaves_the_old_file_and_nothing_else) {
    const Mesh large = sphere(20'000);
    std::ofstream(path("a.vtk")) << "old";
    struct rlimit before {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = 100'000;
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    std::string said;
    try {
        write_vtk(path("a.vtk"), large, {});
    } catch (const Error& error) {
        said = error.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_NE(said.find(path("a.vtk")), std::string::npos) << said;
    EXPECT_EQ(bytes("a.vtk"), "old");
    EXPECT_EQ(files(), 1u);
    write_vtk(path("a.vtk"), large, {});
    EXPECT_GT(bytes("a.vtk").size(), 500'000u) << "the same without the limit";
}

TEST_F(WriteSurface, a_full_disk_is_named_as_such) {
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0) GTEST_SKIP() << "there is no /dev/full";
    try {
        write_all(full, "bytes", "surface.vtk");
        ADD_FAILURE() << "written";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_space);
        EXPECT_EQ(error.info().file, "surface.vtk");
    }
    ::close(full);
}

TEST_F(WriteSurface, a_file_not_committed_was_never_there) {
    {
        WholeFile file(path("a.ply"));
        file.append("half");
        EXPECT_FALSE(std::filesystem::exists(path("a.ply")));
    }
    EXPECT_EQ(files(), 0u);
}

TEST_F(WriteSurface, wrong_numbers_names_and_endings_are_refused_before_anything_is_written) {
    charge_.pop_back();
    EXPECT_THROW(write_vtk(path("a.vtk"), mesh_, {{"charge", charge_}}), Error);
    charge_.push_back(0);
    EXPECT_THROW(write_ply(path("a.ply"), mesh_, {{"two words", charge_}}), Error);
    EXPECT_THROW(write_ply(path("a.ply"), mesh_, {{"", charge_}}), Error);
    EXPECT_THROW(write_surface(path("a.gif"), mesh_, {}), Error);
    EXPECT_EQ(files(), 0u);
    try {
        write_ply(path("none/a.ply"), mesh_, {});
        FAIL() << "written";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
    }
}

}  // namespace
}  // namespace penstock::hmatrix
