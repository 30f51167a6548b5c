// cuFile through a stand-in library: what the probe finds, one driver in a process, and the contract of the paths.
#include "path/cufile/cufile.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "path/cufile/cufile_rig.hpp"
#include "path/cufile/probe.hpp"
#include "path/make.hpp"
#include "penstock/device.hpp"
#include "penstock/stamp.hpp"

namespace penstock::path {
namespace {

constexpr std::uint64_t kFileBytes = 1 << 20;

int ask_fake(const char* name) {
    void* fake = ::dlopen(FAKE_CUFILE, RTLD_NOW | RTLD_NOLOAD);
    return fake == nullptr ? -1 : reinterpret_cast<int (*)()>(::dlsym(fake, name))();
}

CuFileOptions fake_options() {
    CuFileOptions options;
    options.libraries.library = FAKE_CUFILE;
    options.libraries.cuda_library = FAKE_LIBCUDA;
    options.probe_program = CUFILE_PROBE;
    return options;
}

class CuFileTest : public testing::Test {
  protected:
    void SetUp() override {
        name_ = testing::TempDir() + "penstock_cufile_XXXXXX";
        const int fd = ::mkstemp(name_.data());
        ASSERT_GE(fd, 0);
        std::vector<unsigned char> content(kFileBytes);
        for (std::uint64_t i = 0; i < kFileBytes; ++i) content[i] = stamp_byte(5, i);
        ASSERT_EQ(::write(fd, content.data(), kFileBytes), static_cast<ssize_t>(kFileBytes));
        file_.id = next_id();
        file_.name = name_;
        file_.buffered_fd = fd;
        file_.writable = true;
    }
    void TearDown() override {
        ::close(file_.buffered_fd);
        ::unlink(name_.c_str());
        device_->release(MemoryKind::device, memory_);
    }

    static std::uint64_t next_id() {
        static std::uint64_t id = 1000;
        return ++id;
    }

    std::unique_ptr<Path> make(PathKind kind, std::uint32_t depth = 8) {
        cufile_ = open_cufile(fake_options());
        PathOptions options;
        options.depth = depth;
        options.device = device_.get();
        options.stream = stream_.get();
        options.cufile = cufile_;
        return make_cufile_path(kind, options);
    }

    Operation operation(Direction direction, std::uint64_t offset, std::uint64_t bytes, std::uint64_t tag) {
        return {direction, &file_, offset, memory_ + offset, bytes, tag};
    }

    // Moves the whole file in pieces, as many at a time as the path accepts. Returns completions in order of arrival.
    std::vector<Completion> move_all(Path& path, Direction direction, std::uint64_t piece_bytes) {
        std::vector<Completion> all;
        const std::uint64_t pieces = kFileBytes / piece_bytes;
        std::vector<Operation> operations;
        for (std::uint64_t i = 0; i < pieces; ++i) {
            operations.push_back(operation(direction, i * piece_bytes, piece_bytes, i));
        }
        for (std::size_t sent = 0; all.size() < pieces;) {
            sent += path.submit(std::span(operations).subspan(sent));
            Completion got[4];
            const std::size_t count = path.reap(got, Deadline::after(std::chrono::seconds(10)));
            if (count == 0) return all;
            all.insert(all.end(), got, got + count);
        }
        return all;
    }

    std::string name_;
    FileHandle file_;
    std::shared_ptr<Device> device_ = make_host_device();
    std::unique_ptr<Stream> stream_ = device_->make_stream();
    unsigned char* memory_ = static_cast<unsigned char*>(device_->allocate(MemoryKind::device, kFileBytes));
    std::shared_ptr<CuFile> cufile_;
};

TEST_F(CuFileTest, the_probe_says_compat_where_nothing_native_is_there) {
    const CuFileStatus status = probe_cufile(fake_options(), name_);
    EXPECT_TRUE(status.usable) << status.cause;
    EXPECT_EQ(status.mode, CuFileMode::compat);
    EXPECT_FALSE(status.cause.empty());
    EXPECT_EQ(status.version, 1150);
    EXPECT_EQ(status.version_text(), "libcufile 1.15");
    EXPECT_TRUE(status.counters);
    EXPECT_EQ(status.pool_slabs, 64u);
    EXPECT_NE(status.library.find("fake_cufile"), std::string::npos);
}

TEST_F(CuFileTest, native_is_only_said_when_the_counters_show_it) {
    const Behaviour native("native");
    EXPECT_EQ(probe_cufile(fake_options()).mode, CuFileMode::compat) << "no file was read: nothing is shown";
    EXPECT_EQ(probe_cufile(fake_options(), name_).mode, CuFileMode::native);
    CuFileOptions forced = fake_options();
    forced.force_compat = true;
    EXPECT_EQ(probe_cufile(forced, name_).mode, CuFileMode::compat);
}

TEST_F(CuFileTest, counters_are_found_in_both_layouts) {
    const Behaviour native("native");
    for (const char* version : {"1150", "1180", "1190", "1200"}) {
        const Variable set("FAKE_CUFILE_VERSION", version);
        EXPECT_EQ(probe_cufile(fake_options(), name_).mode, CuFileMode::native) << version;
    }
}

TEST_F(CuFileTest, a_driver_that_hangs_is_killed_at_the_limit) {
    const Behaviour hang("hang_open");
    CuFileOptions options = fake_options();
    options.probe_limit = std::chrono::milliseconds(300);
    const auto start = Clock::now();
    const CuFileStatus status = probe_cufile(options);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
    EXPECT_FALSE(status.usable);
    EXPECT_NE(status.cause.find("driver_open within 300 ms"), std::string::npos) << status.cause;
    EXPECT_THROW(open_cufile(options), Error);
}

TEST_F(CuFileTest, a_probe_that_is_killed_leaves_no_child_behind) {
    const Behaviour hang("hang_open");
    const ProbeRun run = run_probe(CUFILE_PROBE, {"--library", FAKE_CUFILE, "--cuda-library", FAKE_LIBCUDA},
                                   std::chrono::milliseconds(200));
    EXPECT_TRUE(run.timed_out);
    EXPECT_EQ(run.signal, 9);
}

TEST_F(CuFileTest, a_driver_that_dies_or_refuses_is_unusable_with_the_cause) {
    for (const auto& [words, cause] : {std::pair{"crash_open", "code 7"}, std::pair{"open_5033", "5033"}}) {
        const Behaviour behaviour(words);
        try {
            open_cufile(fake_options());
            FAIL() << words;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::unsupported);
            EXPECT_NE(error.info().cause.find(cause), std::string::npos) << error.what();
        }
    }
}

TEST_F(CuFileTest, statistics_that_crash_cost_the_counters_and_nothing_else) {
    const Behaviour crash("crash_stats");
    const CuFileStatus status = probe_cufile(fake_options(), name_);
    EXPECT_TRUE(status.usable) << status.cause;
    EXPECT_FALSE(status.counters);
    ASSERT_FALSE(status.notes.empty());
    EXPECT_NE(status.notes.back().find("stats_l3"), std::string::npos);
    EXPECT_FALSE(open_cufile(fake_options())->counters()) << "this would have crashed the process";
}

TEST_F(CuFileTest, a_refused_file_brings_the_advice_about_udev) {
    const Behaviour refuse("refuse_files");
    const CuFileStatus status = probe_cufile(fake_options(), name_);
    EXPECT_FALSE(status.usable);
    EXPECT_NE(status.cause.find("5027"), std::string::npos) << status.cause;
    EXPECT_NE(status.advice.find("/run/udev/data/b"), std::string::npos) << status.advice;
}

TEST_F(CuFileTest, wrong_bytes_from_the_library_are_noticed_by_the_probe) {
    const Behaviour wrong("wrong_bytes");
    const CuFileStatus status = probe_cufile(fake_options(), name_);
    EXPECT_FALSE(status.usable);
    EXPECT_NE(status.cause.find("other bytes"), std::string::npos) << status.cause;
}

TEST_F(CuFileTest, a_machine_without_driver_or_library_gets_a_cause) {
    CuFileOptions no_cuda = fake_options(), no_cufile = fake_options(), no_probe = fake_options();
    no_cuda.libraries.cuda_library = "libcuda_that_is_not_there.so.1";
    no_cufile.libraries.library = "/nowhere/libcufile.so.0";
    no_probe.probe_program = "/nowhere/penstock-cufile-probe";
    for (const CuFileOptions& options : {no_cuda, no_cufile, no_probe}) {
        const CuFileStatus status = probe_cufile(options);
        EXPECT_FALSE(status.usable);
        EXPECT_FALSE(status.cause.empty());
    }
    EXPECT_NE(probe_cufile(no_cuda).advice.find("install the NVIDIA driver"), std::string::npos);
    EXPECT_NE(probe_cufile(no_cufile).advice.find("gds-tools"), std::string::npos);
    const Variable broken("FAKE_CUDA_NO_DEVICE", "1");
    EXPECT_NE(probe_cufile(fake_options()).cause.find("cuInit failed: CUresult 100"), std::string::npos);
}

TEST_F(CuFileTest, an_old_library_works_and_says_what_it_cannot_be_told) {
    CuFileOptions options = fake_options();
    options.libraries.library = FAKE_CUFILE_OLD;
    options.force_compat = true;
    const CuFileStatus status = probe_cufile(options, name_);
    EXPECT_TRUE(status.usable) << status.cause;
    EXPECT_FALSE(status.counters);
    ASSERT_FALSE(status.notes.empty());
    EXPECT_NE(status.notes.front().find("1.14"), std::string::npos);
}

TEST_F(CuFileTest, a_process_has_one_driver_and_its_callers_share_it) {
    const auto one = open_cufile(fake_options());
    EXPECT_EQ(open_cufile(fake_options()), one);
    CuFileOptions other = fake_options();
    other.libraries.library = FAKE_CUFILE_OLD;
    EXPECT_THROW(open_cufile(other), Error) << "other settings cannot take effect";
}

TEST_F(CuFileTest, gds_after_gds_compat_is_refused_for_what_is_true) {
    CuFileOptions forced = fake_options();
    forced.force_compat = true;
    const auto cause = [&](const std::shared_ptr<CuFile>& compat) -> std::string {
        try {
            PathOptions options;
            options.cufile = compat;
            make_cufile_path(PathKind::gds, options);
        } catch (const Error& error) {
            return error.info().cause;
        }
        return "made";
    };
    auto compat = open_cufile(forced);
    EXPECT_EQ(open_cufile(fake_options()), compat) << "what was forced makes no difference here";
    EXPECT_NE(cause(compat).find("compatibility mode: neither nvidia-fs nor PCI"), std::string::npos) << cause(compat);
    compat.reset();
    const Behaviour native("native");
    compat = open_cufile(forced);
    EXPECT_THROW(open_cufile(fake_options()), Error) << "it would change what the bytes do";
    EXPECT_NE(cause(compat).find("opened in compatibility mode before, for gds-compat"), std::string::npos);
}

TEST_F(CuFileTest, a_file_is_registered_once_and_forgotten_on_request) {
    auto path = make(PathKind::gds_compat);
    const int before = ask_fake("fake_cufile_registrations");
    EXPECT_EQ(move_all(*path, Direction::read, 65536).size(), 16u);
    EXPECT_EQ(ask_fake("fake_cufile_registrations"), before + 1);
    EXPECT_EQ(ask_fake("fake_cufile_live_handles"), 1);
    cufile_->forget(file_.id);
    EXPECT_EQ(ask_fake("fake_cufile_live_handles"), 0);
    cufile_->forget(file_.id);
}

TEST_F(CuFileTest, every_path_reads_and_writes_what_the_file_holds) {
    for (const PathKind kind : {PathKind::gds_compat, PathKind::gds_batch, PathKind::gds_stream}) {
        auto path = make(kind);
        EXPECT_EQ(path->capabilities().memory, OperationMemory::device);
        std::memset(memory_, 0, kFileBytes);
        const auto reads = move_all(*path, Direction::read, 32768);
        ASSERT_EQ(reads.size(), 32u) << to_string(kind);
        for (const Completion& done : reads) EXPECT_EQ(done.bytes, 32768u) << to_string(kind);
        EXPECT_EQ(stream_->verify_stamp(memory_, kFileBytes, 0, 5).bad_bytes, 0u) << to_string(kind);
        stream_->stamp(memory_, kFileBytes, 0, 6);
        stream_->synchronize();
        ASSERT_EQ(move_all(*path, Direction::write, 32768).size(), 32u);
        std::vector<char> content(kFileBytes);
        ASSERT_EQ(::pread(file_.buffered_fd, content.data(), kFileBytes, 0), static_cast<ssize_t>(kFileBytes));
        EXPECT_EQ(std::memcmp(content.data(), memory_, kFileBytes), 0) << to_string(kind);
        stream_->stamp(memory_, kFileBytes, 0, 5);
        stream_->synchronize();
        ASSERT_EQ(move_all(*path, Direction::write, 32768).size(), 32u);
        cufile_->forget(file_.id);
    }
}

TEST_F(CuFileTest, wrong_bytes_fail_the_comparison_above) {
    auto path = make(PathKind::gds_compat);
    const Behaviour wrong("wrong_bytes");
    move_all(*path, Direction::read, 32768);
    EXPECT_GT(stream_->verify_stamp(memory_, kFileBytes, 0, 5).bad_bytes, 0u);
}

TEST_F(CuFileTest, short_counts_and_the_end_of_the_file_are_reported_not_hidden) {
    for (const PathKind kind : {PathKind::gds_compat, PathKind::gds_batch, PathKind::gds_stream}) {
        auto path = make(kind);
        const auto once = [&](const Operation& asked) {
            EXPECT_EQ(path->submit({&asked, 1}), 1u);
            Completion done;
            EXPECT_EQ(path->reap({&done, 1}, Deadline::after(std::chrono::seconds(10))), 1u);
            EXPECT_EQ(done.tag, asked.tag);
            return done;
        };
        {
            const Behaviour shorter("short_reads");
            EXPECT_EQ(once(operation(Direction::read, 0, 4096, 1)).bytes, 2048u) << to_string(kind);
        }
        Operation beyond = operation(Direction::read, 0, 4096, 2);
        beyond.offset_bytes = kFileBytes;
        const Completion end = once(beyond);
        EXPECT_EQ(end.status, ErrorCode::ok);
        EXPECT_EQ(end.bytes, 0u);
        cufile_->forget(file_.id);
    }
}

TEST_F(CuFileTest, failures_keep_cufiles_code) {
    for (const PathKind kind : {PathKind::gds_compat, PathKind::gds_batch, PathKind::gds_stream}) {
        auto path = make(kind);
        const Behaviour refuse("refuse_files");
        const auto done = move_all(*path, Direction::read, kFileBytes);
        ASSERT_EQ(done.size(), 1u);
        EXPECT_EQ(done[0].status, ErrorCode::unsupported) << to_string(kind);
        EXPECT_EQ(done[0].system_code, 5027) << to_string(kind);
    }
}

TEST_F(CuFileTest, gds_refuses_compatibility_mode_with_the_cause) {
    try {
        make(PathKind::gds);
        FAIL() << "gds took compatibility mode";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_NE(error.info().cause.find("nvidia-fs"), std::string::npos) << error.what();
    }
}

TEST_F(CuFileTest, gds_moves_bytes_where_native_was_shown_and_the_counters_agree) {
    const Behaviour native("native");
    auto path = make(PathKind::gds);
    const auto before = cufile_->counters();
    ASSERT_TRUE(before);
    for (const Completion& done : move_all(*path, Direction::read, 65536)) EXPECT_EQ(done.status, ErrorCode::ok);
    const auto after = cufile_->counters();
    EXPECT_EQ(after->nvfs_reads - before->nvfs_reads, 16u);
    EXPECT_EQ(after->posix_reads, before->posix_reads);
    EXPECT_EQ(after->library, "libcufile 1.15");
    cufile_->forget(file_.id);
}

TEST_F(CuFileTest, gds_fails_an_operation_whose_file_system_was_not_shown_native) {
    const Behaviour native("native");
    auto path = make(PathKind::gds);
    const Behaviour no_longer("none");  // the probe now sees compatibility mode for this file system
    const auto done = move_all(*path, Direction::read, kFileBytes);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, ErrorCode::unsupported);
    EXPECT_EQ(done[0].bytes, 0u);
}

TEST_F(CuFileTest, a_batch_never_needs_more_buffers_than_the_pool_has) {
    const Variable slabs("FAKE_CUFILE_SLABS", "4");
    auto path = make(PathKind::gds_batch, 64);
    EXPECT_EQ(path->capabilities().max_in_flight, 4u);
    const auto done = move_all(*path, Direction::read, 16384);
    ASSERT_EQ(done.size(), 64u);
    for (const Completion& one : done) EXPECT_EQ(one.status, ErrorCode::ok) << one.system_code;
    cufile_->forget(file_.id);
}

TEST_F(CuFileTest, a_batch_may_finish_in_any_order) {
    auto path = make(PathKind::gds_batch);
    const auto done = move_all(*path, Direction::read, 131072);
    ASSERT_EQ(done.size(), 8u);
    EXPECT_NE(done[0].tag, 0u) << "the stand-in finishes the newest first";
    EXPECT_EQ(stream_->verify_stamp(memory_, kFileBytes, 0, 5).bad_bytes, 0u);
    cufile_->forget(file_.id);
}

TEST_F(CuFileTest, a_batch_that_stops_answering_fails_its_operations) {
    auto path = make(PathKind::gds_batch);
    const Behaviour broken("broken_status");
    const auto done = move_all(*path, Direction::read, 131072);
    ASSERT_EQ(done.size(), 8u);
    for (const Completion& one : done) EXPECT_EQ(one.status, ErrorCode::io_error);
    const auto later = move_all(*path, Direction::read, kFileBytes);
    ASSERT_EQ(later.size(), 1u);
    EXPECT_EQ(later[0].status, ErrorCode::io_error);
}

TEST_F(CuFileTest, a_path_may_go_with_operations_in_flight) {
    for (const PathKind kind : {PathKind::gds_batch, PathKind::gds_stream}) {
        auto path = make(kind);
        const Operation some[] = {operation(Direction::read, 0, 65536, 1), operation(Direction::read, 65536, 65536, 2)};
        EXPECT_EQ(path->submit(some), 2u);
        path.reset();
        EXPECT_EQ(stream_->verify_stamp(memory_, 131072, 0, 5).bad_bytes, 0u) << "left unfinished";
        cufile_->forget(file_.id);
    }
}

TEST_F(CuFileTest, a_path_without_cufile_or_stream_is_refused_with_words) {
    EXPECT_THROW(make_cufile_path(PathKind::gds_compat, {}), Error);
    cufile_ = open_cufile(fake_options());
    PathOptions options;
    options.cufile = cufile_;
    EXPECT_THROW(make_cufile_path(PathKind::gds_stream, options), Error);
    EXPECT_THROW(make_cufile_path(PathKind::buffered, options), Error);
}

}  // namespace
}  // namespace penstock::path
