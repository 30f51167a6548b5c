// What only the emulated GPU promises: modelled time, faults on invalid pointers, and noticing missing waits.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "penstock/device.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;

struct HostBench {
    explicit HostBench(const HostDeviceOptions& options)
        : device(make_host_device(options)),
          stream(device->make_stream()),
          event(device->make_event()),
          block(static_cast<unsigned char*>(device->allocate(MemoryKind::device, kBytes))),
          pinned(static_cast<unsigned char*>(device->allocate(MemoryKind::pinned, kBytes))) {}
    ~HostBench() {
        stream.reset();
        device->release(MemoryKind::device, block);
        device->release(MemoryKind::pinned, pinned);
    }
    void copy_down() { stream->copy(CopyDirection::to_host, pinned, block, kBytes); }

    std::shared_ptr<Device> device;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> event;
    unsigned char* block;
    unsigned char* pinned;
};

TEST(HostDevice, throttled_copies_take_at_least_their_modelled_time) {
    HostBench host({.bandwidth_bytes_per_s = 50e6, .latency_ns = 1'000'000});
    const auto start = Clock::now();
    for (int i = 0; i < 4; ++i) host.copy_down();
    host.stream->synchronize();
    const double expected = 4 * (static_cast<double>(kBytes) / 50e6 + 0.001);
    EXPECT_GE(seconds_since(start), expected * 0.999);
    EXPECT_LT(seconds_since(start), expected * 3 + 0.1) << "throttle drifts";
}

TEST(HostDevice, throttled_packs_take_the_time_of_the_bytes_they_write) {
    HostBench host({.bandwidth_bytes_per_s = 10e6, .latency_ns = 1'000'000});
    Pack pack{.destination = host.block, .source = host.block + kBytes / 2, .to = PackNumber::float32, .dimensions = 1};
    pack.extents[0] = kBytes / 16;
    pack.destination_strides[0] = 4;
    pack.source_strides[0] = 8;
    const auto start = Clock::now();
    host.stream->pack(std::vector<Pack>{pack});
    EXPECT_LT(seconds_since(start), 0.5 * static_cast<double>(kBytes) / 4 / 10e6) << "the call waited";
    host.stream->synchronize();
    EXPECT_GE(seconds_since(start), (static_cast<double>(kBytes) / 4 / 10e6 + 0.001) * 0.999);
}

TEST(HostDevice, a_batch_pays_latency_once) {
    HostBench host({.latency_ns = 30'000'000});
    std::vector<CopyPiece> pieces;
    for (std::uint64_t i = 0; i < 64; ++i) pieces.push_back({host.pinned + i * 4096, host.block + i * 4096, 512});
    const auto start = Clock::now();
    host.stream->copy_batch(CopyDirection::to_host, pieces);
    host.stream->synchronize();
    EXPECT_GE(seconds_since(start), 0.0299);
    EXPECT_LT(seconds_since(start), 0.5) << "64 latencies would be 1.9 s";
}

#if defined(__SANITIZE_THREAD__)
#define PENSTOCK_SKIP_DELIBERATE_RACE() GTEST_SKIP() << "ThreadSanitizer reports this deliberate race, as it should"
#else
#define PENSTOCK_SKIP_DELIBERATE_RACE() static_cast<void>(0)
#endif

TEST(HostDevice, a_read_without_waiting_sees_old_data) {
    PENSTOCK_SKIP_DELIBERATE_RACE();
    HostBench host({.latency_ns = 100'000'000});
    std::memset(host.pinned, 1, kBytes);
    host.stream->fill(host.block, kBytes, 2);
    host.copy_down();
    host.stream->record(*host.event);
    EXPECT_FALSE(host.event->done());
    const unsigned char early = *static_cast<volatile unsigned char*>(host.pinned);
    ASSERT_TRUE(host.event->wait(Deadline::never()));
    EXPECT_EQ(early, 1) << "the missing wait did not show";
    EXPECT_EQ(host.pinned[0], 2);
    EXPECT_EQ(host.pinned[kBytes - 1], 2);
}

TEST(HostDevice, a_source_reused_too_early_shows_in_the_destination) {
    PENSTOCK_SKIP_DELIBERATE_RACE();
    HostBench host({.latency_ns = 100'000'000});
    std::memset(host.pinned, 1, kBytes);
    host.stream->copy(CopyDirection::to_device, host.block, host.pinned, kBytes);
    std::memset(host.pinned, 2, kBytes);  // the bug that the device must show: the copy has not read it yet
    host.stream->synchronize();
    host.copy_down();
    host.stream->synchronize();
    EXPECT_EQ(host.pinned[0], 2);
}

TEST(HostDevice, streams_without_an_event_overlap) {
    HostBench host({.latency_ns = 100'000'000});
    HostBench beside({});
    const auto other = host.device->make_stream();
    void* apart = host.device->allocate(MemoryKind::device, 4096);
    for (int i = 0; i < 5; ++i) host.copy_down();
    host.stream->record(*host.event);
    other->copy(CopyDirection::to_device, apart, beside.pinned, 4096);
    other->synchronize();
    EXPECT_FALSE(host.event->done()) << "a stream waited for another";
    host.stream->synchronize();
    host.device->release(MemoryKind::device, apart);
}

TEST(HostDevice, waiting_with_a_deadline_gives_up_while_a_copy_runs) {
    HostBench host({.latency_ns = 200'000'000});
    host.copy_down();
    host.stream->record(*host.event);
    const auto start = Clock::now();
    EXPECT_FALSE(host.event->wait(Deadline::after(std::chrono::milliseconds(20))));
    EXPECT_GE(seconds_since(start), 0.0199);
    EXPECT_FALSE(host.event->wait(Deadline::now()));
    EXPECT_TRUE(host.event->wait(Deadline::never()));
    EXPECT_GE(seconds_since(start), 0.19);
}

TEST(HostDevice, an_earlier_recording_still_orders_after_the_event_is_recorded_again) {
    HostBench host({.latency_ns = 50'000'000});
    const auto slow = host.device->make_stream(), waiter = host.device->make_stream();
    const auto start = Clock::now();
    for (int i = 0; i < 3; ++i) slow->copy(CopyDirection::to_host, host.pinned, host.block, 16);
    slow->record(*host.event);
    waiter->wait(*host.event);
    host.stream->record(*host.event);  // on an idle stream this is done at once
    EXPECT_TRUE(host.event->done());
    waiter->synchronize();
    EXPECT_GE(seconds_since(start), 0.149);
}

TEST(HostDevice, wild_device_pointers_are_refused_at_the_call) {
    HostBench host({});
    std::vector<unsigned char> foreign(4096);
    EXPECT_THROW(host.stream->copy(CopyDirection::to_device, foreign.data(), host.pinned, 16), Error);
    EXPECT_THROW(host.stream->copy(CopyDirection::to_host, host.pinned, host.block + kBytes - 8, 16), Error);
    host.copy_down();  // a refused call leaves the stream usable
    host.stream->synchronize();
}

TEST(HostDevice, memory_released_under_queued_work_is_a_device_error_that_stays) {
    HostBench host({.latency_ns = 30'000'000});
    void* gone = host.device->allocate(MemoryKind::device, 4096);
    host.stream->copy(CopyDirection::to_host, host.pinned, gone, 4096);
    host.stream->record(*host.event);
    host.device->release(MemoryKind::device, gone);
    try {
        host.event->wait(Deadline::never());
        FAIL() << "the event hides the failure";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_error);
    }
    EXPECT_THROW(host.stream->synchronize(), Error);
    EXPECT_THROW(host.copy_down(), Error);
    const auto other = host.device->make_stream();
    other->wait(*host.event);
    EXPECT_THROW(other->synchronize(), Error) << "a failure does not cross the event";
}

TEST(HostDevice, a_batch_from_unpinned_memory_faults) {
    HostBench host({});
    std::vector<unsigned char> pageable(4096);
    const CopyPiece piece{host.block, pageable.data(), 64};
    host.stream->copy_batch(CopyDirection::to_device, {&piece, 1});
    EXPECT_THROW(host.stream->synchronize(), Error);
}

TEST(HostDevice, capacity_counts_device_and_managed_memory_only) {
    const auto device = make_host_device({.memory_bytes = kBytes});
    void* pinned = device->allocate(MemoryKind::pinned, 4 * kBytes);
    void* managed = device->allocate(MemoryKind::managed, kBytes / 2);
    EXPECT_EQ(device->info().free_bytes, kBytes / 2);
    EXPECT_THROW(device->allocate(MemoryKind::device, kBytes), Error);
    device->release(MemoryKind::managed, managed);
    EXPECT_EQ(device->info().free_bytes, kBytes);
    device->release(MemoryKind::pinned, pinned);
}

TEST(HostDevice, refuses_registration_when_told_to) {
    const auto device = make_host_device({.registers_mappings = false});
    std::vector<unsigned char> foreign(4096);
    std::string why;
    EXPECT_FALSE(device->register_host(foreign.data(), foreign.size(), true, why));
    EXPECT_FALSE(why.empty());
}

TEST(HostDevice, memory_and_streams_outlive_the_device_handle) {
    auto device = make_host_device();
    auto stream = device->make_stream();
    void* block = device->allocate(MemoryKind::device, kBytes);
    device.reset();
    stream->fill(block, kBytes, 3);
    stream->synchronize();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // both need address space of their own
// Ends the process with 0 if queueing work that needs a thread was refused with out_of_memory, and with another code if
// not.
void queue_work_without_room_for_a_thread(std::uint64_t spare_bytes) {
    const HostBench bench({});
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + spare_bytes;
    const rlimit room{limit, limit};
    ::setrlimit(RLIMIT_AS, &room);
    try {
        bench.stream->fill(bench.block, kBytes, 1);
        bench.stream->synchronize();
        ::_exit(7);
    } catch (const Error& error) {
        ::_exit(error.code() == ErrorCode::out_of_memory ? 0 : 8);
    }
}

TEST(HostStream, without_a_thread_queued_work_is_an_error_and_not_a_hang) {
    // Runs in a process of its own, because this one has stacks of earlier threads that a new thread could reuse.
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(queue_work_without_room_for_a_thread(1 << 20), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(queue_work_without_room_for_a_thread(1 << 30), testing::ExitedWithCode(7), "");  // negative control
}
#endif

TEST(DeviceNames, host_is_always_there_and_unknown_names_list_the_valid_ones) {
    EXPECT_EQ(make_device("host")->name(), "host");
    EXPECT_NO_THROW(make_device("auto"));
    for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x"}) {
        try {
            make_device(name);
            FAIL() << name;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << name;
            EXPECT_EQ(error.info().operation, "open device") << name;
            EXPECT_NE(std::string(error.what()).find("cuda:N"), std::string::npos);
        }
    }
}

TEST(DeviceNames, a_refused_option_of_the_host_is_told_of_the_device) {
    try {
        make_host_device({.bandwidth_bytes_per_s = -1});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.info().operation, "open device host");
    }
}

TEST(DeviceNames, an_absent_gpu_is_unsupported_with_the_cause) {
    std::string why;
    if (cuda_device_count(why) > 0) GTEST_SKIP() << "there is a GPU here";
    EXPECT_FALSE(why.empty());
    try {
        make_device("cuda:0");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_EQ(error.info().operation, "open device cuda:0");
        EXPECT_FALSE(error.info().cause.empty());
    }
}

}  // namespace
}  // namespace penstock
