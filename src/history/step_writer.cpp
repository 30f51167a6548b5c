// See step_writer.hpp.
#include "history/step_writer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/current_error.hpp"
#include "formats/faults.hpp"

namespace penstock::history {
namespace {

constexpr std::chrono::seconds kPause{1};
constexpr const char* kWrites = "write history";  // the operation of each error of a step

}  // namespace

StepWriter::StepWriter(WriterPlan plan) : plan_(std::move(plan)) {
    if (!plan_.has_slots) return;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::out_of_memory, "begin", std::string("the thread that writes steps: ") + error.what(),
                    "raise the limit of threads (ulimit -u, the pids of the cgroup), or free memory");
    }
}

void StepWriter::begin(HistoryTarget& target, std::vector<HistorySlot>& slots) {
    const std::lock_guard lock(mutex_);
    target_ = &target;
    slots_ = &slots;
    steps_.reserve(slots.size());
}

StepWriter::~StepWriter() {
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void StepWriter::give(const EndedStep& step) noexcept {
    if (!plan_.has_slots) {
        try {
            std::vector<formats::DataPlace> places = places_under_way();
            under_way_.reset();
            finish(step, std::move(places));
        } catch (...) {
            failure_ = failure_under_way();
        }
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        (*slots_)[step.slot].is_free = false;
        steps_.push_back(step);
    }
    changed_.notify_all();
}

template <typename Condition>
bool StepWriter::wait_until(Deadline deadline, Condition condition) {
    std::unique_lock lock(mutex_);
    if (!deadline.is_never()) return changed_.wait_until(lock, deadline.when(), condition);
    changed_.wait(lock, condition);
    return true;
}

SlotWait StepWriter::wait_for(std::size_t slot, Deadline deadline) {
    const auto began = Clock::now();
    SlotWait found;
    bool waited = false;
    found.ended = wait_until(deadline, [&] {
        const bool ended = (*slots_)[slot].is_free || failure_.has_value();
        waited |= !ended;
        return ended;
    });
    if (waited) found.seconds = seconds_since(began);
    return found;
}

bool StepWriter::wait(Deadline deadline) {
    return wait_until(deadline, [&] { return (steps_.empty() && !is_writing_) || failure_.has_value(); });
}

void StepWriter::check() const {
    const std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
}

void StepWriter::tell(HistoryFacts& facts) const {
    const std::lock_guard lock(mutex_);
    facts.steps_written = written_;
    facts.steps_published = published_;
    facts.stored_bytes = stored_bytes_;
    facts.write_seconds = write_seconds_;
    facts.encode_seconds = encode_seconds_;
    facts.last = last_;
}

void StepWriter::run() {
    plan_.context.device().enter_thread();
    std::unique_lock lock(mutex_);
    for (;;) {
        wait_for_work(lock);
        if (steps_.empty() || failure_) return;
        const EndedStep step = steps_.front();
        steps_.erase(steps_.begin());
        is_writing_ = true;
        lock.unlock();
        std::optional<ErrorInfo> failed;
        try {
            write(step);
        } catch (...) {
            failed = failure_under_way();
        }
        lock.lock();
        is_writing_ = false;
        if (failed) failure_ = std::move(failed);
        changed_.notify_all();
    }
}

// Until there is a step, or the end. A pause of the model is a moment to settle the target, once.
void StepWriter::wait_for_work(std::unique_lock<std::mutex>& lock) {
    const auto has_work = [&] { return stops_ || !steps_.empty(); };
    if (changed_.wait_for(lock, kPause, has_work)) return;
    if (target_ != nullptr && !failure_) {
        is_writing_ = true;  // close() waits
        lock.unlock();
        target_->settle();
        lock.lock();
        is_writing_ = false;
        changed_.notify_all();
    }
    changed_.wait(lock, has_work);
}

void StepWriter::free_slot(std::size_t slot) {
    {
        const std::lock_guard lock(mutex_);
        (*slots_)[slot].is_free = true;
    }
    changed_.notify_all();
}

std::vector<formats::StoredChunks> StepWriter::compress(std::uint64_t number) {
    const auto began = Clock::now();
    try {
        std::vector<formats::StoredChunks> stored = plan_.encoder->encode();
        const std::lock_guard lock(mutex_);
        encode_seconds_ += seconds_since(began);
        return stored;
    } catch (const Error& error) {
        throw named(error.info(), number, "compression");
    }
}

void StepWriter::write(const EndedStep& step) {
    const Buffer& slot = (*slots_)[step.slot].memory;
    if ((*slots_)[step.slot].packed) (*slots_)[step.slot].packed->wait(Deadline::never());
    const auto began = Clock::now();
    const std::uint64_t number = written_;  // changed by this thread alone
    auto* memory = static_cast<std::byte*>(slot.data());
    std::vector<formats::DataPlace> places;
    if (plan_.encoder) {
        memory = plan_.encoder->take(slot);
        if (memory != slot.data()) free_slot(step.slot);  // it was copied
        places = target_->reserve(compress(number));
    } else {
        places = number == 0 ? plan_.first : target_->reserve({});
    }
    write_data(ranges(memory, places), memory == slot.data() ? slot.kind() : MemoryKind::pinned, places);
    finish(step, std::move(places));
    const std::lock_guard lock(mutex_);
    if (memory == slot.data()) (*slots_)[step.slot].is_free = true;  // run() tells it
    write_seconds_ += seconds_since(began);
}

void StepWriter::write_data(const std::vector<Range>& parts, MemoryKind kind,
                            std::span<const formats::DataPlace> places) {
    if (parts.empty()) return;
    Outcome outcome = plan_.context.start(Direction::write, parts, kind, plan_.transfer).result();
    if (!outcome.ok()) throw named(outcome.error, written_, variable_of(outcome.error, places));
    const std::lock_guard lock(mutex_);
    last_ = std::move(outcome.evidence);
}

// The data are in the file.
void StepWriter::finish(const EndedStep& step, std::vector<formats::DataPlace> places) {
    const std::uint64_t number = written_;
    if (plan_.is_alone || target_->has_own_files()) {
        complete(step, places, number);
    } else if (plan_.is_durable) {
        target_->sync();
    }
    if (plan_.is_alone) show(number);
    const std::lock_guard lock(mutex_);
    written_ = number + 1;
    for (const formats::DataPlace& place : places) stored_bytes_ += place.bytes;
    if (plan_.is_alone) {
        published_ = written_;
    } else {
        unseen_.push_back({step, std::move(places)});
    }
}

// A step that is dropped keeps its places for the one that follows.
const std::vector<formats::DataPlace>& StepWriter::places_under_way() {
    if (!under_way_) under_way_ = written_ == 0 ? plan_.first : target_->reserve({});
    return *under_way_;
}

void StepWriter::write_field(const std::string& name, const MemoryView& memory) {
    const auto began = Clock::now();
    try {
        static_cast<void>(places_under_way());
        write_data(ranges_of(name, memory), memory.kind, *under_way_);
    } catch (...) {
        failure_ = failure_under_way();
        throw Error(*failure_);
    }
    write_seconds_ += seconds_since(began);
}

// Requires: the caller is in a catch block. Ranks know by the operation that an error is of a step, for all to hear.
ErrorInfo StepWriter::failure_under_way() const {
    ErrorInfo info = info_of_current_exception(kWrites);
    if (info.operation == kWrites) return info;
    const std::string what = info.operation;
    return named(std::move(info), written_, what).info();
}

Error StepWriter::named(ErrorInfo info, std::uint64_t number, const std::string& what) const {
    info.operation = kWrites;
    if (info.file.empty()) info.file = target_->name();
    info.cause = "step " + std::to_string(number + 1) + ", " + what + ": " + info.cause;
    return Error(std::move(info));
}

// The time, and all that the step needs before readers see it.
void StepWriter::complete(const EndedStep& step, std::span<const formats::DataPlace> places, std::uint64_t number) {
    try {
        target_->hold(places);
        if (plan_.is_first) {
            target_->write_numbers(0, places[0], std::array{step.time});
            if (plan_.has_bounds) target_->write_numbers(1, places[1], std::array{step.begin, step.time});
        }
        target_->finish();
    } catch (const Error& error) {
        throw named(error.info(), number, plan_.is_first ? "time" : "its variables");
    }
}

void StepWriter::show(std::uint64_t number) {
    try {
        target_->publish(number + 1);
    } catch (const Error& error) {
        throw named(error.info(), number, "time");
    }
}

void StepWriter::publish(std::uint64_t steps) {
    for (;;) {
        Unseen next;
        {
            const std::lock_guard lock(mutex_);
            if (published_ >= steps) return;
            if (unseen_.empty()) {
                throw Error(
                    ErrorCode::invalid_argument, "publish",
                    std::to_string(steps) + " steps are asked for, " + std::to_string(written_) + " are written here",
                    "publish at most what every process has written");
            }
            next = unseen_.front();
        }
        if (plan_.is_first && !target_->has_own_files()) complete(next.step, next.places, published_);
        show(published_);  // by others than the first process nothing is written: what the file keeps of the step goes
        const std::lock_guard lock(mutex_);
        unseen_.pop_front();
        ++published_;
    }
}

std::vector<Range> StepWriter::ranges(std::byte* memory, std::span<const formats::DataPlace> places) const {
    std::vector<Range> found;
    for (const SlotField& field : plan_.fields) {
        const formats::DataPlace& place = places[field.place];
        std::byte* data = memory + field.offset_bytes;
        if (plan_.encoder) {
            const std::span<std::byte> encoded = plan_.encoder->encoded(field.place);
            if (!encoded.empty()) data = encoded.data();
        }
        if (place.bytes == 0) continue;
        const File& file = target_->file(field.place);
        for (const FieldRun& run : field.runs) {
            found.push_back({&file, place.offset_bytes + run.file_offset, data + run.slot_offset, run.bytes});
        }
        if (!field.runs.empty()) continue;
        Range* last = found.empty() ? nullptr : &found.back();
        if (last != nullptr && last->file == &file && last->offset_bytes + last->bytes == place.offset_bytes &&
            static_cast<std::byte*>(last->memory) + last->bytes == data) {
            last->bytes += place.bytes;
        } else {
            found.push_back({&file, place.offset_bytes, data, place.bytes});
        }
    }
    return found;
}

// A place may be longer than the field: what is behind it reads as zeros, for the file is new there.
std::vector<Range> StepWriter::ranges_of(const std::string& name, const MemoryView& memory) const {
    std::vector<Range> found;
    auto* data = static_cast<std::byte*>(memory.data);
    for (const SlotField& field : plan_.fields) {
        const formats::DataPlace& place = (*under_way_)[field.place];
        if (field.name != name || place.bytes == 0) continue;
        const File& file = target_->file(field.place);
        for (const FieldRun& run : field.runs) {
            found.push_back({&file, place.offset_bytes + run.file_offset, data + run.slot_offset, run.bytes});
        }
        if (field.runs.empty()) found.push_back({&file, place.offset_bytes, data, std::min(place.bytes, memory.bytes)});
    }
    return found;
}

std::string StepWriter::variable_of(const ErrorInfo& error, std::span<const formats::DataPlace> places) const {
    for (const SlotField& field : plan_.fields) {
        const formats::DataPlace& place = places[field.place];
        if (place.bytes == 0) continue;
        if (!error.file.empty() && target_->file(field.place).name() != error.file) continue;
        if (error.offset_bytes >= place.offset_bytes && error.offset_bytes - place.offset_bytes < place.bytes) {
            return "variable " + formats::shown(field.name);
        }
    }
    return "its variables";
}

}  // namespace penstock::history
