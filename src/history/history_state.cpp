// See history_state.hpp.
#include "history/history_state.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "device/host/pack_host.hpp"
#include "device/packs/pack_plan.hpp"
#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"
#include "history/compression.hpp"
#include "history/definitions/time_axis.hpp"

namespace penstock::history {

using formats::shown;

namespace {

constexpr std::uint32_t kMostSlots = 64;

bool is_compressed(const formats::FileSchema& schema) {
    return std::any_of(schema.variables.begin(), schema.variables.end(),
                       [](const formats::NewVariable& one) { return !one.filters.empty(); });
}

bool same_places(std::span<const formats::DataPlace> planned, std::span<const formats::DataPlace> reserved) {
    const auto same = [](const auto& a, const auto& b) {
        return a.offset_bytes == b.offset_bytes && a.bytes == b.bytes;
    };
    return std::equal(planned.begin(), planned.end(), reserved.begin(), reserved.end(), same);
}

// Of one step of the file, where nothing is compressed.
std::uint64_t plain_step_bytes(const formats::FileSchema& schema, const std::vector<formats::DataPlace>& places) {
    std::uint64_t bytes = 0;
    for (const formats::DataPlace& place : places) bytes += place.bytes;
    if (!places.empty()) return bytes;
    for (const formats::NewVariable& one : schema.variables) {
        if (formats::grows(schema, one)) bytes += formats::step_bytes(schema, one);
    }
    return bytes;
}

// The parts of a step: where they lie in a slot, and what is compressed of them.
struct StepParts {
    std::vector<SlotField> fields;
    std::vector<PlainField> plain;
};

StepParts parts_of(const HistoryLayout& layout) {
    StepParts found;
    for (const FieldLayout& field : layout.fields) {
        for (const FieldPart& part : field.parts) {
            found.fields.push_back({field.name, part.place, field.slot_offset, part.runs});
            found.plain.push_back({field.variable, field.slot_offset, part.place, field.box, part.first, part.count});
        }
    }
    return found;
}

std::byte* moved(const void* pointer, std::int64_t bytes) {
    return const_cast<std::byte*>(static_cast<const std::byte*>(pointer)) + bytes;
}

Box row_of(void* memory, std::uint64_t bytes) {
    Box row;
    row.destination = memory;
    row.item_bytes = 1;
    row.dimensions = 1;
    row.extents[0] = bytes;
    row.destination_strides[0] = 1;
    return row;
}

}  // namespace

Error refused(const char* operation, std::string cause, std::string advice) {
    return {ErrorCode::invalid_argument, operation, std::move(cause), std::move(advice)};
}

namespace {

Error refused_compression(const char* operation) {
    return refused(operation, "a history without slots has no thread that compresses",
                   "give it slots, or leave the compression out");
}

}  // namespace

HistoryState::HistoryState(const Context& context, std::string name, const HistoryOptions& options)
    : context_(context), name_(std::move(name)), options_(options), last_time_(options.start_time) {
    const char* operation = "open history";
    if (name_.empty()) throw refused(operation, "the name is empty", "give the name of a file");
    if (options.slots > kMostSlots) {
        throw refused(operation, std::to_string(options.slots) + " slots are asked for",
                      "use 1 to 64, or none: then put() writes; 2 is the usual");
    }
    if (options.memory != MemoryKind::device && options.memory != MemoryKind::system) {
        throw refused(operation, std::string("fields lie in ") + to_string(options.memory) + " memory",
                      "use device, or system for fields of the host");
    }
    if (options.processes < 1 || options.process >= options.processes) {
        throw refused(operation,
                      "this is process " + std::to_string(options.process) + " of " + std::to_string(options.processes),
                      "numbers go from 0 to one less than processes");
    }
    if (!std::isfinite(options.start_time)) throw refused(operation, "start_time is no number", "give a finite time");
    check_calendar(options.calendar);
    check_time_units(options.time_units, options.calendar);
    static_cast<void>(makes_store(options.format));  // throws of an unknown format
    if (!filters_of("history", options.compression, options, sizeof(float)).empty() && !has_slots()) {
        throw refused_compression(operation);
    }
}

HistoryState::~HistoryState() {
    writer_.reset();  // before the slots and the file that it uses
    stream_.reset();  // waits for packs of a step that did not end
}

void HistoryState::check_process() const {
    if (process_.here()) return;
    throw Error(ErrorCode::unsupported, "use history", "this process was forked from the one that opened the history",
                "open another one in the child");
}

void HistoryState::check_open(const char* operation) const {
    check_process();
    if (is_closed_) throw refused(operation, "the history is closed", "open another one");
}

std::vector<RunningField> HistoryState::make_fields(const HistoryLayout& layout) const {
    std::vector<RunningField> made;
    for (const FieldLayout& one : layout.fields) {
        made.push_back({one, std::nullopt, 0});
        if (one.sum_bytes != 0) made.back().sum = zeroed(one.sum_bytes);
    }
    return made;
}

// The file and the slots come with the first field. What fails leaves the history as it was.
void HistoryState::begin() {
    check_open("begin");
    if (writer_) throw refused("begin", "the history has begun", "call it once, or not at all");
    if (definitions_.variables.empty()) throw refused("begin", "no variable is defined", "call define() first");
    const bool swap = stores_big_endian(options_.format) == (std::endian::native == std::endian::little);
    HistoryLayout layout = plan_history(definitions_, options_, swap);
    check_cuts(layout);
    check_coverage();
    const HistoryTargetOptions wanted = target_options(layout);
    WriterPlan plan{context_, {}, {}, options_.transfer, layout.has_bounds};
    plan.transfer.caller_waits = true;  // a small step is written by the thread that waits for it
    const bool compresses = is_compressed(layout.schema);
    if (compresses && !has_slots()) throw refused_compression("begin");
    const bool in_one_file = !makes_store(options_.format);
    if (!draft_) draft_ = make_draft(name_, options_.format, layout.schema);
    if (!compresses) plan.first = draft_ ? draft_->first() : first_places(wanted, layout.schema);
    const std::vector<formats::DataPlace> in_file = in_one_file ? plan.first : std::vector<formats::DataPlace>{};
    const std::uint64_t slot_bytes = lay_out_slot(layout.fields, in_file);
    std::vector<RunningField> fields = make_fields(layout);
    plan.is_alone = options_.processes == 1;
    plan.is_first = options_.process == 0;
    plan.is_durable = options_.durable;
    plan.has_slots = has_slots();
    std::vector<HistorySlot> slots = made_slots(slot_bytes, layout.fields);
    facts_.step_bytes = plain_step_bytes(layout.schema, in_file);
    StepParts parts = parts_of(layout);
    plan.fields = std::move(parts.fields);
    if (compresses) {
        const std::size_t places = in_one_file ? layout.schema.variables.size() : layout.blocks.size();
        const StepEncoderOptions wanted_encoder{slot_bytes, places, on_device(), options_.encode_threads};
        plan.encoder = std::make_unique<StepEncoder>(context_, layout.schema, parts.plain, wanted_encoder);
    }
    const std::vector<formats::DataPlace> first = plan.first;
    auto writer = std::make_unique<StepWriter>(std::move(plan));
    // Last: it may replace an older history, which what has failed before leaves alone.
    std::unique_ptr<HistoryTarget> target = make_target(context_, wanted, layout.schema, std::move(draft_));
    if (!compresses && !same_places(first, target->reserve({}))) {
        throw Error(ErrorCode::internal, "begin", "the first step has other places in the file than were planned");
    }
    fields_ = std::move(fields);
    slots_ = std::move(slots);
    target_ = std::move(target);
    writer_ = std::move(writer);
    writer_->begin(*target_, slots_);
}

HistoryTargetOptions HistoryState::target_options(const HistoryLayout& layout) const {
    HistoryTargetOptions made{name_, options_.format, options_.durable, options_.replace, options_.process == 0};
    made.blocks = layout.blocks;
    return made;
}

std::vector<HistorySlot> HistoryState::made_slots(std::uint64_t bytes, const std::vector<FieldLayout>& fields) {
    std::vector<HistorySlot> slots;
    if (on_device()) stream_ = context_.device().make_stream();
    for (std::uint32_t i = 0; i < options_.slots; ++i) {
        HistorySlot slot{context_.allocate(std::max<std::uint64_t>(bytes, 1), slot_kind()), nullptr, true};
        fill_gaps(slot.memory, fields);
        if (on_device()) slot.packed = context_.device().make_event();
        slots.push_back(std::move(slot));
    }
    facts_.slot_bytes = bytes * options_.slots;
    return slots;
}

// What lies between fields may be written with them, and a step has all of its fields.
void HistoryState::fill_gaps(const Buffer& slot, const std::vector<FieldLayout>& fields) const {
    std::vector<Box> gaps;
    std::uint64_t end = 0;
    const auto fill_to = [&](std::uint64_t next) {
        if (next > end) gaps.push_back(row_of(static_cast<std::byte*>(slot.data()) + end, next - end));
    };
    for (const FieldLayout& field : fields) {
        fill_to(field.slot_offset);
        end = field.slot_offset + field.bytes;
    }
    fill_to(slot.bytes());
    const std::byte zero{0};
    if (!gaps.empty()) context_.fill_boxes(gaps, {&zero, 1}, slot.kind());
}

Buffer HistoryState::zeroed(std::uint64_t bytes) const {
    Buffer made = context_.allocate(bytes, slot_kind());
    const std::byte zero{0};
    const Box all = row_of(made.data(), made.bytes());
    context_.fill_boxes({&all, 1}, {&zero, 1}, made.kind());
    return made;
}

void HistoryState::put(const std::string& variable, const void* data, std::span<const std::int64_t> strides_bytes) {
    check_open("put");
    checked_.reset();
    if (!writer_) begin_by(variable, data, strides_bytes);
    writer_->check();
    RunningField& field = field_named(variable);
    if (field.puts != 0 && field.layout.statistic == HistoryStatistic::none) {
        throw refused("put", "variable " + shown(variable) + " was put already in this step",
                      "end the step first, or define the variable with a statistic");
    }
    const FieldLayout layout = strides_bytes.empty() ? field.layout : with_strides(field.layout, strides_bytes);
    check_memory(layout, data);
    take_slot();
    const auto began = Clock::now();
    if (on_device()) stream_->follow(caller_stream_);
    if (has_slots()) {
        pack_field(field, layout, data, static_cast<std::byte*>(slots_[*slot_].memory.data()) + layout.slot_offset);
    } else {
        write_at_once(field, layout, data);
    }
    if (on_device()) let_caller_go_on();
    ++field.puts;
    facts_.put_seconds += seconds_since(began);
}

// A field may change once put() has returned: by later work of a stream that was named, else by any work.
void HistoryState::let_caller_go_on() {
    if (caller_stream_ == 0) {
        stream_->synchronize();
    } else {
        stream_->lead(caller_stream_);
    }
}

bool HistoryState::wait_for_slot(Deadline deadline) {
    check_process();
    if (!writer_ || slot_ || !has_slots()) return true;
    const SlotWait wait = writer_->wait_for(ended_ % slots_.size(), deadline);
    facts_.wait_seconds += wait.seconds;
    return wait.ended;
}

void HistoryState::take_slot() {
    if (slot_ || !has_slots()) return;
    wait_for_slot(Deadline::never());
    writer_->check();
    slot_ = ended_ % slots_.size();
}

void HistoryState::pack(const Pack& wanted, const void* source, void* destination) {
    Pack one = wanted;
    one.source = source;
    one.destination = destination;
    if (on_device()) {
        stream_->pack({&one, 1});
    } else {
        for (const Pack& part : device::simplified({&one, 1})) device::pack_on_host(part);
    }
}

void HistoryState::pack_field(RunningField& field, const FieldLayout& layout, const void* data, std::byte* slot) {
    if (layout.bytes == 0) return;
    const std::byte* first = moved(data, layout.first_bytes);
    if (!layout.is_packed) {
        Box one = layout.move;
        one.source = first;
        one.destination = slot;
        if (on_device()) {
            stream_->copy_boxes({&one, 1});
        } else {
            context_.copy_boxes({&one, 1}, MemoryKind::system);
        }
        return;
    }
    Pack one = layout.pack;
    if (field.puts != 0) {
        one.operation = layout.statistic == HistoryStatistic::mean      ? PackOperation::add
                        : layout.statistic == HistoryStatistic::minimum ? PackOperation::minimum
                                                                        : PackOperation::maximum;
    }
    pack(one, first, field.sum ? field.sum->data() : slot);
}

void HistoryState::finish_statistics() {
    std::byte* slot = moved(slots_[*slot_].memory.data(), 0);
    for (RunningField& field : fields_) {
        if (!field.sum || field.layout.bytes == 0) continue;
        Pack last = field.layout.finish;
        if (field.layout.statistic == HistoryStatistic::mean) last.divisor = static_cast<double>(field.puts);
        pack(last, field.sum->data(), slot + field.layout.slot_offset);
    }
}

void HistoryState::need_whole_step(double time) const {
    const char* operation = "end step";
    check_open(operation);
    if (!writer_) throw refused(operation, "nothing was put", "put every variable first");
    writer_->check();
    if (!std::isfinite(time)) throw refused(operation, "the time is no number", "give a finite time");
    if (time < last_time_ || (ended_ != 0 && time == last_time_)) {
        throw refused(operation,
                      "the time " + std::to_string(time) + " is not later than " + std::to_string(last_time_),
                      ended_ == 0 ? "give the history a start_time that is not later than its first step"
                                  : "times rise from step to step");
    }
    for (const RunningField& field : fields_) {
        if (field.puts != 0) continue;
        throw refused(operation, "variable " + shown(field.layout.name) + " was not put in this step",
                      "put every variable in each step; give one of another interval a history of its own");
    }
}

// All that may fail, so that processes that have agreed on a step end it together.
void HistoryState::check_step(double time) {
    checked_.reset();
    need_whole_step(time);
    const auto began = Clock::now();
    if (has_slots()) {
        finish_statistics();
        if (on_device()) stream_->record(*slots_[*slot_].packed);
    } else {
        write_statistics();
    }
    facts_.put_seconds += seconds_since(began);
    checked_ = time;
}

void HistoryState::end_step(double time) {
    check_open("end step");
    if (checked_ != time) check_step(time);
    writer_->give({slot_.value_or(0), time, last_time_});
    slot_.reset();
    checked_.reset();
    for (RunningField& field : fields_) field.puts = 0;
    ++ended_;
    last_time_ = time;
}

bool HistoryState::wait(Deadline deadline) {
    check_process();
    if (!writer_) return true;
    const bool ended = writer_->wait(deadline);
    writer_->check();
    return ended;
}

HistoryFacts HistoryState::facts() const {
    HistoryFacts all = facts_;
    check_process();
    all.steps_ended = ended_;
    if (writer_) writer_->tell(all);
    return all;
}

void HistoryState::close() {
    check_process();
    if (std::exchange(is_closed_, true)) return;
    if (!writer_) return;
    writer_->wait(Deadline::never());
    try {
        target_->close();
    } catch (const Error&) {
        writer_->check();  // the first error is the one to tell
        throw;
    }
    writer_->check();
    const HistoryFacts now = facts();
    if (now.steps_published < now.steps_written) {
        throw refused("close history",
                      std::to_string(now.steps_written - now.steps_published) + " steps are written and not published",
                      "agree on their number and publish them first");
    }
    if (!has_open_step()) return;
    throw refused("close history", "fields were put, and their step did not end",
                  "call end_step() first; the steps before it are in the file");
}

}  // namespace penstock::history
