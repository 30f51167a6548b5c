// Streams that are kept for the next caller, on a device that counts how many it makes.
#include "device/kept_streams.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "device/forwarding_device.hpp"

namespace penstock::device {
namespace {

class CountingDevice final : public test::ForwardingDevice {
  public:
    std::unique_ptr<Stream> make_stream() override {
        ++made;
        return ForwardingDevice::make_stream();
    }
    int made = 0;
};

TEST(KeptStreams, one_call_after_the_other_has_the_same_stream) {
    CountingDevice device;
    KeptStreams streams(device);
    Stream* first = nullptr;
    streams.run([&](Stream& stream) { first = &stream; });
    streams.run([&](Stream& stream) { EXPECT_EQ(&stream, first); });
    EXPECT_EQ(device.made, 1);
}

TEST(KeptStreams, a_call_inside_another_has_its_own_stream) {
    CountingDevice device;
    KeptStreams streams(device);
    streams.run([&](Stream& outer) { streams.run([&](Stream& inner) { EXPECT_NE(&inner, &outer); }); });
    EXPECT_EQ(device.made, 2);
}

TEST(KeptStreams, a_stream_whose_work_failed_is_used_no_more) {
    CountingDevice device;
    KeptStreams streams(device);
    EXPECT_THROW(streams.run([](Stream&) { throw std::runtime_error("failed"); }), std::runtime_error);
    streams.run([](Stream&) {});
    EXPECT_EQ(device.made, 2);
}

TEST(KeptStreams, the_work_of_a_stream_has_ended_when_it_goes_back) {
    test::ForwardingDevice device({.bandwidth_bytes_per_s = 1e9, .latency_ns = 1'000'000});
    KeptStreams streams(device);
    constexpr std::size_t kBytes = 4096;
    const auto released = [&device](MemoryKind kind) {
        return [&device, kind](char* memory) { device.release(kind, memory); };
    };
    using Owned = std::unique_ptr<char, std::function<void(char*)>>;
    const Owned from(static_cast<char*>(device.allocate(MemoryKind::pinned, kBytes)), released(MemoryKind::pinned));
    const Owned to(static_cast<char*>(device.allocate(MemoryKind::device, kBytes)), released(MemoryKind::device));
    std::memset(from.get(), 'a', kBytes);
    std::memset(to.get(), 'b', kBytes);
    streams.run([&](Stream& stream) { stream.copy(CopyDirection::to_device, to.get(), from.get(), kBytes); });
    EXPECT_EQ(std::memcmp(to.get(), from.get(), kBytes), 0);
}

TEST(KeptStreams, no_more_are_kept_than_it_says) {
    CountingDevice device;
    KeptStreams streams(device);
    constexpr int kMost = KeptStreams::kIdleStreams;
    for (const int made : {kMost + 1, kMost + 2}) {
        std::vector<KeptStreams::BorrowedStream> all;
        for (int i = 0; i <= kMost; ++i) all.push_back(streams.borrow());
        for (KeptStreams::BorrowedStream& one : all) one.finish();
        EXPECT_EQ(device.made, made);
    }
}

}  // namespace
}  // namespace penstock::device
