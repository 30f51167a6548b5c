// The controller in this process and the code that brings it up, tested against each other: facts, queues, refusals and
// deadlines. Also the kit's clients over rings on that controller.
#include "support/nvme/emulated_nvme.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "ondevice/channel/channel_kit_rig.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "os/test_file.hpp"
#include "penstock/error.hpp"
#include "support/nvme/block_store.hpp"
#include "support/nvme/emulated_queue.hpp"
#include "support/nvme/nvme_controller.hpp"

namespace penstock::ondevice {
namespace {

EmulatedFaults faults_of(const kit::Faults& faults) {
    EmulatedFaults same;
    same.hold_most = faults.hold_most;
    same.fail_percent = faults.fail_percent;
    same.delay_percent = faults.delay_percent;
    same.lose_percent = faults.lose_percent;
    same.delay_ns = faults.delay_ns;
    same.late_ns = faults.late_ns;
    return same;
}

struct Machine {
    RigMemory memory;
    MemoryBlocks blocks{u64{1} << 20};
    EmulatedNvme device;
    explicit Machine(const EmulatedNvmeOptions& options = {}) : device(blocks, memory.translator(), options) {}
};

TEST(NvmeControllerTest, learns_what_the_controller_is) {
    Machine machine({.most_entries = 256, .most_queues = 5, .block_shift = 12});
    NvmeController controller(machine.device.registers(), machine.memory);
    EXPECT_EQ(controller.facts().serial, "EMULATED");
    EXPECT_EQ(controller.facts().model, "Penstock emulated controller");
    EXPECT_EQ(controller.facts().most_entries, 256u);
    EXPECT_EQ(controller.facts().queues, 5u);
    EXPECT_EQ(controller.facts().most_bytes, 131072u);
    const NvmeNamespace space = controller.open_namespace(1);
    EXPECT_EQ(space.blocks, 256u);
    EXPECT_EQ(space.block_shift, 12u);
    EXPECT_THROW(controller.open_namespace(2), Error);
}

// Writes each size at its offset, reads it back, and compares. The sizes take one page, two pages, and a list.
void write_and_read(const NvmeRingRef<Native>& ring) {
    for (const u32 bytes : {512u, 4096u, 8192u, 12288u, 65536u}) {
        u32 ticket = 0;
        ASSERT_EQ(ring.claim(ticket), Status::ok);
        u8* data = static_cast<u8*>(ring.slot_data(ticket));
        for (u32 at = 0; at < bytes; ++at) data[at] = static_cast<u8>(at * 7 + bytes / 512);
        ASSERT_EQ(ring.publish(ticket, {512, 0, bytes, 0, RequestOperation::write, 0}), Status::ok);
        ASSERT_EQ(ring.wait(ticket, kit::far()), Status::ok);
        ring.release(ticket);
        ASSERT_EQ(ring.submit({512, 0, bytes, 0, RequestOperation::read, 0}, ticket), Status::ok);
        ASSERT_EQ(ring.wait(ticket, kit::far()), Status::ok);
        data = static_cast<u8*>(ring.slot_data(ticket));
        u32 wrong = 0;
        for (u32 at = 0; at < bytes; ++at) wrong += data[at] != static_cast<u8>(at * 7 + bytes / 512) ? 1 : 0;
        EXPECT_EQ(wrong, 0u) << bytes;
        ring.release(ticket);
    }
}

TEST(NvmeControllerTest, queues_work_are_deleted_and_made_again) {
    for (const u32 stride : {0u, 2u}) {
        Machine machine({.doorbell_stride = stride});
        NvmeController controller(machine.device.registers(), machine.memory);
        const NvmeNamespace space = controller.open_namespace(1);
        for (int again = 0; again < 6; ++again) {  // several times, so that the admin queue wraps too
            NvmeRing ring(machine.memory, {.depth = 4, .slot_bytes = 65536});
            controller.create_queues(ring, 3, space);
            write_and_read(ring.ref());
            controller.delete_queues(3);
        }
        EXPECT_EQ(machine.device.counts().failed, 0u);
        controller.shut_down();
    }
}

TEST(NvmeControllerTest, a_controller_is_brought_up_again_after_another_left) {
    Machine machine;
    for (int again = 0; again < 3; ++again) {
        NvmeController controller(machine.device.registers(), machine.memory);
        NvmeRing ring(machine.memory, {.depth = 8, .slot_bytes = 65536});
        controller.create_queues(ring, 1, controller.open_namespace(1));
        write_and_read(ring.ref());
    }
}

TEST(NvmeControllerTest, refusals_tell_the_command_and_the_status) {
    Machine machine({.most_entries = 64});
    NvmeController controller(machine.device.registers(), machine.memory);
    const NvmeNamespace space = controller.open_namespace(1);
    NvmeRing ring(machine.memory, {.depth = 64});
    NvmeRing deep(machine.memory, {.depth = 128});
    EXPECT_THROW(controller.create_queues(deep, 1, space), Error);
    EXPECT_THROW(controller.create_queues(ring, 0, space), Error);
    controller.create_queues(ring, 1, space);
    try {
        controller.create_queues(ring, 1, space);
        FAIL() << "the pair exists";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().code, ErrorCode::device_error);
        EXPECT_EQ(error.info().system_code, 0x101);
        EXPECT_EQ(error.info().operation, "create completion queue");
    }
    EXPECT_THROW(controller.delete_queues(2), Error);
}

TEST(NvmeControllerTest, a_controller_that_never_gets_ready_or_is_gone_is_told) {
    Machine machine({.never_ready = true});
    try {
        NvmeController controller(machine.device.registers(), machine.memory, {.ready_ns = 20'000'000});
        FAIL() << "it is not ready";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().code, ErrorCode::timed_out);
        EXPECT_EQ(error.info().operation, "enable");
    }
    std::vector<u64> gone(0x1000, ~u64{0});
    const NvmeRegisters registers(reinterpret_cast<u8*>(gone.data()), gone.size() * 8);
    EXPECT_THROW(NvmeController(registers, machine.memory), Error);
}

TEST(EmulatedNvmeTest, checks_commands_as_a_device_does) {
    Machine machine({.transfer_shift = 1});
    NvmeController controller(machine.device.registers(), machine.memory);
    NvmeNamespace space = controller.open_namespace(1);
    NvmeRing ring(machine.memory, {.depth = 8, .slot_bytes = 16384});
    controller.create_queues(ring, 1, space);
    const auto read = [&](const NvmeNamespace& as, u64 offset, u32 bytes, u64 memory) {
        NvmeRingRef<Native> ref = ring.ref();
        ref.space = as;
        u32 ticket = 0;
        Status status = ref.submit({offset, memory, bytes, 0, RequestOperation::read, 0}, ticket);
        if (status == Status::ok) {
            status = ref.wait(ticket, kit::far());
            ref.release(ticket);
        }
        return status;
    };
    EXPECT_EQ(read(space, 0, 8192, 0), Status::ok);
    EXPECT_EQ(read(space, 0, 12288, 0), Status::invalid) << "more than one command may";
    EXPECT_EQ(read(space, 0, 512, 4096), Status::invalid) << "no memory of the controller";
    EXPECT_EQ(read({7, 9, space.blocks}, 0, 512, 0), Status::invalid) << "no such namespace";
    EXPECT_EQ(read({1, 9, space.blocks * 2}, space.blocks * 512, 512, 0), Status::out_of_range);
    EXPECT_EQ(ring.state().errors, 4u);
    EXPECT_EQ(ring.state().stray, 0u);
}

TEST(EmulatedNvmeTest, a_doorbell_beyond_its_queue_stops_that_queue_alone) {
    Machine machine;
    NvmeController controller(machine.device.registers(), machine.memory);
    const NvmeNamespace space = controller.open_namespace(1);
    NvmeRing broken(machine.memory, {.depth = 4});
    NvmeRing sound(machine.memory, {.depth = 4, .slot_bytes = 65536});
    controller.create_queues(broken, 1, space);
    controller.create_queues(sound, 2, space);
    machine.device.registers().write32(0x1000 + 2 * 4, 4);
    while (machine.device.counts().bad_doorbells == 0) Native::pause(0);
    u32 ticket = 0;
    ASSERT_EQ(broken.ref().submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::ok);
    EXPECT_EQ(broken.ref().wait(ticket, kit::in_ms(5)), Status::timed_out);
    write_and_read(sound.ref());
    EXPECT_EQ(machine.device.counts().bad_doorbells, 1u);
}

TEST(EmulatedNvmeTest, a_command_lost_for_ever_keeps_its_slot) {
    EmulatedNvmeOptions options;
    options.faults.lose_percent = 100;
    options.faults.late_ns = 0;
    Machine machine(options);
    NvmeController controller(machine.device.registers(), machine.memory);
    NvmeRing ring(machine.memory, {.depth = 2});
    controller.create_queues(ring, 1, controller.open_namespace(1));
    u32 ticket = 0;
    u32 other = 0;
    ASSERT_EQ(ring.ref().submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::ok);
    EXPECT_EQ(ring.ref().wait(ticket, kit::in_ms(20)), Status::timed_out);
    EXPECT_EQ(ring.ref().claim(other), Status::busy);
    EXPECT_FALSE(ring.ref().settled(ticket));
    EXPECT_EQ(machine.device.counts().lost, 1u);
}

struct FailingReads : os::System {
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        calls += 1;
        if (calls % 3 == 0) {
            errno = EINTR;
            return -1;
        }
        if (offset >= 65536) {
            errno = EIO;
            return -1;
        }
        return os::System::pread(fd, memory, std::min<std::size_t>(bytes, 700), offset);
    }
    std::atomic<int> calls{0};
};

TEST(EmulatedNvmeTest, a_file_behind_it_with_short_counts_interrupts_and_errors) {
    RigMemory memory;
    const os::TestFile file(os::disk_folder(), 1 << 20);
    FailingReads system;
    FileBlocks blocks(file.fd(), 1 << 20, system);
    EmulatedNvme device(blocks, memory.translator());
    NvmeController controller(device.registers(), memory);
    NvmeRing ring(memory, {.depth = 8, .slot_bytes = 65536});
    controller.create_queues(ring, 1, controller.open_namespace(1));
    u32 ticket = 0;
    ASSERT_EQ(ring.ref().submit({0, 0, 8192, 0, RequestOperation::read, 0}, ticket), Status::ok);
    ASSERT_EQ(ring.ref().wait(ticket, kit::far()), Status::ok);
    EXPECT_EQ(static_cast<u8*>(ring.ref().slot_data(ticket))[8191], 'p');
    ring.ref().release(ticket);
    ASSERT_EQ(ring.ref().submit({65536, 0, 4096, 0, RequestOperation::read, 0}, ticket), Status::ok);
    EXPECT_EQ(ring.ref().wait(ticket, kit::far()), Status::io_error);
    EXPECT_EQ(ring.state().last_error >> 17 & 0x3ff, 0x281u);
}

TEST(EmulatedNvmeTest, clients_of_two_rings_over_it_read_what_they_wrote) {
    RigMemory memory;
    const os::TestFile file(os::disk_folder(), 1 << 20);
    FileBlocks blocks(file.fd(), 1 << 20);
    EmulatedNvmeOptions options;
    options.faults = faults_of({.hold_most = 4, .fail_percent = 2, .delay_percent = 5, .lose_percent = 1});
    EmulatedNvme device(blocks, memory.translator(), options);
    NvmeController controller(device.registers(), memory);
    NvmeRing first(memory, {.depth = 16});
    NvmeRing second(memory, {.depth = 4});
    const NvmeNamespace space = controller.open_namespace(1);
    controller.create_queues(first, 1, space);
    controller.create_queues(second, 2, space);
    struct Rings {
        NvmeRing& first;
        NvmeRing& second;
        NvmeRingRef<Native> channel(u32 client) { return (client % 2 == 0 ? first : second).ref(client, true); }
    } rings{first, second};
    kit::ClientPlan plan{.requests = 400, .cell_bytes = 1024};
    plan.deadline_ns = 20'000'000;
    const std::vector<u8> zeros(1 << 20);
    ASSERT_TRUE(blocks.write(0, zeros.data(), zeros.size()));
    const kit::Tally tally = kit::run_clients(rings, {.clients = 4, .plan = plan});
    EXPECT_EQ(tally.mismatches + tally.surprises, 0u);
    EXPECT_EQ(tally.ok + tally.errors + tally.timeouts, 1600u);
    EXPECT_GT(device.counts().reordered, 0u);
    EXPECT_GT(device.counts().lost, 0u);
    EXPECT_EQ(first.state().stray + second.state().stray, 0u);
}

}  // namespace
}  // namespace penstock::ondevice
