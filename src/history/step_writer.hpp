// StepWriter: the thread that brings packed slots into the file, in order, and frees them.
//
// Of each step: wait until the slot is packed, compress what is to be, write the data in one submission, then the time,
// then let readers see it. After a step that failed nothing is written any more, and everybody who asks is told of it.
//
// A history without slots has no thread: the caller writes each field, and ends each step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "history/layout.hpp"
#include "history/step_encoder.hpp"
#include "history/target/history_target.hpp"
#include "penstock/history.hpp"

namespace penstock::history {

struct HistorySlot {
    Buffer memory;
    std::unique_ptr<Event> packed;  // null where the caller packs
    bool is_free = true;            // guarded by the mutex of the writer
};

// Where the data of a part of a variable lie in a slot.
struct SlotField {
    std::string name;       // of the variable
    std::size_t place = 0;  // of the part, among those of a step
    std::uint64_t offset_bytes = 0;
    std::vector<FieldRun> runs{};  // empty: as it lies in the slot
};

struct EndedStep {
    std::size_t slot = 0;
    double time = 0;
    double begin = 0;  // of its interval
};

struct WriterPlan {
    Context context;
    std::vector<SlotField> fields;
    std::vector<formats::DataPlace> first;  // of the first step, which is reserved already where nothing is compressed
    TransferOptions transfer{};
    bool has_bounds = false;
    bool is_alone = true;  // no other process writes the file: steps are published as they are written
    bool is_first = true;  // the process that writes times, and publishes
    bool is_durable = false;
    bool has_slots = true;
    std::unique_ptr<StepEncoder> encoder{};  // null: nothing is compressed
};

struct SlotWait {
    bool ended = true;  // false: the deadline came first
    double seconds = 0;
};

class StepWriter {
  public:
    // Starts the thread. Throws Error where the system has none.
    explicit StepWriter(WriterPlan plan);
    ~StepWriter();  // the steps that were given are written
    StepWriter(const StepWriter&) = delete;
    StepWriter& operator=(const StepWriter&) = delete;

    // Once, before the first step is given. Both must live as long.
    void begin(HistoryTarget& target, std::vector<HistorySlot>& slots);
    // Without slots: writes a field of the step that is under way, from memory that has it as the file does. Throws
    // Error, and then the step has failed.
    void write_field(const std::string& name, const MemoryView& memory);
    // Takes a slot that is packed, or will be. After a step that failed it is not written. Without slots the step ends.
    void give(const EndedStep& step) noexcept;
    // Until the slot is free, or a step failed.
    SlotWait wait_for(std::size_t slot, Deadline deadline);
    // Until every step that was given is in the file, or one failed. False at the deadline.
    bool wait(Deadline deadline);
    // Throws Error of the step that failed.
    void check() const;
    // Where several processes write the file: times of these steps, and then readers see them. Throws Error.
    void publish(std::uint64_t steps);
    // Adds what the thread knows.
    void tell(HistoryFacts& facts) const;

  private:
    template <typename Condition>
    bool wait_until(Deadline deadline, Condition condition);
    void run();
    void wait_for_work(std::unique_lock<std::mutex>& lock);
    void write(const EndedStep& step);
    void write_data(const std::vector<Range>& parts, MemoryKind kind, std::span<const formats::DataPlace> places);
    void finish(const EndedStep& step, std::vector<formats::DataPlace> places);
    const std::vector<formats::DataPlace>& places_under_way();
    void complete(const EndedStep& step, std::span<const formats::DataPlace> places, std::uint64_t number);
    void show(std::uint64_t number);
    void free_slot(std::size_t slot);
    std::vector<formats::StoredChunks> compress(std::uint64_t number);
    ErrorInfo failure_under_way() const;
    Error named(ErrorInfo info, std::uint64_t number, const std::string& what) const;
    std::vector<Range> ranges(std::byte* memory, std::span<const formats::DataPlace> places) const;
    std::vector<Range> ranges_of(const std::string& field, const MemoryView& memory) const;
    std::string variable_of(const ErrorInfo& error, std::span<const formats::DataPlace> places) const;

    HistoryTarget* target_ = nullptr;  // as slots_, set once before the first step is given
    std::vector<HistorySlot>* slots_ = nullptr;
    WriterPlan plan_;
    mutable std::mutex mutex_;  // guards what follows, and `is_free` of the slots
    std::condition_variable changed_;
    std::vector<EndedStep> steps_;  // in order; with room for one of each slot
    std::optional<ErrorInfo> failure_;
    bool is_writing_ = false;
    bool stops_ = false;
    struct Unseen {
        EndedStep step;
        std::vector<formats::DataPlace> places;
    };
    std::optional<std::vector<formats::DataPlace>> under_way_;  // without slots: places of the step that is written now
    std::deque<Unseen> unseen_;  // written, and not published
    std::uint64_t written_ = 0;
    std::uint64_t published_ = 0;
    std::uint64_t stored_bytes_ = 0;
    double write_seconds_ = 0;
    double encode_seconds_ = 0;
    Evidence last_;
    std::thread thread_;
};

}  // namespace penstock::history
