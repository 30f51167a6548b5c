// A service behind NVMe queues instead of a mailbox: it moves the right bytes to and from files through every queue,
// refuses entries that make no sense one by one, takes no notice of doorbells that cannot be, and cancels what still
// lies there at its end.
#include "ondevice/nvme/nvme_server.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "context/test_files.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "ondevice/nvme/nvme_queues.hpp"
#include "ondevice/service/opened_file_rig.hpp"
#include "ondevice/service/service.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kSlotBytes = 16384;  // pages that need a list
constexpr u64 kFileBytes = 1 << 20;
constexpr u64 kPatience = 60'000'000'000;

class NvmeServerTest : public testing::Test {
  protected:
    NvmeQueuesSizes sizes(u32 queues, u32 depth = 8) const { return {queues, depth, kSlotBytes, kFileBytes}; }

    // Puts one entry into the queue past the ring's own rules, and returns what the server makes of it.
    Request served(NvmeServer& server, const NvmeRingRef<Native>& ring, const NvmeCommand& command) {
        ring.submission[tail_] = command;
        tail_ = (tail_ + 1) % ring.entries;
        Native::store<Scope::system>(ring.submission_doorbell, tail_);
        Request request{};
        u32 slot = 0;
        EXPECT_TRUE(server.next(slot, request));
        EXPECT_EQ(slot, command.dword[0] >> 16);
        server.complete(slot, Status::ok);
        return request;
    }
    static NvmeCommand read_of(const NvmeRingRef<Native>& ring, u32 id, u32 blocks) {
        const u64 first = ring.area.data_io + u64{id} * kSlotBytes;
        const u64 list = ring.area.lists_io + u64{id} * ring.area.list_stride;
        const u64 second = blocks <= 8 ? 0 : blocks <= 16 ? first + 4096 : list;
        return nvme_command({NvmeOpcode::read, static_cast<u16>(id), 1, 5, blocks, {first, second}});
    }

    RigMemory memory_;
    u32 tail_ = 0;
};

TEST_F(NvmeServerTest, many_warps_read_and_write_a_file_through_all_queues) {
    test::TempDirectory directory;
    const std::string name = directory.file("data");
    test::write_file(name, test::stamped(kFileBytes));
    const auto content = test::stamped(kFileBytes);
    OpenedFile file(name);
    NvmeQueues queues(memory_, memory_, sizes(3));
    Service service(queues, {&file.handle}, {.threads = 2});
    constexpr u32 clients = 6, rounds = 100, bytes = 12288;
    std::atomic<u32> wrong{0};
    const auto ask = [&](u32 client, const Request& request, const auto& fill, const auto& use) {
        NvmeRingRef<Native> ring = queues.refs()[client % 3];
        u32 ticket = 0;
        while (ring.claim(ticket) == Status::busy) std::this_thread::yield();
        fill(static_cast<u8*>(ring.slot_data(ticket)));
        Status status = ring.publish(ticket, request);
        if (status == Status::ok) status = ring.wait(ticket, Native::now_ns() + kPatience);
        if (status != Status::ok) ++wrong;
        else use(static_cast<const u8*>(ring.slot_data(ticket)));
        ring.release(ticket);
    };
    const auto nothing = [](auto*) {};
    std::vector<std::jthread> threads;
    for (u32 client = 0; client < clients; ++client) {
        threads.emplace_back([&, client] {
            for (u32 round = 0; round < rounds; ++round) {
                const u64 own = u64{client} * 65536, at = round * 7919 % 100 * 512 + own;
                ask(client, {at, 0, bytes, 0, RequestOperation::read, 0}, nothing,
                    [&](const u8* got) { wrong += std::memcmp(got, &content[at], bytes) != 0; });
            }
            const u64 last = 524288 + u64{client} * bytes;  // no client reads there meanwhile
            const auto byte = static_cast<u8>(client + 1);
            const auto fill = [&](u8* to) { std::memset(to, byte, bytes); };
            ask(client, {last, 0, bytes, 0, RequestOperation::write, 0}, fill, nothing);
            ask(client, {0, 0, 0, 0, RequestOperation::flush, 0}, nothing, nothing);
        });
    }
    threads.clear();
    EXPECT_EQ(wrong, 0u);
    const ServiceEvidence evidence = service.evidence();
    u64 served = 0;
    for (const ServedCount& one : evidence.by_source) served += one.requests;
    EXPECT_EQ(served, clients * (rounds + 2));
    EXPECT_EQ(evidence.failed, 0u);
    for (u32 queue = 0; queue < 3; ++queue) {
        EXPECT_GT(queues.state(queue).completed, 0u);
        EXPECT_EQ(queues.state(queue).stray, 0u);
    }
    const auto after = test::read_file(name);
    for (u32 client = 0; client < clients; ++client) EXPECT_EQ(after[524288 + client * bytes + 100], client + 1);
}

TEST_F(NvmeServerTest, statuses_reach_who_asked) {
    test::TempDirectory directory;
    const std::string name = directory.file("data");
    test::write_file(name, test::stamped(kFileBytes));
    OpenedFile file(name, O_RDONLY);
    NvmeQueues queues(memory_, memory_, sizes(1));
    Service service(queues, {&file.handle}, {.threads = 1});
    const NvmeRingRef<Native> ring = queues.refs()[0];
    const auto ask = [&](const Request& request) {
        u32 ticket = 0;
        if (const Status sent = ring.submit(request, ticket); sent != Status::ok) return sent;
        const Status status = ring.wait(ticket, Native::now_ns() + kPatience);
        ring.release(ticket);
        return status;
    };
    EXPECT_EQ(ask({0, 0, 4096, 0, RequestOperation::write, 0}), Status::read_only);
    EXPECT_EQ(ask({0, 0, 4096, 0, RequestOperation::read, 0}), Status::ok);
    std::filesystem::resize_file(name, 4096);
    EXPECT_EQ(ask({65536, 0, 4096, 0, RequestOperation::read, 0}), Status::io_error);
    EXPECT_EQ(service.evidence().failed, 2u);
}

TEST_F(NvmeServerTest, an_entry_says_what_is_asked_for) {
    const NvmeQueues queues(memory_, memory_, sizes(1));
    const NvmeRingRef<Native> ring = queues.refs()[0];
    NvmeServer server = queues.server(0, 1);
    EXPECT_EQ(server.slots(), 8u);
    for (const u32 blocks : {1u, 8u, 9u, 16u, 17u, 32u}) {
        const Request request = served(server, ring, read_of(ring, 3, blocks));
        EXPECT_EQ(request.offset_bytes, 5u * 512);
        EXPECT_EQ(request.bytes, blocks * 512);
        EXPECT_EQ(request.file, 0u);
        EXPECT_EQ(request.operation, RequestOperation::read);
    }
    EXPECT_EQ(server.slot_data(3), ring.area.data + 3 * kSlotBytes);
}

TEST_F(NvmeServerTest, what_makes_no_sense_names_a_file_that_there_is_not) {
    const NvmeQueues queues(memory_, memory_, sizes(1));
    const NvmeRingRef<Native> ring = queues.refs()[0];
    NvmeServer server = queues.server(0, 1);
    struct Change {
        const char* what;
        u32 blocks, dword, value;
    };
    const NvmeCommand good = read_of(ring, 2, 8), listed = read_of(ring, 2, 32);
    for (const Change& change : {Change{"an opcode", 8, 0, 0x05u | 2u << 16},
                                 {"fused", 8, 0, 0x102u | 2u << 16},
                                 {"another namespace", 8, 1, 2},
                                 {"another slot's memory", 8, 6, good.dword[6] + kSlotBytes},
                                 {"memory far away", 8, 7, good.dword[7] + 1},
                                 {"another second page", 16, 8, good.dword[6]},
                                 {"another list", 32, 8, listed.dword[8] + 8},
                                 {"more than a slot", 32, 12, 32},
                                 {"a block past all numbers", 8, 11, ~0u}}) {
        NvmeCommand command = read_of(ring, 2, change.blocks);
        EXPECT_EQ(served(server, ring, command).file, 0u);
        command.dword[change.dword] = change.value;
        EXPECT_EQ(served(server, ring, command).file, 0xffffu) << change.what;
    }
}

TEST_F(NvmeServerTest, a_command_of_no_slot_is_answered_at_once) {
    const NvmeQueues queues(memory_, memory_, sizes(1));
    const NvmeRingRef<Native> ring = queues.refs()[0];
    NvmeServer server = queues.server(0, 1);
    ring.submission[0] = read_of(ring, 7, 8);  // a ring of 8 entries has slots 0 to 6
    ring.submission[1] = read_of(ring, 900, 8);
    ring.submission[2] = read_of(ring, 6, 8);
    Native::store<Scope::system>(ring.submission_doorbell, 3u);
    u32 slot = 0;
    Request request{};
    EXPECT_TRUE(server.next(slot, request));
    EXPECT_EQ(slot, 6u);
    EXPECT_FALSE(server.next(slot, request));
    for (const u32 at : {0u, 1u}) {
        const u32 dword3 = ring.completion[at].dword[3];
        EXPECT_EQ(nvme_id(dword3), at == 0 ? 7u : 900u);
        EXPECT_EQ(nvme_status(dword3), Status::invalid);
        EXPECT_EQ(nvme_phase(dword3), 1u);
    }
    EXPECT_EQ(nvme_phase(ring.completion[2].dword[3]), 0u) << "not ended yet";
}

TEST_F(NvmeServerTest, a_doorbell_that_cannot_be_is_left_alone) {
    const NvmeQueues queues(memory_, memory_, sizes(2));
    NvmeServer server = queues.server(0, 2);
    Native::store<Scope::system>(queues.refs()[0].submission_doorbell, 8u);
    const NvmeRingRef<Native> other = queues.refs()[1];
    other.submission[0] = read_of(other, 4, 8);
    Native::store<Scope::system>(other.submission_doorbell, 1u);
    u32 slot = 0;
    Request request{};
    EXPECT_TRUE(server.next(slot, request));
    EXPECT_EQ(slot, 8u + 4u) << "of the second queue";
    EXPECT_FALSE(server.next(slot, request));
}

TEST_F(NvmeServerTest, what_is_there_at_the_end_is_cancelled) {
    test::TempDirectory directory;
    test::write_file(directory.file("data"), test::stamped(kFileBytes));
    OpenedFile file(directory.file("data"));
    NvmeQueues queues(memory_, memory_, sizes(1));
    const NvmeRingRef<Native> ring = queues.refs()[0];
    u32 ticket = 0;
    {
        Service service(queues, {&file.handle}, {.threads = 1});
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it sleeps now, and ends before it looks
        ASSERT_EQ(ring.submit({0, 0, 4096, 0, RequestOperation::read, 0}, ticket), Status::ok);
    }
    const Status status = ring.wait(ticket, Native::now_ns() + kPatience);
    EXPECT_TRUE(status == Status::cancelled || status == Status::ok) << words(status);
}

TEST_F(NvmeServerTest, wrong_sizes_are_refused) {
    EXPECT_THROW(NvmeQueues(memory_, memory_, sizes(0)), Error);
    EXPECT_THROW(NvmeQueues(memory_, memory_, sizes(1, 7)), Error);
    NvmeQueues queues(memory_, memory_, sizes(2));
    EXPECT_THROW(queues.server(1, 1), Error);
    EXPECT_THROW(queues.server(1, 3), Error);
    test::TempDirectory directory;
    test::write_file(directory.file("data"), test::stamped(kFileBytes));
    OpenedFile file(directory.file("data"));
    EXPECT_THROW(Service(queues, {&file.handle}, {.threads = 3}), Error);
    EXPECT_THROW(Service(queues, {&file.handle}, {.threads = 0}), Error);
    EXPECT_THROW(Service(queues, {}, {.threads = 1}), Error);
}

}  // namespace
}  // namespace penstock::ondevice
