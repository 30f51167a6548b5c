// See launch.hpp.
#include "context/transfer/launch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/path_traits.hpp"
#include "context/files/bypass_check.hpp"
#include "context/files/evidence_probe.hpp"

namespace penstock::context {
namespace {

using SharedExtents = std::shared_ptr<const std::vector<Extent>>;

// A mapping cannot grow its file: writes past the end need the size first.
void extend_files(const Submission& submission, const std::vector<Extent>& extents) {
    if (submission.reading() || submission.path() != PathKind::mmap) return;
    for (const Extent& extent : extents) {
        const std::uint64_t end = extent.offset_bytes + extent.bytes;
        if (extent.bytes != 0 && end > extent.file->size_bytes()) extent.file->extend(end);
    }
}

engine::TransferRequest make_request(const Submission& submission, Checked& checked, bool strict) {
    engine::TransferRequest request;
    request.direction = submission.direction;
    request.host_memory = submission.to_host();
    request.strict = strict;
    request.deadline = submission.options.deadline;
    request.progress = submission.options.progress;
    request.started = submission.started;
    request.ranges.reserve(checked.extents.size());
    std::uint64_t position = 0;
    const OpenFile* last_file = nullptr;
    for (const Extent& extent : checked.extents) {
        auto* memory = static_cast<std::byte*>(extent.memory);
        request.ranges.push_back(
            {&extent.file->handle(), extent.offset_bytes, memory, extent.bytes, position, extent.allocation});
        position += extent.bytes;
        if (extent.file.get() != last_file) request.keep_alive.push_back(extent.file);
        last_file = extent.file.get();
    }
    for (std::shared_ptr<Memory>& memory : checked.memories) request.keep_alive.push_back(std::move(memory));
    return request;
}

bool any_by_cufile(const Plan& plan) {
    return std::any_of(plan.steps.begin(), plan.steps.end(),
                       [](const Step& step) { return is_cufile(step.shape.path); });
}

void add_planned_fallbacks(engine::TransferState& transfer) {
    for (const Step& step : transfer.plan().steps) {
        if (step.fallback_from == PathKind::automatic) continue;
        transfer.add_fallback(step.fallback_from, step.shape.path, step.bytes(), step.reason);
    }
}

// What the end of a transfer owes: durability, evidence, a lesson for the machine profile, and word to new files.
struct End {
    Announced::Files files;
    SharedExtents extents;  // of writes, and of whatever the probe watches
    std::shared_ptr<EvidenceProbe> probe;  // null: the transfer is small, and its caller did not ask for counters
    std::shared_ptr<BypassCheck> bypass;
    std::function<void(const Outcome&)> learn;
    const engine::Engine* engine = nullptr;
    bool reading = true;
    bool durable = false;

    void operator()(Outcome& outcome) const {
        if (durable) sync_files(files, outcome);
        outcome.evidence.seconds = outcome.seconds;
        if (learn) learn(outcome);
        if (!reading) {
            for (const auto& file : files) file->write_ended(outcome.error, *extents);
        }
        if (probe) probe->finish(outcome.evidence);
        if (bypass) bypass->judge(outcome);
        outcome.evidence.pinned_peak_bytes = engine->pinned_peak_bytes();
        if (reading && !files.empty()) files.front()->bytes_read += outcome.bytes;
    }
};

// Moves the extents out of the preview where they are needed until the end.
End make_end(const Submission& submission, Preview& preview) {
    End end;
    end.engine = &submission.context.engine;
    end.reading = submission.reading();
    end.durable = submission.options.durable && !end.reading;
    end.learn = preview.facts.costs.lesson(preview.plan, submission.context.running);
    const bool by_cufile = any_by_cufile(preview.plan);
    const bool probed = by_cufile || submission.options.full_evidence ||
                        preview.facts.request.total_bytes() >= kSampledEvidence;
    end.bypass = BypassCheck::of(preview.plan, preview.checked.extents,
                                 {submission.direction, preview.facts.request.strict, probed});
    if (!probed && end.reading) return end;
    end.extents = std::make_shared<const std::vector<Extent>>(std::move(preview.checked.extents));
    if (probed) end.probe = std::make_shared<EvidenceProbe>(end.extents, preview.facts.before);
    if (by_cufile) end.probe->watch(submission.context.cufile);
    return end;
}

}  // namespace

void sync_files(const std::vector<std::shared_ptr<OpenFile>>& files, Outcome& outcome) {
    const auto start = Clock::now();
    for (const auto& file : files) {
        try {
            if (outcome.ok()) file->sync();
        } catch (const Error& error) {
            outcome.error = error.info();
        }
    }
    outcome.seconds += seconds_since(start);
}

std::shared_ptr<StartedTransfer> launch(const Submission& submission, Preview preview, Announced& announced) {
    const ContextState& context = submission.context;
    extend_files(submission, preview.checked.extents);
    if (is_cufile(submission.path())) context.cufile->get(submission.path());  // throws the cause where it is refused
    engine::TransferRequest request = make_request(submission, preview.checked, preview.facts.request.strict);
    End end = make_end(submission, preview);
    auto transfer = std::make_shared<StartedTransfer>(std::move(request), std::move(preview.plan));
    if (preview.checked.end_position) {
        transfer->short_at(*preview.checked.end_position);
        transfer->reached_end();
    }
    for (const std::string& note : preview.facts.notes) transfer->add_note(note);
    add_planned_fallbacks(*transfer);
    end.files = announced.take();
    ++*context.running;
    transfer->after_end = [files = end.files, reading = end.reading, seen = transfer->seen,
                           running = context.running](const ErrorInfo& error) {
        --*running;
        for (const auto& file : files) file->transfer_ended(reading ? ErrorInfo{} : error, seen);
    };
    transfer->on_end = std::move(end);
    return transfer;
}

}  // namespace penstock::context
