// Cuts a file short in the middle of a copy from its mapping. The copy must be short or fail, and never return zeros.
//
// A page fault of the target chooses the moment: the kernel reports it (userfaultfd) to a thread of this test, which
// cuts the file while the copy waits. Bytes cut from the file's last page cause no fault of the source.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "path/file_rig.hpp"

namespace penstock::path {
namespace {

using conformance::Bytes;
using conformance::OpenFile;
using conformance::pattern;

constexpr std::size_t kPage = 4096, kBytes = 4 * kPage;

// Memory whose first access calls `before`, once.
class Awaited {
  public:
    explicit Awaited(std::function<void()> before) : before_(std::move(before)) {
        memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ::madvise(memory_, kBytes, MADV_NOHUGEPAGE);
        fd_ = os::UniqueFd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
        uffdio_api api{};
        api.api = UFFD_API;
        uffdio_register range{};
        range.range = {reinterpret_cast<std::uintptr_t>(memory_), kBytes};
        range.mode = UFFDIO_REGISTER_MODE_MISSING;
        usable_ = fd_ && ::ioctl(fd_.get(), UFFDIO_API, &api) == 0 && ::ioctl(fd_.get(), UFFDIO_REGISTER, &range) == 0;
        if (usable_)
            thread_ = std::thread([this] { answer(); });
        else
            why_ = std::strerror(errno);
    }
    ~Awaited() {
        *static_cast<volatile char*>(memory_) = 0;  // ends the thread if no copy touched the memory
        if (thread_.joinable()) thread_.join();
        ::munmap(memory_, kBytes);
    }
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;
    bool usable() const { return usable_; }
    const std::string& why() const { return why_; }  // why it is not usable
    const std::byte* bytes() const { return static_cast<const std::byte*>(memory_); }
    void* data() const { return memory_; }

  private:
    void answer() {
        uffd_msg message{};
        if (::read(fd_.get(), &message, sizeof(message)) != sizeof(message)) return;
        before_();
        uffdio_zeropage zero{};
        zero.range = {reinterpret_cast<std::uintptr_t>(memory_), kBytes};
        ::ioctl(fd_.get(), UFFDIO_ZEROPAGE, &zero);
    }

    std::function<void()> before_;
    void* memory_ = nullptr;
    os::UniqueFd fd_;
    bool usable_ = false;
    std::string why_;
    std::thread thread_;
};

// With `staging`, the path makes a plain copy under a guard. Otherwise the kernel copies.
void read_a_file_cut_to(std::uint64_t left, bool staging) {
    const Bytes contents = pattern(kBytes - 100, 1);
    const OpenFile file(conformance::test_folder(), 1, contents, true);
    Bytes warm(contents.size());
    ASSERT_EQ(::pread(file.handle.buffered_fd, warm.data(), warm.size(), 0), static_cast<ssize_t>(warm.size()));
    const Awaited target([&] { ASSERT_EQ(::ftruncate(file.handle.buffered_fd, static_cast<off_t>(left)), 0); });
    if (!target.usable()) GTEST_SKIP() << "no userfaultfd: " << target.why();
    const auto path = make_path(PathKind::mmap, {});
    Operation read{Direction::read, &file.handle, 0, target.data(), contents.size(), 1};
    read.staging = staging;
    Completion done;
    ASSERT_EQ(path->submit({&read, 1}), 1u);
    ASSERT_EQ(path->reap({&done, 1}, Deadline::after(std::chrono::seconds(60))), 1u);
    if (done.status != ErrorCode::ok) return;
    EXPECT_LE(done.bytes, left);
    EXPECT_TRUE(std::equal(contents.begin(), contents.begin() + static_cast<long>(done.bytes), target.bytes()));
}

TEST(MmapCut, within_its_last_page) {
    read_a_file_cut_to(kBytes - 2000, true);
    read_a_file_cut_to(kBytes - 2000, false);
}

TEST(MmapCut, by_pages) {
    read_a_file_cut_to(kPage + 17, true);
    read_a_file_cut_to(kPage + 17, false);
}

TEST(MmapCut, to_nothing) {
    read_a_file_cut_to(0, true);
    read_a_file_cut_to(0, false);
}

}  // namespace
}  // namespace penstock::path
