// Files of huge pages (hugetlbfs): a GPU's mapping has them whole or not at all, a cache serves them whatever their
// length, and nothing stays mapped. The cache refuses a file that cannot be written before any caller stores to it. The
// tests are skipped if the system has no huge pages; `echo 8 > /proc/sys/vm/nr_hugepages` sets some aside.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "context/test_files.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/device_rig.hpp"
#include "ondevice/service/opened_file_rig.hpp"
#include "ondevice/service/registering_rig.hpp"
#include "os/file/file_stat.hpp"
#include "os/file/residency.hpp"

namespace penstock::ondevice {
namespace {

using Bytes = std::vector<unsigned char>;

// A file of huge pages with stamped bytes. It has no name, only a descriptor.
class HugeFile {
  public:
    HugeFile() : fd_(::memfd_create("penstock-huge", MFD_CLOEXEC | MFD_HUGETLB)) {
        if (fd_.get() < 0) why_ = std::string("memfd_create: ") + std::strerror(errno);
        else page_ = os::mapping_page_bytes(fd_.get());
    }
    // Makes the file so long, and returns why it could not; empty: it is.
    std::string grow(u64 bytes) {
        if (!why_.empty()) return why_;
        const int error = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes));
        if (error != 0) return std::string("no huge pages: ") + std::strerror(error);
        content_ = test::stamped(bytes);
        const u64 whole = bytes / page_ * page_;  // the system lets no process write the rest
        void* const memory = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        if (memory == MAP_FAILED) return std::string("mmap: ") + std::strerror(errno);
        std::memcpy(memory, content_.data(), whole);
        ::munmap(memory, whole);
        std::fill(content_.begin() + static_cast<std::ptrdiff_t>(whole), content_.end(), static_cast<unsigned char>(0));
        return {};
    }
    std::string name() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }
    u64 page() const { return page_; }
    const Bytes& content() const { return content_; }
    Bytes read() const {
        Bytes got(content_.size());
        EXPECT_EQ(::pread(fd_.get(), got.data(), got.size(), 0), static_cast<ssize_t>(got.size()));
        return got;
    }
    u64 size() const { return static_cast<u64>(::lseek(fd_.get(), 0, SEEK_END)); }

  private:
    const os::UniqueFd fd_;
    u64 page_ = 0;
    std::string why_;
    Bytes content_;
};

// How many mappings of such files this process has.
u64 mappings() {
    std::ifstream maps("/proc/self/maps");
    u64 found = 0;
    for (std::string line; std::getline(maps, line);) found += line.find("penstock-huge") != std::string::npos;
    return found;
}

class HugePages : public testing::TestWithParam<u64> {  // bytes behind two whole pages
  protected:
    void SetUp() override {
        const std::string why = file_.grow(2 * file_.page() + GetParam());
        if (!why.empty()) GTEST_SKIP() << why;
    }
    void TearDown() override { EXPECT_EQ(mappings(), 0u) << "nothing stays mapped"; }
    bool whole() const { return GetParam() == 0; }
    FileCacheOptions options() const {
        FileCacheOptions options;
        options.cache_bytes = 64 * 4096;
        options.wait_ns = 20'000'000'000;
        return options;
    }
    FileCache::Failure move(FileCache& cache, CacheTask task, const OnDevice& memory, u64 count) const {
        CacheWork work{};
        work.task = task;
        work.count = count;
        work.memory = memory.data();
        return cache.run(0, work);
    }

    HugeFile file_;
    const std::shared_ptr<Device> device_ = test_device();
};

TEST_P(HugePages, are_mapped_whole_for_a_gpu_or_not_at_all) {
    for (const int rights : {O_RDONLY, O_RDWR}) {
        Registers device;
        const OpenedFile opened(file_.name(), rights);
        const FileMapping mapping(device, &opened.handle, layout_of(&opened.handle, 4096));
        EXPECT_EQ(mapping.data() != nullptr, whole()) << mapping.refusal();
        EXPECT_EQ(file_.size(), file_.content().size()) << "mapping it makes it no longer";
        if (!whole()) {
            EXPECT_NE(mapping.refusal().find("no whole number of huge pages of"), std::string::npos);
            continue;
        }
        EXPECT_EQ(mappings(), 1u) << "control: one that is there is seen";
        EXPECT_EQ(device.bytes_, file_.content().size());
        EXPECT_EQ(std::memcmp(mapping.data(), file_.content().data(), file_.content().size()), 0);
        if (rights == O_RDWR) {
            mapping.data()[5] = std::byte{7};
            EXPECT_EQ(file_.read()[5], 7);
        }
    }
}

TEST_P(HugePages, are_read_through_a_cache_to_the_last_byte) {
    const OpenedFile opened(file_.name(), O_RDONLY);
    FileCache cache(*device_, {&opened.handle}, options());
    const OnDevice to(*device_, file_.content().size());
    EXPECT_EQ(move(cache, CacheTask::read, to, file_.content().size()).status, Status::ok);
    EXPECT_EQ(to.bytes(), file_.content());
    EXPECT_EQ(cache.mapped(0), whole() && !device_->info().emulated) << cache.mapping_refusal(0);
    const auto from = cache.evidence().by_source;
    EXPECT_EQ(from[static_cast<std::size_t>(Source::direct)].requests, 0u);
}

TEST_P(HugePages, are_written_where_the_gpu_has_them_and_refused_elsewhere) {
    const OpenedFile opened(file_.name());
    const Bytes some(10'000, 3);
    try {
        FileCache cache(*device_, {&opened.handle}, options());
        ASSERT_TRUE(cache.mapped(0)) << "no other can write";
        const OnDevice from(*device_, some.data(), some.size());
        ASSERT_EQ(move(cache, CacheTask::write, from, some.size()).status, Status::ok);
        ASSERT_EQ(cache.flush().status, Status::ok);
        const Bytes got = file_.read();
        EXPECT_TRUE(std::equal(some.begin(), some.end(), got.begin()));
    } catch (const Error& error) {
        EXPECT_TRUE(!whole() || device_->info().emulated) << error.what();
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_EQ(error.info().file, file_.name());
        EXPECT_EQ(error.info().advice, "open it for reading, or keep it in tmpfs");
        EXPECT_EQ(file_.read(), file_.content());
    }
}

TEST_P(HugePages, are_in_memory_and_asking_maps_nothing) {
    const OpenedFile opened(file_.name(), O_RDONLY);
    const u64 bytes = file_.content().size();
    const Residency found = os::residency(opened.fd.get(), 0, bytes);
    EXPECT_EQ(found.fraction(), 1.0) << found.source;
    EXPECT_THROW(os::residency(opened.fd.get(), 0, bytes, os::ResidencySource::mincore), Error);
}

INSTANTIATE_TEST_SUITE_P(Lengths, HugePages, testing::Values(u64{0}, u64{100}, u64{4096}));

}  // namespace
}  // namespace penstock::ondevice
