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
    // Bytes of staging memory that slots of this shape take.
    static std::uint64_t needed_bytes(const Shape& shape) noexcept;

    // Requires: `memory` is registered with the device, or empty, and outlives the slots.
    StagingSlots(Device& device, std::span<std::byte> memory)
        : device_(device), memory_(memory), stream_(device.make_stream()) {}

    std::span<std::byte> memory() const noexcept { return memory_; }
    // Whether the memory holds the slots of this shape, and not so much more that a small transfer would keep it from a
    // large one.
    bool fit(const Shape& shape) const noexcept;
    // Cuts the memory for this shape. Requires: no slot is taken. Throws what making an event throws.
    void cut(const Shape& shape);
    const Shape& shape() const noexcept { return shape_; }
    std::byte* slot(std::uint32_t index) const noexcept;
    Stream& stream() const noexcept { return *stream_; }
    // False: the device refused or lost a copy. What is under way ends, then the slots and their memory must go.
    bool sound() const noexcept { return sound_; }
    // Waits for the stream. Nothing of it touches the slots any more, whether the device failed or not.
    void drain() noexcept;

    bool has_free() const noexcept { return taken_ < shape_.depth; }
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
    void queue_copies(std::uint32_t slot);
    void fail(std::uint32_t slot, const Error& error);
    void end_chunk(std::uint32_t slot, Slot::Phase next, bool without_bytes);

    Device& device_;
    std::span<std::byte> memory_;
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
