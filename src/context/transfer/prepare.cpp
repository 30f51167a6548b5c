// From a request to a transfer ready to start: checks, facts for the policy, evidence before and after.
#include <algorithm>
#include <utility>

#include "base/path_traits.hpp"
#include "context/files/announced.hpp"
#include "context/files/bypass_check.hpp"
#include "context/files/evidence_probe.hpp"
#include "context/state.hpp"
#include "context/transfer/ranges.hpp"
#include "context/transfer/request_costs.hpp"
#include "context/transfer/settle.hpp"
#include "os/file/residency.hpp"

namespace penstock::context {
namespace {

constexpr std::uint64_t kSampledEvidence = 1 * kMiB;  // smaller transfers read no counters unless asked
constexpr double kHotFraction = 0.75;                 // of a window's pages: then it is read through the page cache
constexpr std::size_t kWindowedRanges = 16;           // more ranges than this share one sampled answer
constexpr std::uint64_t kRegisterMin = 64 * kMiB;

class Preparation {
  public:
    Preparation(ContextState& context, const Submission& submission, std::vector<FileRange> ranges,
                const TransferOptions& options)
        : context_(context), submission_(submission), ranges_(std::move(ranges)), options_(options) {}

    std::shared_ptr<engine::TransferState> run();
    Plan foresee();
    Explanation explain();

  private:
    void check();
    bool meets_the_end() const;
    void gather_files();
    void gather_costs();
    void gather_segments();
    void add_windows(std::uint64_t index);
    void add_small(std::uint64_t index);
    void add_segment(std::uint64_t index, std::uint64_t offset, std::uint64_t bytes, policy::Residence residence);
    policy::Residence shared_residence();
    bool registered(std::uint64_t index);
    bool one_file_in_memory() const;
    void ask_registration();
    void foresee_registration();
    void extend_files() const;
    engine::Request make_request();
    void attach_end(engine::TransferState& transfer, Announced::Files files, std::shared_ptr<EvidenceProbe> probe);
    void add_planned_fallbacks(engine::TransferState& transfer) const;
    std::vector<ProbeRange> probe_ranges() const;
    const char* operation() const { return to_string(submission_.direction); }
    bool reading() const { return submission_.direction == Direction::read; }

    ContextState& context_;
    Submission submission_;
    std::vector<FileRange> ranges_;
    const TransferOptions& options_;
    const Clock::time_point started_ = Clock::now();
    std::vector<std::shared_ptr<Memory>> memories_;  // of this context, that the ranges lie in
    policy::RequestFacts facts_;
    std::vector<std::uint64_t> available_;  // bytes of each range inside the file; all of it for writes
    std::optional<Residency> before_;  // of all ranges
    std::string before_unknown_;       // why it was asked in vain
    std::vector<std::string> notes_;
    RequestCosts costs_;
    std::shared_ptr<BypassCheck> bypass_;
    bool truncated_ = false;
    std::uint64_t valid_bytes_ = 0;  // position of the first byte beyond an end of file
};

// A small blocking read runs on the calling thread and sees by itself where the file ends; it is spared the system
// call that asks for the size. Who finds nothing there looks whether the offset was right (file.cpp).
bool Preparation::meets_the_end() const {
    const PathKind path = options_.path != PathKind::automatic ? options_.path : context_.options.path;
    const bool defaults = (path == PathKind::automatic || path == PathKind::buffered) && options_.workers == 0 &&
                          context_.options.workers == 0 && options_.depth == 0 && !options_.full_evidence;
    return defaults && reading() && submission_.blocking && options_.deadline.is_never() && ranges_.size() == 1 &&
           ranges_.front().bytes <= policy::kInlineBytes;
}

void Preparation::check() {
    check_numbers(operation(), ranges_);
    memories_ = find_allocations(context_, submission_, ranges_);
    ranges_ = coalesce(std::move(ranges_));
    std::uint64_t position = 0;
    std::shared_ptr<OpenFile> sized;  // ranges often share one file: its size is asked once
    std::uint64_t size = 0;
    for (const FileRange& range : ranges_) {
        std::uint64_t available = range.bytes;
        if (reading() && !meets_the_end()) {
            if (range.file != sized) size = range.file->size_bytes();
            sized = range.file;
            check_offset(range, operation(), size);
            available = std::min(range.bytes, size - range.offset_bytes);
        } else if (!reading() && !range.file->handle().writable) {
            refuse_range(range, operation(), "the file was opened for reading", "open it with OpenMode::read_write");
        }
        available_.push_back(available);
        if (available < range.bytes && !truncated_) {
            truncated_ = true;
            valid_bytes_ = position + available;
        }
        position += range.bytes;
    }
}

void Preparation::gather_files() {
    facts_.direction = submission_.direction;
    facts_.kind = submission_.kind;
    // A deadline must hold where the system does not answer: then a worker asks it, and the caller can leave.
    facts_.blocking = (submission_.blocking || options_.caller_waits) && options_.deadline.is_never();
    facts_.path = options_.path != PathKind::automatic ? options_.path : context_.options.path;
    facts_.chunk_bytes = options_.chunk_bytes;
    facts_.workers = options_.workers != 0 ? options_.workers : context_.options.workers;
    facts_.depth = options_.depth;
    facts_.strict = options_.strict || context_.options.strict;
    facts_.direct = true;
    facts_.memory_backed = true;
    const OpenFile* last = nullptr;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        const FileRange& range = ranges_[i];
        facts_.ranges.push_back({range.offset_bytes, available_[i], reinterpret_cast<std::uintptr_t>(range.memory)});
        if (range.file.get() == last) continue;
        facts_.parallel_writes |= last != nullptr || range.file->parallel_writes();
        last = range.file.get();
        facts_.memory_backed &= last->memory_backed();
        facts_.offset_alignment = std::max<std::uint64_t>(facts_.offset_alignment, last->handle().offset_alignment);
        facts_.memory_alignment = std::max<std::uint64_t>(facts_.memory_alignment, last->handle().memory_alignment);
        if (!last->direct().usable) {
            facts_.direct = false;
            facts_.direct_cause = last->direct().cause;
        } else if (reading() && facts_.path == PathKind::automatic && last->reads_by_cache) {
            facts_.direct = false;
            facts_.direct_cause = "earlier reads of this file by O_DIRECT went by the page cache";
        }
        const os::DirectFacts& direct = last->direct();
        if (!direct.unknown_cause.empty()) facts_.bypass_unknown = direct.unknown_cause;
        else if (!reading() && !direct.write_unknown_cause.empty()) facts_.bypass_unknown = direct.write_unknown_cause;
    }
}

void Preparation::gather_costs() {
    facts_.durable = options_.durable;
    facts_.under_way = context_.running->load();
    if (ranges_.empty() || !ranges_.front().file->place) return;
    const bool large = facts_.total_bytes() >= kSampledEvidence;
    if (!costs_.find(ranges_)) {
        if (large) notes_.push_back(costs_.refusal());
        return;
    }
    if (memories_.size() == 1) facts_.first_touch = memories_.front()->first_touch();
    costs_.tell(facts_, context_);
}

void Preparation::add_segment(std::uint64_t index, std::uint64_t offset, std::uint64_t bytes,
                              policy::Residence residence) {
    if (bytes == 0) return;
    if (!facts_.segments.empty()) {
        policy::Segment& last = facts_.segments.back();
        if (last.residence == residence && last.piece.range == index &&
            last.piece.offset_bytes + last.piece.bytes == offset) {
            last.piece.bytes += bytes;
            return;
        }
    }
    facts_.segments.push_back({{index, offset, bytes}, residence});
}

bool Preparation::registered(std::uint64_t index) {
    return !host_kind(submission_.kind) &&
           context_.mappings->registered(ranges_[index].file->handle(), ranges_[index].offset_bytes, available_[index]);
}

void Preparation::add_windows(std::uint64_t index) {
    const FileRange& range = ranges_[index];
    std::string source;
    std::vector<os::ResidencyWindow> windows;
    try {
        windows =
            os::residency_windows(range.file->handle().buffered_fd, range.offset_bytes, available_[index], source);
    } catch (const Error& error) {
        before_unknown_ = error.info().cause;
        add_segment(index, 0, available_[index], policy::Residence::hidden);
        return;
    }
    if (!before_) before_.emplace();
    before_->source = before_->source.empty() || before_->source == source ? source : "mixed";
    std::uint64_t covered = 0;
    for (const os::ResidencyWindow& window : windows) {
        os::add(*before_, window);
        const bool hot = window.resident_fraction() >= kHotFraction;
        const std::uint64_t end = std::min(window.offset_bytes + window.bytes - range.offset_bytes, available_[index]);
        if (end <= covered) continue;
        add_segment(index, covered, end - covered, hot ? policy::Residence::hot : policy::Residence::cold);
        covered = end;
    }
    before_->pages += (available_[index] + context_.machine().page_bytes - 1) / context_.machine().page_bytes;
    add_segment(index, covered, available_[index] - covered, policy::Residence::cold);
}

// One range of a small request: by the cheapest question there is, which leaves no evidence.
void Preparation::add_small(std::uint64_t index) {
    const FileRange& range = ranges_[index];
    std::optional<double> cached;
    if (range.file->cached_by() == os::CachedBy::page_cache) {
        cached = os::cached_fraction(range.file->handle().buffered_fd, range.offset_bytes, available_[index]);
    }
    policy::Residence residence = policy::Residence::unknown;
    if (cached) residence = *cached >= kHotFraction ? policy::Residence::hot : policy::Residence::cold;
    add_segment(index, 0, available_[index], residence);
}

policy::Residence Preparation::shared_residence() {
    before_ = EvidenceProbe::sample(probe_ranges(), before_unknown_);
    if (!before_) return policy::Residence::hidden;
    return before_->fraction() >= kHotFraction ? policy::Residence::hot : policy::Residence::cold;
}

void Preparation::gather_segments() {
    const std::uint64_t total = facts_.total_bytes();
    // Writes by rule do not depend on it; by a profile they do.
    const bool matters = (reading() || facts_.costs != nullptr) && facts_.path == PathKind::automatic;
    const bool small = facts_.blocking && total <= policy::kInlineBytes;
    const bool ask = matters && !facts_.memory_backed &&
                     (!small || policy::small_residence_matters(facts_, context_.machine()));
    const bool windowed = ranges_.size() <= kWindowedRanges;
    policy::Residence shared = policy::Residence::unknown;
    if ((reading() || facts_.costs != nullptr) && facts_.memory_backed) shared = policy::Residence::hot;
    if (ask && !windowed) shared = shared_residence();
    for (std::uint64_t i = 0; i < ranges_.size(); ++i) {
        if (reading() && facts_.memory_backed && facts_.path == PathKind::automatic && windowed && registered(i)) {
            add_segment(i, 0, available_[i], policy::Residence::registered);
        } else if (ask && small) {
            add_small(i);
        } else if (ask && windowed) {
            add_windows(i);
        } else {
            add_segment(i, 0, available_[i], shared);
        }
    }
    if (!before_unknown_.empty()) before_.reset();  // what some ranges tell is no answer for all
}

bool Preparation::one_file_in_memory() const {
    if (!reading() || host_kind(submission_.kind) || ranges_.empty()) return false;
    const std::shared_ptr<OpenFile>& file = ranges_.front().file;
    return file->memory_backed() &&
           std::all_of(ranges_.begin(), ranges_.end(), [&](const auto& r) { return r.file == file; });
}

// Explicit mmap registers now; automatic reads of files in memory have it done beside a second reading.
void Preparation::ask_registration() {
    if (!one_file_in_memory()) return;
    const std::shared_ptr<OpenFile>& file = ranges_.front().file;
    if (facts_.path == PathKind::mmap) {
        std::string why;
        facts_.mapping_registered = context_.mappings->register_all(file->handle(), why);
        if (!facts_.mapping_registered) notes_.push_back("mapping not registered with the device: " + why);
        return;
    }
    const std::uint64_t size = file->size_bytes();
    const bool again = file->bytes_read.load() >= size && facts_.total_bytes() >= kRegisterMin;
    if (facts_.path == PathKind::automatic && again && !context_.machine().emulated_device &&
        context_.mappings->refusal(file->handle()).empty() && !context_.mappings->registered(file->handle(), 0, size)) {
        context_.registrar.start(file);
    }
}

// What ask_registration would achieve, as far as it can be known without trying.
void Preparation::foresee_registration() {
    if (!one_file_in_memory() || facts_.path != PathKind::mmap) return;
    const std::shared_ptr<OpenFile>& file = ranges_.front().file;
    facts_.mapping_registered =
        context_.device->info().registers_mappings && context_.mappings->refusal(file->handle()).empty();
}

// A mapping cannot grow its file: writes past the end need the size first.
void Preparation::extend_files() const {
    if (reading() || facts_.path != PathKind::mmap) return;
    for (const FileRange& range : ranges_) {
        const std::uint64_t end = range.offset_bytes + range.bytes;
        if (range.bytes != 0 && end > range.file->size_bytes()) range.file->extend(end);
    }
}

std::vector<ProbeRange> Preparation::probe_ranges() const {
    std::vector<ProbeRange> probes;
    probes.reserve(ranges_.size());
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        probes.push_back({ranges_[i].file->handle().buffered_fd, ranges_[i].offset_bytes, available_[i]});
    }
    return probes;
}

engine::Request Preparation::make_request() {
    engine::Request request;
    request.direction = submission_.direction;
    request.host_memory = host_kind(submission_.kind);
    request.strict = facts_.strict;
    request.deadline = options_.deadline;
    request.progress = options_.progress;
    request.started = started_;
    request.ranges.reserve(ranges_.size());
    std::uint64_t position = 0;
    const OpenFile* last_file = nullptr;
    for (const FileRange& range : ranges_) {
        auto* memory = static_cast<std::byte*>(range.memory);
        request.ranges.push_back(
            {&range.file->handle(), range.offset_bytes, memory, range.bytes, position, range.allocation});
        position += range.bytes;
        if (range.file.get() != last_file) request.keep_alive.push_back(range.file);
        last_file = range.file.get();
    }
    for (std::shared_ptr<Memory>& memory : memories_) request.keep_alive.push_back(std::move(memory));
    return request;
}

void Preparation::attach_end(engine::TransferState& transfer, Announced::Files files,
                             std::shared_ptr<EvidenceProbe> probe) {
    const bool durable = options_.durable && !reading();
    const bool reads = reading();
    std::vector<NewBytes> written;
    if (!reads) written = bytes_of_new_files(files, ranges_);
    auto learn = costs_.lesson(transfer.plan(), context_.running);
    ++*context_.running;
    transfer.after_end = [files, reads, seen = transfer.seen, running = context_.running](const ErrorInfo& error) {
        --*running;
        for (const auto& file : files) file->transfer_ended(reads ? ErrorInfo{} : error, seen);
    };
    transfer.on_end = [files = std::move(files), written = std::move(written), probe = std::move(probe), durable, reads,
                       learn = std::move(learn), engine = &context_.engine, bypass = bypass_](Outcome& outcome) {
        if (durable) sync_files(files, outcome);
        outcome.evidence.seconds = outcome.seconds;
        if (learn) learn(outcome);
        for (const NewBytes& one : written) one.file->write_ended(outcome.error, one.extents);
        if (probe) probe->finish(outcome.evidence);
        if (bypass) bypass->judge(outcome);
        outcome.evidence.pinned_peak_bytes = engine->pinned_peak_bytes();
        if (reads && !files.empty()) files.front()->bytes_read += outcome.bytes;
    };
}

void Preparation::add_planned_fallbacks(engine::TransferState& transfer) const {
    for (const Step& step : transfer.plan().steps) {
        if (step.fallback_from == PathKind::automatic) continue;
        std::uint64_t bytes = 0;
        for (const PlanPiece& piece : step.pieces) bytes += piece.bytes;
        transfer.add_fallback(step.fallback_from, step.shape.path, bytes, step.reason);
    }
}

Plan Preparation::foresee() {
    check();
    gather_files();
    foresee_registration();
    gather_costs();
    gather_segments();
    return planned(facts_, context_.machine(), ranges_);
}

Explanation Preparation::explain() {
    Explanation explanation;
    explanation.plan = foresee();
    explanation.profile = costs_.profile();
    explanation.refusal = costs_.refusal();
    explanation.parts = explained_parts(facts_, context_.machine());
    return explanation;
}

std::shared_ptr<engine::TransferState> Preparation::run() {
    check();
    gather_files();
    Announced announced(ranges_);
    ask_registration();
    gather_costs();
    gather_segments();
    Plan plan = planned(facts_, context_.machine(), ranges_);
    extend_files();
    if (is_cufile(facts_.path)) context_.cufile->get(facts_.path);  // refused here, with the cause
    const bool by_cufile = std::any_of(plan.steps.begin(), plan.steps.end(),
                                       [](const Step& step) { return is_cufile(step.shape.path); });
    std::shared_ptr<EvidenceProbe> probe;
    if (by_cufile || options_.full_evidence || facts_.total_bytes() >= kSampledEvidence) {
        probe = std::make_shared<EvidenceProbe>(probe_ranges(), before_);
        if (by_cufile) probe->watch(context_.cufile);
    }
    bypass_ = BypassCheck::of(plan, ranges_, {submission_.direction, facts_.strict, probe != nullptr});
    auto transfer = std::make_shared<engine::TransferState>(make_request(), std::move(plan));
    attach_end(*transfer, announced.take(), std::move(probe));
    if (truncated_) {
        transfer->short_at(valid_bytes_);
        transfer->reached_end();
    }
    for (const std::string& note : notes_) transfer->add_note(note);
    add_planned_fallbacks(*transfer);
    return transfer;
}

}  // namespace

std::shared_ptr<engine::TransferState> prepare(ContextState& context, const Submission& submission,
                                               std::vector<FileRange> ranges, const TransferOptions& options) {
    context.check_process();
    return Preparation(context, submission, std::move(ranges), options).run();
}

Explanation explain(ContextState& context, const Submission& submission, std::vector<FileRange> ranges,
                    const TransferOptions& options) {
    context.check_process();
    return Preparation(context, submission, std::move(ranges), options).explain();
}

Plan foresee(ContextState& context, const Submission& submission, std::vector<FileRange> ranges,
             const TransferOptions& options) {
    context.check_process();
    return Preparation(context, submission, std::move(ranges), options).foresee();
}

}  // namespace penstock::context
