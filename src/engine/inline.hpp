// Small transfers on the calling thread: one pread or pwrite, one copy, one short wait. No queue, no wake-up.
//
// Each caller borrows a lane: a stream and one pinned slot. Lanes are made on demand and kept, at most `lanes_max` of
// them; a caller that finds all of them borrowed waits for one. Lanes with large slots also read aligned ranges past
// the page cache. Where a file system refuses that at transfer time, the lane goes through the page cache and records a
// fallback, or fails a strict transfer.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/pieces.hpp"
#include "engine/transfer_state.hpp"
#include "os/disk_waits.hpp"
#include "os/memory/arena.hpp"
#include "os/system.hpp"
#include "penstock/device.hpp"

namespace penstock::engine {

class InlineLanes {
  public:
    static constexpr std::uint64_t kSlotBytes = 64 * kKiB;
    static constexpr std::uint64_t kLargeSlotBytes = 512 * kKiB;

    InlineLanes(Device& device, os::System& system, std::uint64_t slot_bytes, std::size_t lanes_max);
    ~InlineLanes();
    InlineLanes(const InlineLanes&) = delete;
    InlineLanes& operator=(const InlineLanes&) = delete;

    // Runs the only step of the transfer, of path buffered or direct, to its end. Does not throw: an error of the
    // device stops the transfer. Requires: pieces past the page cache fit a slot.
    void run(TransferState& transfer);
    // One read of at most kSlotBytes into device memory, after the work on the stream `after` of the device, a
    // cudaStream_t as a number, if there is one. False: not all bytes came, or the device failed.
    bool read_small(int fd, std::uint64_t offset_bytes, std::span<std::byte> device_memory,
                    std::optional<std::uintptr_t> after = {});
    // As read_small, for many ranges. Those that lie side by side in memory go there by one copy, during which the next
    // ones are read. False too where their bytes come from a disk.
    bool read_many(std::span<const RequestRange> ranges);
    // One read of any size into device memory: `read_part` brings one part of it after the other to a half of the slot,
    // while the part before is copied from the other half. False: a part did not come, or the device failed.
    using ReadPart = std::function<bool(std::span<std::byte> half, std::uint64_t offset_in_memory)>;
    bool read_by_halves(std::span<std::byte> device_memory, const ReadPart& read_part);
    // Staging memory that the lanes hold: it grows with them and is kept.
    std::uint64_t pinned_bytes() const;
    // Fills the slots. False: a caller has borrowed a lane, and nothing is filled.
    bool fill(int byte_value);

  private:
    // Memory that is not pinned: the driver sends so few bytes along with the command, which the GPU would otherwise
    // have to fetch. On an H100 host that takes 0.6 us less of 7.2.
    static constexpr std::uint64_t kFewBytes = 4 * kKiB;
    struct Lane {
        std::unique_ptr<Stream> stream;
        std::byte* slot = nullptr;
        std::array<std::byte, kFewBytes> few;
        std::array<std::unique_ptr<Event>, 2> copied{};  // of each half of the slot; made when needed
    };
    std::unique_ptr<Lane> borrow();
    std::byte* next_slot();  // Requires: mutex_
    void give_back(std::unique_ptr<Lane> lane);
    // Calls `fill` with a lane, and then waits for the copies that it began. False: it said so, the device failed, or
    // there is no memory.
    bool by_halves(const std::function<bool(Lane&)>& fill);
    struct HalfTurn {
        std::size_t number = 0, of = 0;  // halves that one call fills, one after the other
    };
    static void settle(Lane& lane);
    std::size_t turns_of(std::span<const RequestRange> ranges) const;
    std::byte* free_half(Lane& lane, const HalfTurn& turn) const;
    std::uint64_t half_bytes() const { return std::max(kSlotBytes, slot_bytes_ / 2); }
    void copy_half(Lane& lane, const HalfTurn& turn, std::span<std::byte> device_memory) const;
    bool fill_halves(Lane& lane, std::span<const RequestRange> ranges);
    bool read_to(std::byte* half, std::span<const RequestRange> ranges, os::DiskWaits& waits);
    void move_piece(Lane* lane,  // null: the host reaches the memory
                     TransferState& transfer, const PlanPiece& planned);
    void move_storage(TransferState& transfer, Piece& piece);

    Device& device_;
    os::System& system_;
    const std::uint64_t slot_bytes_;
    const std::size_t lanes_max_;
    mutable std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<Lane>> idle_;
    std::size_t made_ = 0;
    std::vector<os::Arena> arenas_;  // the slots, as many in each as fit
};

}  // namespace penstock::engine
