// Callers lend their threads: after each call of the library the device that was current there is current again. Two
// devices of an emulated machine stand for GPUs here; python/tests/gpu/test_two_gpus.py asks two real ones.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "device/forwarding_device.hpp"
#include "penstock/context.hpp"
#include "penstock/device_cache.hpp"
#include "penstock/device_calls.hpp"

namespace penstock {
namespace {

constexpr int kCallers = 3, kOurs = 5;

int& current() {
    static thread_local int device = kCallers;
    return device;
}

std::vector<int>& before() {
    static thread_local std::vector<int> devices;
    return devices;
}

class NumberedDevice final : public device::test::ForwardingDevice {
  public:
    void enter_thread() override { current() = kOurs; }
    void enter_call() override {
        before().push_back(std::exchange(current(), kOurs));
        entered = true;
    }
    void leave_call() noexcept override {
        current() = before().back();
        before().pop_back();
    }
    std::unique_ptr<Stream> make_stream() override {
        EXPECT_EQ(current(), kOurs) << "a stream is made for the device that is current";
        return ForwardingDevice::make_stream();
    }
    std::atomic<bool> entered = false;
};

class LentThread : public testing::Test {
  protected:
    LentThread() { test::write_file(name_, test::stamped(kBytes)); }
    template <typename Call>
    void expect_left(const char* what, const Call& call) {
        call();
        EXPECT_EQ(current(), kCallers) << what;
        current() = kCallers;
    }

    static constexpr std::uint64_t kBytes = 4 * kMiB;
    test::TempDirectory directory_;
    const std::string name_ = directory_.file("data");
    std::shared_ptr<NumberedDevice> device_ = std::make_shared<NumberedDevice>();
    const Context context_ = context::make_context({}, {.device = device_});
};

TEST_F(LentThread, keeps_its_device_whatever_is_asked_of_a_context) {
    Buffer buffer;
    std::vector<char> host(kBytes);
    expect_left("allocate", [&] { buffer = context_.allocate(kBytes); });
    expect_left("copy_to_device", [&] { context_.copy_to_device(buffer.data(), host.data(), kBytes); });
    expect_left("copy_to_host", [&] { context_.copy_to_host(host.data(), buffer.data(), kBytes); });
    const Buffer pinned = context_.allocate(4096, MemoryKind::pinned);
    const CopyPiece piece{buffer.data(), pinned.data(), 100};
    expect_left("copy_pieces", [&] { context_.copy_pieces(CopyDirection::to_device, {&piece, 1}); });
    expect_left("open, read, write", [&] {
        const File file = context_.open(name_, {.mode = OpenMode::read_write});
        for (const std::uint64_t bytes : {std::uint64_t{100}, std::uint64_t{4096}, kBytes}) {
            EXPECT_TRUE(file.read(buffer.view().slice(0, bytes), 0).ok());
            EXPECT_TRUE(file.write(buffer.view().slice(0, bytes), 0).ok());
            EXPECT_EQ(current(), kCallers) << bytes;
        }
    });
    expect_left("free", [&] { buffer = {}; });
    EXPECT_TRUE(device_->entered);
}

TEST_F(LentThread, keeps_its_device_where_the_call_fails) {
    const Buffer buffer = context_.allocate(kBytes);
    const File file = context_.open(name_);
    expect_left("a write that is refused", [&] { EXPECT_THROW(file.write(buffer.view(), 0), Error); });
    expect_left("a read behind the end", [&] { EXPECT_THROW(file.read(buffer.view(), 10 * kBytes), Error); });
    expect_left("no memory", [&] { EXPECT_THROW(static_cast<void>(context_.allocate(1ull << 60)), Error); });
}

TEST_F(LentThread, keeps_its_device_whatever_is_asked_of_a_page_cache_or_of_calls) {
    const File file = context_.open(name_, {.mode = OpenMode::read_write});
    const Buffer buffer = context_.allocate(4096);
    expect_left("a cache", [&] {
        const DeviceCache cache(context_, {&file, 1}, {.cache_bytes = 64 * 4096});
        EXPECT_EQ(current(), kCallers);
        cache.read(0, 100, buffer.view());
        EXPECT_EQ(current(), kCallers);
        cache.write(0, 100, buffer.view());
        cache.flush();
        EXPECT_EQ(current(), kCallers);
        cache.close();
    });
    expect_left("calls", [&] {
        const DeviceCalls calls(context_);
        EXPECT_EQ(current(), kCallers);
        calls.close();
    });
}

}  // namespace
}  // namespace penstock
