// A page cache refuses options that cannot be, and says what to give instead, before it takes any memory: a caller that
// asks for too much gets the refusal at once, whatever the size of the cache.
#include <gtest/gtest.h>

#include <functional>

#include "context/test_files.hpp"
#include "device/forwarding_device.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/service/striped_rig.hpp"

namespace penstock::ondevice {
namespace {

class CountsMemory : public device::test::ForwardingDevice {
  public:
    void* allocate(MemoryKind kind, std::uint64_t bytes) override {
        ++allocations;
        return ForwardingDevice::allocate(kind, bytes);
    }
    u32 allocations = 0;
};

class FileCacheOptionsTest : public testing::Test {
  protected:
    static StripedNames written(const std::string& stem) {
        StripedNames names = striped_names(stem, 2, 8192);
        names.write(test::stamped(64 * 4096));
        return names;
    }
    static FileCacheOptions fine() {
        FileCacheOptions options;
        options.cache_bytes = 16 * 4096;
        options.slots = 8;
        return options;
    }
    // The error that a cache throws for good options after `change`.
    ErrorInfo refusal(const std::function<void(FileCacheOptions&)>& change) {
        FileCacheOptions options = fine();
        change(options);
        try {
            const FileCache cache(device_, {opened_.set}, options);
        } catch (const Error& error) {
            return error.info();
        }
        return {};
    }

    CountsMemory device_;
    test::TempDirectory directory_;
    const OpenedSet opened_{written(directory_.file("part"))};
};

TEST_F(FileCacheOptionsTest, what_cannot_be_is_refused_before_memory_is_taken) {
    const std::vector<std::pair<std::function<void(FileCacheOptions&)>, std::string>> wrong{
        {[](FileCacheOptions& options) { options.threads = 257; }, "ask for at most 256"},
        {[](FileCacheOptions& options) { options.slots = 16385; }, "give 1 to 16384"},
        {[](FileCacheOptions& options) { options.slots = 1u << 30; }, "give 1 to 16384"},
        {[](FileCacheOptions& options) { options.page_bytes = 3000; }, "give a power of two from 512 to 2097152"},
        {[](FileCacheOptions& options) { options.cache_bytes = 4095; }, "give room for at least one page"},
        {[](FileCacheOptions& options) { options.page_bytes = 16384; }, "give stripes of at least a page"},
    };
    for (const auto& [change, advice] : wrong) {
        const ErrorInfo error = refusal(change);
        EXPECT_EQ(error.code, ErrorCode::invalid_argument) << advice;
        EXPECT_EQ(error.advice.find(advice), 0u) << error.message();
        EXPECT_EQ(device_.allocations, 0u) << error.message();
    }
}

TEST_F(FileCacheOptionsTest, control_what_can_be_is_not_refused_and_takes_memory) {
    const ErrorInfo error = refusal([](FileCacheOptions& options) { options.threads = 256, options.slots = 16384; });
    EXPECT_TRUE(error.ok()) << error.message();
    EXPECT_GT(device_.allocations, 0u);
}

}  // namespace
}  // namespace penstock::ondevice
