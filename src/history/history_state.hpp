// HistoryState: a history while it runs. Definitions until it begins; then the step that is packed now, and the writer
// of those that ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "context/files/process_mark.hpp"
#include "history/definitions/defined_names.hpp"
#include "history/layout.hpp"
#include "history/step_writer.hpp"
#include "penstock/history.hpp"

namespace penstock::history {

// A field of this history while it runs.
struct RunningField {
    FieldLayout layout;
    std::optional<Buffer> sum;  // of a statistic, where this process has some of it
    std::uint64_t puts = 0;  // in this step
};

// Error{invalid_argument} of a call that makes no sense.
Error refused(const char* operation, std::string cause, std::string advice);

class HistoryState {
  public:
    HistoryState(const Context& context, std::string name, const HistoryOptions& options);
    const std::string& name() const noexcept { return name_; }
    ~HistoryState();
    HistoryState(const HistoryState&) = delete;
    HistoryState& operator=(const HistoryState&) = delete;

    // Definitions that make no sense together are not taken.
    void define(const HistoryVariable& variable);
    void define(const HistoryConstant& constant);
    void set_attribute(const HistoryAttribute& attribute, const std::string& variable);
    void use_preset(const HistoryPreset& preset);
    void begin();
    std::uint64_t digest();
    std::span<std::uint64_t> cuts();
    std::span<std::uint64_t> coverage();
    void publish(std::uint64_t steps);
    void put(const std::string& variable, const void* data, std::span<const std::int64_t> strides_bytes);
    bool wait_for_slot(Deadline deadline);
    bool is_of_this_process() const noexcept { return process_.here(); }
    void use_stream(std::uintptr_t stream) noexcept { caller_stream_ = stream; }
    void check_step(double time);
    void drop_step();
    void end_step(double time);
    bool wait(Deadline deadline);
    HistoryFacts facts() const;
    void close();

  private:
    bool has_slots() const noexcept { return options_.slots != 0; }
    bool on_device() const noexcept { return options_.memory == MemoryKind::device; }
    MemoryKind slot_kind() const noexcept { return on_device() ? MemoryKind::device : MemoryKind::pinned; }
    std::vector<RunningField> make_fields(const HistoryLayout& layout) const;
    std::vector<HistorySlot> made_slots(std::uint64_t bytes, const std::vector<FieldLayout>& fields);
    void fill_gaps(const Buffer& slot, const std::vector<FieldLayout>& fields) const;
    HistoryTargetOptions target_options(const HistoryLayout& layout) const;
    void check_cuts(const HistoryLayout& layout) const;
    void check_coverage() const;
    void check_definable(const char* operation) const;
    void forget_agreements();
    void check_process() const;
    void check_open(const char* operation) const;
    void begin_by(const std::string& variable, const void* data, std::span<const std::int64_t> strides_bytes);
    Buffer zeroed(std::uint64_t bytes) const;
    RunningField& field_named(const std::string& name);
    void check_memory(const FieldLayout& layout, const void* data) const;
    void take_slot();
    void let_caller_go_on();
    void pack(const Pack& wanted, const void* source, void* destination);
    void pack_field(RunningField& field, const FieldLayout& layout, const void* data, std::byte* slot);
    void finish_statistics();
    // Without slots.
    std::byte* packed_apart(std::uint64_t bytes);
    void write_at_once(RunningField& field, const FieldLayout& layout, const void* data);
    void write_statistics();
    void write_packed(const FieldLayout& layout, std::byte* memory);
    bool has_open_step() const noexcept;
    void need_whole_step(double time) const;

    Context context_;
    std::string name_;
    HistoryOptions options_;
    Definitions definitions_;
    DefinedNames names_;
    std::vector<RunningField> fields_;
    std::unique_ptr<FileDraft> draft_;  // of these definitions, until begin(); null: not made, or a store
    std::unique_ptr<HistoryTarget> target_;
    std::unique_ptr<Stream> stream_;
    std::vector<HistorySlot> slots_;
    std::optional<Buffer> apart_;  // without slots: where a field is packed that does not lie as the file has it
    std::unique_ptr<StepWriter> writer_;
    std::uintptr_t caller_stream_ = 0;
    std::optional<std::size_t> slot_;  // of the step that is packed now
    std::optional<double> checked_;    // its time, where it needs nothing more but to be given to the writer
    std::uint64_t ended_ = 0;
    double last_time_;
    bool is_closed_ = false;
    HistoryFacts facts_;
    context::ProcessMark process_;
};

}  // namespace penstock::history
