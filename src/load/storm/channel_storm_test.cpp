// Storms through either channel, on the emulated device or the one that PENSTOCK_TEST_DEVICE names: every page is the
// file's, a wrong byte is found, both sides count the same, and a request without an answer ends as a failure.
#include "load/storm/channel_storm.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "context/test_files.hpp"
#include "load/storm/storm_rig.hpp"
#include "support/nvme/emulated_nvme.hpp"
#include "support/nvme/nvme_controller.hpp"

namespace penstock::load {
namespace {

class ChannelStormTest : public testing::Test {
  protected:
    static constexpr std::uint64_t kBytes = 2 << 20, kSeed = 42;
    static constexpr u32 kPage = 4096;
    ChannelStormTest() { test::write_file(name_, content_); }
    static StormOptions some(std::uint64_t requests = 300) {
        StormOptions options;
        options.blocks = 8;
        options.threads = 64;
        options.requests = requests;
        options.seconds = 60;
        options.seed = kSeed;
        return options;
    }
    // Both channels, in several shapes.
    static std::vector<StormSetup> both() {
        return {{.source = StormSource::mailbox, .slots = 64, .service_threads = 1},
                {.source = StormSource::mailbox, .slots = 64, .service_threads = 2},
                {.source = StormSource::nvme, .slots = 64, .service_threads = 1},
                {.source = StormSource::nvme, .slots = 64, .service_threads = 2, .queues = 2},
                {.source = StormSource::nvme, .slots = 256, .service_threads = 2, .queues = 16}};
    }
    static std::string words(const StormSetup& setup) {
        const std::string what = setup.source == StormSource::nvme ? "nvme, queues " : "mailbox, queues ";
        return what + std::to_string(setup.queues) + ", threads " + std::to_string(setup.service_threads);
    }

    std::shared_ptr<Device> device_ = test_device();
    test::TempDirectory directory_;
    const std::string name_ = directory_.file("data");
    std::vector<unsigned char> content_ = stamped(kBytes, kSeed);
};

TEST_F(ChannelStormTest, every_page_is_checked_and_counted_on_both_sides) {
    for (const StormSetup& setup : both()) {
        SCOPED_TRACE(words(setup));
        Storm storm(*device_, name_, setup);
        for (const bool sequential : {false, true}) {
            StormOptions options = some();
            options.sequential = sequential;
            const StormReport report = storm.run(options);
            EXPECT_EQ(report.requests, 300 * storm.warps(options));
            EXPECT_EQ(report.bad_words, 0u);
            EXPECT_EQ(report.failures, 0u);
            EXPECT_EQ(served(report), report.requests);
            EXPECT_EQ(report.served.failed, 0u);
            std::uint64_t timed = 0;
            for (const std::uint64_t many : report.latency) timed += many;
            EXPECT_EQ(timed, report.requests);
        }
        StormOptions brief = some(0);
        brief.seconds = 0.01;
        const StormReport report = storm.run(brief);
        EXPECT_GT(report.requests, 0u) << "time alone ends it";
        EXPECT_EQ(served(report), report.requests);
    }
}

TEST_F(ChannelStormTest, a_wrong_byte_is_found_through_either) {
    content_[5 * kPage + 77] ^= 1;
    test::write_file(name_, content_);
    for (const StormSetup& setup : both()) {
        SCOPED_TRACE(words(setup));
        Storm storm(*device_, name_, setup);
        StormOptions options = some(kBytes / kPage);
        options.sequential = true;
        EXPECT_GT(storm.run(options).bad_words, 0u);
        options.checked = false;
        EXPECT_EQ(storm.run(options).bad_words, 0u);
    }
}

TEST_F(ChannelStormTest, one_slot_is_enough_for_many) {
    for (const StormSource source : {StormSource::mailbox, StormSource::nvme}) {
        const u32 slots = source == StormSource::nvme ? 2 : 1;  // a queue of two entries has one slot
        Storm storm(*device_, name_, {.source = source, .slots = slots, .service_threads = 1});
        const StormReport report = storm.run(some(50));
        EXPECT_EQ(report.requests, 50 * storm.warps(some()));
        EXPECT_EQ(report.failures + report.bad_words, 0u);
    }
}

TEST_F(ChannelStormTest, a_file_cut_short_is_a_failure) {
    for (const StormSetup& setup : both()) {
        SCOPED_TRACE(words(setup));
        test::write_file(name_, content_);
        Storm storm(*device_, name_, setup);
        std::filesystem::resize_file(name_, kBytes / 2);
        const StormReport report = storm.run(some());
        EXPECT_GT(report.failures, 0u);
        EXPECT_EQ(report.failures, report.served.failed);
        EXPECT_EQ(report.bad_words, 0u);
        EXPECT_EQ(served(report) + report.served.failed, report.requests);
    }
}

TEST_F(ChannelStormTest, what_makes_no_sense_is_refused) {
    Storm storm(*device_, name_, {.source = StormSource::nvme, .slots = 64});
    for (const auto& change : std::vector<std::function<void(StormOptions&)>>{
             [](StormOptions& o) { o.in_flight = 2; }, [](StormOptions& o) { o.threads = 512; },
             [](StormOptions& o) { o.writes = true; }, [](StormOptions& o) { o.request_bytes = 1040; }}) {
        StormOptions options = some();
        change(options);
        EXPECT_THROW(storm.run(options), Error);
    }
    for (const StormSetup& setup : std::vector<StormSetup>{
             {.source = StormSource::nvme, .slots = 64, .service_threads = 2, .queues = 1},
             {.source = StormSource::nvme, .slots = 64, .service_threads = 1, .queues = 3},
             {.source = StormSource::nvme, .slots = 48, .service_threads = 1},
             {.source = StormSource::nvme, .slots = 2048, .service_threads = 1},
             {.source = StormSource::nvme, .slots = 64, .slot_bytes = 1000, .service_threads = 1},
             {.source = StormSource::nvme, .slots = 64, .service_threads = 0},
             {.source = StormSource::mailbox, .slots = 0}}) {
        EXPECT_THROW(Storm(*device_, name_, setup), Error) << words(setup);
    }
}

// Only the clients, as threads, with channels that no service or a controller answers.
class ClientsAlone : public testing::Test {
  protected:
    static constexpr u32 kClients = 4, kPage = 4096;
    static constexpr u64 kBytes = u64{1} << 20;

    template <class Channel>
    StormCounts run(const Channel& channel, u64 limit_ns) {
        std::vector<u8> pages(std::size_t{kClients} * kPage);
        StormCounts counts{};
        std::array<u64, 2> clocks{};
        StormWork storm{};
        storm.memory = pages.data();
        storm.counts = &counts;
        storm.clocks = clocks.data();
        storm.stripes = 1;
        storm.request_bytes = kPage;
        storm.file_bytes = kBytes;
        storm.turn = 1;
        storm.nanoseconds = 60'000'000'000;
        storm.requests = 200;
        storm.in_flight = 1;
        storm.checked = 1;
        const ChannelWork<Channel> work{storm, &channel, 1, limit_ns};
        std::vector<std::jthread> threads;
        for (u32 i = 0; i < kClients; ++i) threads.emplace_back([&, i] { channel_share(work, i, kClients, Lanes{1}); });
        threads.clear();
        return counts;
    }

    std::shared_ptr<Device> device_ = make_device("host");
    ondevice::DeviceMemory memory_{*device_, MemoryKind::pinned};
};

TEST_F(ClientsAlone, unanswered_requests_end_as_failures) {
    ondevice::Mailbox mailbox(memory_, memory_, {.slots = 2, .slot_bytes = kPage});
    const StormCounts of_mailbox = run(mailbox.ref(), 20'000'000);
    EXPECT_EQ(of_mailbox.failures, kClients) << "two had a slot, two none";
    EXPECT_EQ(of_mailbox.requests, kClients);
    EXPECT_GT(of_mailbox.busy, 0u);
    const ondevice::NvmeQueues queues(memory_, memory_, {.queues = 1, .depth = 8, .bytes = kBytes});
    const StormCounts of_queue = run(queues.refs()[0], 20'000'000);
    EXPECT_EQ(of_queue.failures, kClients);
    EXPECT_EQ(of_queue.requests, kClients);
}

// The stamps of seed 0, behind a controller.
class ClientsOfAController : public ClientsAlone {
  protected:
    ClientsOfAController() {
        for (u64 i = 0; i < kBytes / 8; ++i) put(i, stamp_word(0, i));
    }
    void put(u64 index, u64 word) { blocks_.write(8 * index, reinterpret_cast<const u8*>(&word), sizeof word); }
    StormCounts through(const ondevice::EmulatedFaults& faults, u64 limit_ns) {
        const ondevice::EmulatedNvmeOptions how{.faults = faults};
        ondevice::EmulatedNvme emulated(blocks_, [](u64 io, u64) { return reinterpret_cast<u8*>(io); }, how);
        ondevice::NvmeController controller(emulated.registers(), memory_);
        ondevice::NvmeRing ring(memory_, {.depth = 64});
        controller.create_queues(ring, 1, controller.open_namespace(1));
        const StormCounts counts = run(ring.ref(0, true), limit_ns);
        controller.delete_queues(1);
        return counts;
    }

    static constexpr u64 kLong = 60'000'000'000;
    ondevice::MemoryBlocks blocks_{kBytes};
};

TEST_F(ClientsOfAController, every_page_is_right) {
    const StormCounts counts = through({.hold_most = 4}, kLong);
    EXPECT_EQ(counts.requests, 200u * kClients);
    EXPECT_EQ(counts.failures + counts.bad_words, 0u);
}

TEST_F(ClientsOfAController, a_wrong_word_is_found) {
    for (u64 page = 0; page < kBytes / kPage; ++page) put(page * kPage / 8 + 3, 1);
    const StormCounts counts = through({}, kLong);
    EXPECT_EQ(counts.bad_words, 200u * kClients);
    EXPECT_EQ(counts.failures, 0u);
}

TEST_F(ClientsOfAController, commands_that_fail_are_counted_and_others_go_on) {
    const StormCounts counts = through({.fail_percent = 20}, kLong);
    EXPECT_EQ(counts.requests, 200u * kClients);
    EXPECT_GT(counts.failures, 0u);
    EXPECT_LT(counts.failures, counts.requests / 2);
    EXPECT_EQ(counts.bad_words, 0u);
}

TEST_F(ClientsOfAController, who_is_not_answered_asks_no_more) {
    const StormCounts counts = through({.lose_percent = 10}, 20'000'000);
    EXPECT_GT(counts.failures, 0u);
    EXPECT_LE(counts.failures, kClients);
    EXPECT_LT(counts.requests, 200u * kClients);
    EXPECT_EQ(counts.bad_words, 0u);
}

}  // namespace
}  // namespace penstock::load
