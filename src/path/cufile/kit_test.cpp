// The cuFile paths under the Path kit: everywhere with the stand-in library on the emulated device, and with the real
// library where there is one and a GPU.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "conformance/path_suite.hpp"
#include "path/cufile/cufile.hpp"
#include "path/make.hpp"
#include "penstock/device.hpp"

namespace penstock::conformance {
namespace {

std::uint64_t next_file_id() {
    static std::atomic<std::uint64_t> id{5'000'000};
    return ++id;
}

class CuFileRig final : public Rig {
  public:
    CuFileRig(PathKind kind, std::shared_ptr<Device> device, const path::CuFileOptions& options)
        : kind_(kind),
          device_(std::move(device)),
          stream_(device_->make_stream()),
          cufile_(path::open_cufile(options)) {
        device_->enter_thread();
    }
    ~CuFileRig() override {
        for (const FileHandle& file : files_) {
            cufile_->forget(file.id);
            ::close(file.buffered_fd);
            ::unlink(file.name.c_str());
        }
    }

    std::unique_ptr<Path> path(std::uint32_t depth) override {
        PathOptions options;
        options.depth = depth;
        options.device = device_.get();
        options.stream = stream_.get();
        options.cufile = cufile_;
        return path::make_cufile_path(kind_, options);
    }

    FileHandle make_file(const Bytes& contents, bool writable) override {
        FileHandle file;
        file.id = next_file_id();
        file.name = testing::TempDir() + "/penstock_gds_XXXXXX";
        file.buffered_fd = ::mkstemp(file.name.data());
        file.writable = writable;
        files_.push_back(file);
        EXPECT_EQ(::write(file.buffered_fd, contents.data(), contents.size()), static_cast<ssize_t>(contents.size()));
        ::fsync(file.buffered_fd);
        return file;
    }

    FileHandle closed_file() override {
        FileHandle file;
        file.id = next_file_id();
        file.name = "closed";
        file.writable = true;
        return file;
    }

    Bytes contents(const FileHandle& file) override {
        Bytes out(static_cast<std::size_t>(::lseek(file.buffered_fd, 0, SEEK_END)));
        EXPECT_EQ(::pread(file.buffered_fd, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
        return out;
    }

    std::shared_ptr<std::byte> allocate(std::uint64_t bytes) override {
        auto* memory = static_cast<std::byte*>(device_->allocate(MemoryKind::device, bytes));
        return {memory, [device = device_](std::byte* owned) { device->release(MemoryKind::device, owned); }};
    }
    void store(std::byte* memory, std::span<const std::byte> bytes) override {
        stream_->copy(CopyDirection::to_device, memory, bytes.data(), bytes.size());
        stream_->synchronize();
    }
    Bytes load(const std::byte* memory, std::uint64_t bytes) override {
        Bytes out(bytes);
        stream_->copy(CopyDirection::to_host, out.data(), memory, bytes);
        stream_->synchronize();
        return out;
    }

  private:
    PathKind kind_;
    std::shared_ptr<Device> device_;
    std::unique_ptr<Stream> stream_;
    std::shared_ptr<path::CuFile> cufile_;
    std::vector<FileHandle> files_;
};

path::CuFileOptions stand_in(PathKind kind) {
    path::CuFileOptions options;
    options.force_compat = kind == PathKind::gds_compat;
    options.libraries.library = FAKE_CUFILE;
    options.libraries.cuda_library = FAKE_LIBCUDA;
    options.probe_program = CUFILE_PROBE;
    return options;
}

PathCase over_stand_in(const std::string& name, PathKind kind) {
    return {name,
            [kind](std::string&) { return std::make_unique<CuFileRig>(kind, make_host_device(), stand_in(kind)); }};
}

// Finds once whether the real library accepts files of the tests' folder.
const path::CuFileStatus& real_status() {
    static const path::CuFileStatus status = [] {
        path::CuFileOptions options;
        options.probe_program = CUFILE_PROBE;
        std::string name = testing::TempDir() + "/penstock_gds_probe_XXXXXX";
        const int fd = ::mkstemp(name.data());
        const std::string content(65536, 'p');
        EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
        ::close(fd);
        path::CuFileStatus found = path::probe_cufile(options, name);
        ::unlink(name.c_str());
        return found;
    }();
    return status;
}

PathCase over_the_real_library(const std::string& name, PathKind kind) {
    return {
        name, [kind](std::string& why) -> std::unique_ptr<Rig> {
            if (cuda_device_count(why) == 0) return nullptr;
            if (!real_status().usable || (kind == PathKind::gds && real_status().mode != path::CuFileMode::native)) {
                why = real_status().cause + "; " + real_status().advice;
                return nullptr;
            }
            path::CuFileOptions options;
            options.probe_program = CUFILE_PROBE;
            options.force_compat = kind == PathKind::gds_compat;
            return std::make_unique<CuFileRig>(kind, make_cuda_device(0), options);
        }};
}

INSTANTIATE_TEST_SUITE_P(StandIn, PathSuite,
                         path_values({over_stand_in("gds_compat", PathKind::gds_compat),
                                      over_stand_in("gds_batch", PathKind::gds_batch),
                                      over_stand_in("gds_stream", PathKind::gds_stream)}),
                         path_test_name);

INSTANTIATE_TEST_SUITE_P(Real, PathSuite,
                         path_values({over_the_real_library("gds", PathKind::gds),
                                      over_the_real_library("gds_compat", PathKind::gds_compat),
                                      over_the_real_library("gds_batch", PathKind::gds_batch),
                                      over_the_real_library("gds_stream", PathKind::gds_stream)}),
                         path_test_name);

// The negative control of every claim of "direct": cuFile itself counts what its compatibility mode moves as such.
TEST(RealCuFile, counts_what_its_compatibility_mode_moves) {
    std::string why;
    if (cuda_device_count(why) == 0) GTEST_SKIP() << why;
    if (!real_status().usable || !real_status().counters || real_status().mode == path::CuFileMode::native) {
        GTEST_SKIP() << real_status().cause << " " << path::to_string(real_status().mode);
    }
    path::CuFileOptions options;
    options.probe_program = CUFILE_PROBE;
    options.force_compat = true;
    const auto cufile = path::open_cufile(options);
    CuFileRig rig(PathKind::gds_compat, make_cuda_device(0), options);
    const auto before = cufile->counters();
    EXPECT_EQ(reads_what_is_there(rig), "");
    const auto after = cufile->counters();
    ASSERT_TRUE(before && after);
    EXPECT_GT(after->posix_reads, before->posix_reads);
    EXPECT_EQ(after->nvfs_reads + after->p2p_reads, before->nvfs_reads + before->p2p_reads);
}

}  // namespace
}  // namespace penstock::conformance
