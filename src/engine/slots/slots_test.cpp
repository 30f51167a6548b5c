// The states of slots, as a session sees them through OwnSlots: what is copied, when, and when a slot is free again.
#include <algorithm>

#include "engine/memory_rig.hpp"
#include "engine/slots/own_slots.hpp"
#include "engine/slots/staging.hpp"
#include "engine/slots/staging_slots.hpp"
#include "engine/workers/worker_path.hpp"

namespace penstock::engine {
namespace {

using test::EngineOverMemory;
using test::random_bytes;

constexpr std::uint64_t kSlot = 64 * kKiB;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

class SlotStates : public EngineOverMemory {
  protected:
    // A transfer of some slots' worth, and slots that copy one slot in a tenth of a second.
    void begin(Direction direction, std::uint64_t slots, std::uint32_t depth) {
        HostDeviceOptions slow;
        slow.bandwidth_bytes_per_s = kSlot / 0.1;
        device_ = make_host_device(slow);
        memory_ = device_bytes(slots * kSlot);
        shape_ = {.path = PathKind::memory, .direction = direction, .chunk_bytes = kSlot, .depth = depth};
        transfer_ = transfer(direction, {{&file_, 0, memory_, slots * kSlot, 0}}, shape_);
        scheduler_.add(std::make_shared<Job>(transfer_, 0, CutRules{.chunk_bytes = kSlot}));
        staging_ = std::make_unique<Staging>(*device_, -1, 8 * kMiB);
        slots_ = std::make_unique<StagingSlots>(*device_, staging_->take(StagingSlots::needed_bytes(shape_)));
        slots_->cut(shape_);
        own_ = std::make_unique<OwnSlots>(scheduler_, *slots_, scheduler_.take());
    }
    // What a path does: all of the chunk's bytes come from storage, or go there.
    static void move_all_of(Chunk& chunk, std::byte value) {
        for (Piece& piece : chunk.pieces) {
            std::fill_n(piece.operation_memory, piece.operation_bytes, value);
            piece.moved_bytes = piece.operation_bytes;
        }
    }
    static bool all_are(const std::byte* memory, std::byte value) {
        return std::all_of(memory, memory + kSlot, [value](std::byte byte) { return byte == value; });
    }
    void end() {
        while (!own_->idle()) {
            if (!own_->collect()) own_->wait_for_copy(soon());
        }
        own_->leave();
        EXPECT_TRUE(transfer_->done());
        own_.reset();
        slots_.reset();
    }

    Scheduler scheduler_;
    std::byte* memory_ = nullptr;
    Shape shape_;
    std::shared_ptr<TransferState> transfer_;
    std::unique_ptr<Staging> staging_;
    std::unique_ptr<StagingSlots> slots_;
    std::unique_ptr<OwnSlots> own_;
};

#if !defined(__SANITIZE_THREAD__)  // looks at memory while it is copied to
TEST_F(SlotStates, a_slot_of_a_read_is_free_again_once_its_bytes_are_on_the_device) {
    begin(Direction::read, 3, 2);
    std::fill_n(memory_, 3 * kSlot, std::byte{0});
    Chunk first, second, third;
    ASSERT_TRUE(own_->next(first, true));
    ASSERT_TRUE(own_->next(second, true));
    EXPECT_NE(first.slot, second.slot);
    EXPECT_FALSE(own_->next(third, true));  // both are being filled
    move_all_of(first, std::byte{1});
    own_->stored(first);
    while (!own_->collect()) own_->wait_for_copy(soon());
    EXPECT_TRUE(all_are(memory_, std::byte{1}));
    ASSERT_TRUE(own_->next(third, true));
    EXPECT_EQ(third.slot, first.slot);
    move_all_of(second, std::byte{2});
    own_->stored(second);
    move_all_of(third, std::byte{3});
    own_->stored(third);
    end();
    EXPECT_EQ(transfer_->result().bytes, 3 * kSlot);
    EXPECT_TRUE(all_are(memory_ + kSlot, std::byte{2}) && all_are(memory_ + 2 * kSlot, std::byte{3}));
}
#endif

TEST_F(SlotStates, a_chunk_of_a_write_goes_to_storage_once_its_bytes_are_on_the_host) {
    begin(Direction::write, 3, 2);
    std::fill_n(memory_, 3 * kSlot, std::byte{7});
    for (int moved = 0; moved < 3; ++moved) {
        Chunk chunk;
        while (!own_->next(chunk, true)) {
            EXPECT_TRUE(own_->copying());
            EXPECT_EQ(chunk.job, nullptr);
            if (!own_->collect()) own_->wait_for_copy(soon());
        }
        EXPECT_TRUE(all_are(chunk.pieces.front().operation_memory, std::byte{7}));
        move_all_of(chunk, std::byte{7});
        own_->stored(chunk);
    }
    end();
    EXPECT_EQ(transfer_->result().bytes, 3 * kSlot);
}

TEST_F(SlotStates, a_session_that_is_about_to_end_opens_no_slot_and_finishes_what_has_begun) {
    begin(Direction::write, 3, 2);
    Chunk chunk;
    EXPECT_FALSE(own_->next(chunk, false));
    EXPECT_TRUE(own_->idle());
    for (std::uint64_t moved = 0; moved < 2; ++moved) {
        while (!own_->next(chunk, moved == 0 && own_->idle())) {
            if (!own_->collect()) own_->wait_for_copy(soon());
        }
        move_all_of(chunk, std::byte{7});
        own_->stored(chunk);
    }
    EXPECT_TRUE(own_->idle());  // the third slot's worth was not begun
    transfer_->cancel();
    end();
    EXPECT_EQ(transfer_->result().bytes, 2 * kSlot);
}

TEST_F(SlotStates, a_slot_that_was_given_up_is_taken_until_its_operations_have_landed) {
    begin(Direction::read, 2, 1);
    Chunk hangs, next;
    ASSERT_TRUE(own_->next(hangs, true));
    transfer_->cancel();
    ASSERT_TRUE(own_->give_up(hangs));
    EXPECT_TRUE(transfer_->done());  // does not wait for it
    EXPECT_FALSE(own_->idle());
    const auto other = transfer(Direction::read, {{&file_, 0, memory_, kSlot, 0}}, shape_);
    scheduler_.add(std::make_shared<Job>(other, 0, CutRules{.chunk_bytes = kSlot}));
    EXPECT_FALSE(own_->next(next, true));
    own_->landed(hangs);
    ASSERT_TRUE(own_->next(next, true));
    move_all_of(next, std::byte{9});
    own_->stored(next);
    end();
    EXPECT_EQ(other->result().bytes, kSlot);
}

TEST_F(SlotStates, a_refused_copy_ends_its_transfer_and_the_slots_are_not_used_again) {
    begin(Direction::read, 1, 1);
    std::vector<std::byte> no_device_memory(kSlot);
    const auto wild = transfer(Direction::read, {{&file_, 0, no_device_memory.data(), kSlot, 0}}, shape_);
    scheduler_.add(std::make_shared<Job>(wild, 0, CutRules{.chunk_bytes = kSlot}));
    for (int i = 0; i < 2; ++i) {
        Chunk chunk;
        ASSERT_TRUE(own_->next(chunk, true));
        move_all_of(chunk, std::byte{1});
        own_->stored(chunk);
        while (!own_->idle()) {
            if (!own_->collect()) own_->wait_for_copy(soon());
        }
    }
    EXPECT_FALSE(own_->sound());
    EXPECT_FALSE(wild->result().ok());
    EXPECT_EQ(wild->result().bytes, 0u);
    EXPECT_TRUE(transfer_->result().ok());
    end();
}

}  // namespace
}  // namespace penstock::engine
