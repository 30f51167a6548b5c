// Staging slots: memory cut into parts of one size, the stream that copies between them and the device, and the state
// of each slot. A worker that works alone has slots of its own; the workers of a team share theirs.
//
//   a read    free -> storage -> copying -> free
//   a write   free -> copying -> storage -> free
//
// A slot holds one chunk of a job. A team brings it in parts; the copy to the device starts when the last part is
// there. Without staging memory nothing is copied, except from memory that a path lends. A slot whose read was given up
// is taken until the system has ended that read, which may still write to it.
//
// A team begins with two slots and gets others while it works (add): the first touch of their memory and its
// registration take longer than a copy of it, and the first two are filled meanwhile. Each block holds whole slots.
//
// Slots take no lock: one worker uses them, or a team's mutex guards them. The pool keeps idle ones, because their
// memory is costly to register with the device.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/jobs/job.hpp"
#include "penstock/device.hpp"

namespace penstock::engine {

// How long a worker sleeps at most before it looks around.
inline constexpr auto kWorkerSleep = std::chrono::milliseconds(100);

class StagingSlots {
  public:
    // Bytes of staging memory that slots of this shape take, and that a team of this shape begins with.
    static std::uint64_t needed_bytes(const Shape& shape) noexcept;
    static std::uint64_t first_bytes(const Shape& shape) noexcept;

    // Requires: `memory` is registered with the device, or empty, and outlives the slots.
    StagingSlots(Device& device, std::span<std::byte> memory) : device_(device), stream_(device.make_stream()) {
        if (!memory.empty()) blocks_.push_back(memory);
    }

    // The memory, in blocks that lie anywhere; slots that are no team's have one at most.
    std::span<const std::span<std::byte>> blocks() const noexcept { return blocks_; }
    std::uint64_t bytes() const noexcept;
    // Whether the memory holds the slots of this shape, or the first of a team's, and not so much more that a small
    // transfer would keep it from a large one.
    bool fit(const Shape& shape) const noexcept;
    bool fit_first(const Shape& shape) const noexcept;
    // Cuts the memory for this shape, into as many slots as it holds. Requires: no slot is taken. Throws what making an
    // event throws.
    void cut(const Shape& shape);
    // Bytes of the next block, or 0: the shape has all its slots.
    std::uint64_t missing_bytes() const noexcept;
    // Cuts one more block, as the constructor's. Requires: its size is missing_bytes(), and cut() was called.
    void add(std::span<std::byte> memory) noexcept;
    const Shape& shape() const noexcept { return shape_; }
    std::byte* slot(std::uint32_t index) const noexcept;
    Stream& stream() const noexcept { return *stream_; }
    // False: the device refused or lost a copy. What is under way ends, then the slots and their memory must go.
    bool sound() const noexcept { return sound_; }
    // Waits for the stream. Nothing of it touches the slots any more, whether the device failed or not.
    void drain() noexcept;

    bool has_free() const noexcept { return taken_ < slots_.size(); }
    bool all_free() const noexcept { return taken_ == 0; }
    // Whether some chunk of the job has not ended.
    bool hold(const Job& job) const noexcept;
    std::size_t copying() const noexcept { return copying_.size(); }
    // The copy that ends first. Requires: copying() != 0.
    Event& oldest_copy() const noexcept { return *events_[copying_.front()]; }
    // The device has done all copies that it was given. Throws what Event::done throws.
    bool device_idle() const { return !newest_ || events_[*newest_]->done(); }

    // Takes a slot for the chunk and gives its pieces their places there: free -> storage. Requires: has_free().
    void open(Chunk& chunk, Job& job);
    // The chunk was cut into so many parts, each of which will be put back.
    void expect_parts(std::uint32_t slot, std::uint32_t parts) noexcept { slots_[slot].parts_open = parts; }
    // Begins the write of a chunk that was opened: storage -> copying. It stays here until take_ready().
    void copy_to_host(Chunk& chunk);
    // A chunk of a write that is now ready for storage: copying -> storage. False: there is none.
    bool take_ready(Chunk& chunk);
    // Copies bytes that the path lends of a piece to the device. False: the device refused.
    bool copy_lent(const Chunk& chunk, const Piece& piece, const Completion& completion);
    // Storage is done with a chunk or a part. True: it was the slot's last.
    bool put(Chunk& chunk);
    // Copies what has been put of a slot whose other parts are still under way.
    void copy_early(std::uint32_t slot);
    // Requires: put() was true. storage -> copying, or free where nothing is to be copied.
    void leave_storage(std::uint32_t slot);
    // Looks which copies have ended: copying -> free, or ready for storage. True: some have.
    bool collect();

    // The transfer of a chunk in storage stopped, and the system does not end its reads: the chunk ends without bytes,
    // and its slot is taken until landed().
    void give_up(Chunk& chunk);
    void landed(std::uint32_t slot) noexcept;
    // Ends every chunk that has been put or is being copied, without bytes. Requires: drain(), and no path works for
    // these slots.
    void abandon();

    std::uint64_t idle_since = 0;  // for the pool: the turn in which they came back

  private:
    struct Slot {
        enum class Phase : std::uint8_t { free, storage, copying, given_up } phase = Phase::free;
        Job* job = nullptr;
        std::vector<Piece> pieces{};      // put, or waiting to be ready for storage
        std::size_t queued = 0;           // of them: their copies are in the stream
        std::uint32_t parts_open = 0;     // opened and not put yet
        bool lent = false;                // copies from lent memory are in the stream
        std::optional<Error> failure{};   // of an early copy
    };
    bool holds_at_least(std::uint32_t slots, const Shape& shape) const noexcept;
    void queue_copies(std::uint32_t slot);
    void fail(std::uint32_t slot, const Error& error);
    void end_chunk(std::uint32_t slot, Slot::Phase next, bool without_bytes);

    Device& device_;
    std::vector<std::span<std::byte>> blocks_{};
    Shape shape_;
    std::unique_ptr<Stream> stream_;
    std::vector<std::unique_ptr<Event>> events_;  // of each slot's last copy
    std::vector<Slot> slots_;
    std::uint32_t taken_ = 0;
    std::deque<std::uint32_t> copying_;      // slots, oldest first
    std::deque<std::uint32_t> ready_;        // slots of writes whose copy has ended
    std::optional<std::uint32_t> newest_{};  // the slot whose event was recorded last
    std::vector<CopyPiece> copies_;
    bool sound_ = true;
};

}  // namespace penstock::engine
