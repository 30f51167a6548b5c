// See step_writer.hpp.
#include "history/step_writer.hpp"

#include <array>
#include <utility>

#include "base/current_error.hpp"
#include "formats/faults.hpp"

namespace penstock::history {
namespace {

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

}  // namespace

StepWriter::StepWriter(HistoryFile& target, std::vector<HistorySlot>& slots, WriterPlan plan)
    : target_(target), slots_(slots), plan_(std::move(plan)), thread_([this] { run(); }) {}

StepWriter::~StepWriter() {
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void StepWriter::give(const EndedStep& step) {
    {
        const std::lock_guard lock(mutex_);
        slots_[step.slot].is_free = false;
        steps_.push_back(step);
    }
    changed_.notify_all();
}

double StepWriter::wait_for(std::size_t slot) {
    const auto began = Clock::now();
    std::unique_lock lock(mutex_);
    if (slots_[slot].is_free) return 0;
    changed_.wait(lock, [&] { return slots_[slot].is_free || failure_.has_value(); });
    return seconds_since(began);
}

void StepWriter::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return (steps_.empty() && !is_writing_) || failure_.has_value(); });
}

void StepWriter::check() const {
    const std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
}

void StepWriter::tell(HistoryFacts& facts) const {
    const std::lock_guard lock(mutex_);
    facts.steps_published = published_;
    facts.write_seconds = write_seconds_;
    facts.last = last_;
}

void StepWriter::run() {
    plan_.context.device().enter_thread();
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stops_ || !steps_.empty(); });
        if (steps_.empty() || failure_) return;
        const EndedStep step = steps_.front();
        steps_.pop_front();
        is_writing_ = true;
        lock.unlock();
        std::optional<ErrorInfo> failed;
        try {
            write(step);
        } catch (...) {
            failed = info_of_current_exception("write history");
        }
        lock.lock();
        is_writing_ = false;
        if (failed) failure_ = std::move(failed);
        slots_[step.slot].is_free = true;
        changed_.notify_all();
    }
}

void StepWriter::write(const EndedStep& step) {
    if (slots_[step.slot].packed) slots_[step.slot].packed->wait(Deadline::never());
    const auto began = Clock::now();
    const std::uint64_t number = published_;  // written by this thread alone
    const std::vector<formats::DataPlace> places = number == 0 ? plan_.first : target_.reserve();
    const std::string of_step = "step " + std::to_string(number + 1) + ", ";
    const auto named = [&](ErrorInfo info, const std::string& what) {
        info.operation = "write history";
        if (info.file.empty()) info.file = target_.file().name();
        info.cause = of_step + what + ": " + info.cause;
        return Error(std::move(info));
    };
    const std::vector<Range> parts = ranges(step, places);
    const MemoryKind kind = slots_[step.slot].memory.kind();
    Outcome outcome;
    if (!parts.empty()) outcome = plan_.context.start(Direction::write, parts, kind, plan_.transfer).result();
    if (!outcome.ok()) throw named(outcome.error, variable_at(outcome.error.offset_bytes, places));
    try {
        target_.write_numbers(places[0], std::array{step.time});
        if (plan_.has_bounds) target_.write_numbers(places[1], std::array{step.begin, step.time});
        target_.publish(number + 1);
    } catch (const Error& error) {
        throw named(error.info(), "time");
    }
    const std::lock_guard lock(mutex_);
    published_ = number + 1;
    write_seconds_ += seconds_since(began);
    last_ = std::move(outcome.evidence);
}

std::vector<Range> StepWriter::ranges(const EndedStep& step, std::span<const formats::DataPlace> places) const {
    auto* memory = static_cast<std::byte*>(slots_[step.slot].memory.data());
    std::vector<Range> found;
    for (const SlotField& field : plan_.fields) {
        const formats::DataPlace& place = places[field.variable];
        std::byte* data = memory + field.offset_bytes;
        Range* last = found.empty() ? nullptr : &found.back();
        if (last != nullptr && last->offset_bytes + last->bytes == place.offset_bytes &&
            static_cast<std::byte*>(last->memory) + last->bytes == data) {
            last->bytes += place.bytes;
        } else {
            found.push_back({&target_.file(), place.offset_bytes, data, place.bytes});
        }
    }
    return found;
}

std::string StepWriter::variable_at(std::uint64_t offset_bytes, std::span<const formats::DataPlace> places) const {
    for (const SlotField& field : plan_.fields) {
        const formats::DataPlace& place = places[field.variable];
        if (offset_bytes >= place.offset_bytes && offset_bytes - place.offset_bytes < place.bytes) {
            return "variable " + formats::shown(field.name);
        }
    }
    return "its variables";
}

}  // namespace penstock::history
