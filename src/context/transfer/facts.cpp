// See facts.hpp. What the page cache holds is asked as cheaply as the request allows: not at all where the plan does
// not depend on it, by one call for a small request, by windows for a few extents, by one sample for many.
#include "context/transfer/facts.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/path_traits.hpp"
#include "context/files/evidence_probe.hpp"
#include "os/file/dirty.hpp"
#include "os/file/residency.hpp"

namespace penstock::context {
namespace {

constexpr double kHotFraction = 0.75;         // of a window's pages: then it is read through the page cache
constexpr std::size_t kWindowedExtents = 16;  // more extents than this share one sampled answer

policy::Residence residence_of(double resident_fraction) {
    return resident_fraction >= kHotFraction ? policy::Residence::hot : policy::Residence::cold;
}

policy::RequestFacts facts_of_call(const Submission& submission) {
    const TransferOptions& options = submission.options;
    const ContextOptions& defaults = submission.context.options;
    policy::RequestFacts facts;
    facts.direction = submission.direction;
    facts.kind = submission.kind;
    // A deadline must hold where the system does not answer: then a worker asks it, and the caller can leave.
    facts.blocking = (submission.blocking || options.caller_waits) && options.deadline.is_never();
    facts.path = submission.path();
    facts.chunk_bytes = options.chunk_bytes;
    facts.workers = options.workers != 0 ? options.workers : defaults.workers;
    facts.depth = options.depth;
    facts.strict = options.strict || defaults.strict;
    facts.durable = options.durable;
    facts.under_way = submission.context.running->load();
    return facts;
}

void add_direct(const OpenFile& file, policy::RequestFacts& facts) {
    const os::DirectFacts& direct = file.direct();
    const bool reading = facts.direction == Direction::read;
    if (!direct.usable) {
        facts.direct = false;
        facts.direct_cause = direct.cause;
    } else if (reading && facts.path == PathKind::automatic && file.reads_by_cache) {
        facts.direct = false;
        facts.direct_cause = "earlier reads of this file by O_DIRECT went by the page cache";
    }
    if (!direct.unknown_cause.empty()) {
        facts.bypass_unknown = direct.unknown_cause;
    } else if (!reading && !direct.write_unknown_cause.empty()) {
        facts.bypass_unknown = direct.write_unknown_cause;
    }
}

void add_files(const std::vector<Extent>& extents, policy::RequestFacts& facts) {
    facts.direct = true;
    facts.memory_backed = true;
    facts.answers_here = true;
    facts.ranges.reserve(extents.size());
    const OpenFile* last = nullptr;
    for (const Extent& extent : extents) {
        const auto address = reinterpret_cast<std::uintptr_t>(extent.memory);
        facts.ranges.push_back({extent.offset_bytes, extent.bytes_in_file, address});
        if (extent.file.get() == last) continue;
        facts.parallel_writes |= last != nullptr || extent.file->parallel_writes();
        last = extent.file.get();
        const FileHandle& handle = last->handle();
        facts.memory_backed &= last->memory_backed();
        facts.answers_here &= last->answers_here();
        facts.offset_alignment = std::max<std::uint64_t>(facts.offset_alignment, handle.offset_alignment);
        facts.memory_alignment = std::max<std::uint64_t>(facts.memory_alignment, handle.memory_alignment);
        add_direct(*last, facts);
    }
}

void add_costs(const Submission& submission, const Checked& checked, Facts& facts) {
    if (checked.extents.empty() || !checked.extents.front().file->place) return;
    if (!facts.costs.find(checked.extents)) {
        if (facts.request.total_bytes() >= kSampledEvidence) facts.notes.push_back(facts.costs.refusal());
        return;
    }
    if (checked.memories.size() == 1) facts.request.first_touch = checked.memories.front()->first_touch();
    facts.costs.tell(facts.request, submission.context);
}

// Explicit mmap has its mapping registered before it starts, unless the device or the system refuses.
void add_registration(const Submission& submission, const std::vector<Extent>& extents, Facts& facts) {
    if (facts.request.path != PathKind::mmap) return;
    const std::shared_ptr<OpenFile> file = file_to_register(submission, extents);
    if (!file) return;
    const ContextState& context = submission.context;
    const std::string refusal = context.mappings->refusal(file->handle());
    if (!refusal.empty()) facts.notes.push_back("mapping not registered with the device: " + refusal);
    facts.request.mapping_registered = refusal.empty() && context.device->info().registers_mappings;
}

// Cuts the extents into segments by what the page cache holds of them.
class Residences {
  public:
    Residences(const Submission& submission, const std::vector<Extent>& extents)
        : submission_(submission), extents_(extents) {}

    void find(const policy::RequestFacts& request);
    std::vector<policy::Segment> segments;
    std::optional<Residency> before() const;

  private:
    void add(std::uint64_t index, std::uint64_t offset_bytes, std::uint64_t bytes, policy::Residence residence);
    void add_whole(std::uint64_t index, policy::Residence residence) {
        add(index, 0, extents_[index].bytes_in_file, residence);
    }
    void add_windows(std::uint64_t index);
    policy::Residence of_small(const Extent& extent) const;
    policy::Residence of_all();
    bool registered(const Extent& extent) const;

    const Submission& submission_;
    const std::vector<Extent>& extents_;
    std::optional<Residency> before_;
    std::string unknown_;  // why some of it was asked in vain
};

std::optional<Residency> Residences::before() const {
    if (!unknown_.empty()) return std::nullopt;  // what some extents tell is no answer for all
    return before_;
}

void Residences::add(std::uint64_t index, std::uint64_t offset_bytes, std::uint64_t bytes,
                     policy::Residence residence) {
    if (bytes == 0) return;
    if (!segments.empty()) {
        policy::Segment& last = segments.back();
        if (last.residence == residence && last.piece.range == index &&
            last.piece.offset_bytes + last.piece.bytes == offset_bytes) {
            last.piece.bytes += bytes;
            return;
        }
    }
    segments.push_back({{index, offset_bytes, bytes}, residence});
}

bool Residences::registered(const Extent& extent) const {
    return !submission_.to_host() && submission_.context.mappings->registered(
                                         extent.file->handle(), extent.offset_bytes, extent.bytes_in_file);
}

void Residences::add_windows(std::uint64_t index) {
    const Extent& extent = extents_[index];
    const std::uint64_t bytes = extent.bytes_in_file;
    std::string source;
    std::vector<os::ResidencyWindow> windows;
    try {
        windows = os::residency_windows(extent.file->handle().buffered_fd, {extent.offset_bytes, bytes}, source);
    } catch (const Error& error) {
        unknown_ = error.info().cause;
        add_whole(index, policy::Residence::hidden);
        return;
    }
    if (!before_) before_.emplace();
    before_->source = before_->source.empty() || before_->source == source ? source : "mixed";
    std::uint64_t covered = 0;
    for (const os::ResidencyWindow& window : windows) {
        os::add(*before_, window);
        const std::uint64_t end = std::min(window.offset_bytes + window.bytes - extent.offset_bytes, bytes);
        if (end <= covered) continue;
        add(index, covered, end - covered, residence_of(window.resident_fraction()));
        covered = end;
    }
    const std::uint64_t page_bytes = submission_.context.machine().page_bytes;
    before_->pages += (bytes + page_bytes - 1) / page_bytes;
    add(index, covered, bytes - covered, policy::Residence::cold);
}

// By the cheapest question there is, which leaves no evidence.
policy::Residence Residences::of_small(const Extent& extent) const {
    if (extent.file->cached_by() != os::CachedBy::page_cache) return policy::Residence::unknown;
    const auto cached =
        os::cached_fraction(extent.file->handle().buffered_fd, extent.offset_bytes, extent.bytes_in_file);
    return cached ? residence_of(*cached) : policy::Residence::unknown;
}

policy::Residence Residences::of_all() {
    before_ = EvidenceProbe::sample(extents_, unknown_);
    return before_ ? residence_of(before_->fraction()) : policy::Residence::hidden;
}

void Residences::find(const policy::RequestFacts& request) {
    // A plan by rule depends on what is cached for reads only; a plan by a profile depends on it for writes too.
    const bool may_matter = submission_.reading() || request.costs != nullptr;
    const bool automatic = request.path == PathKind::automatic;
    const bool small = request.blocking && request.total_bytes() <= policy::kInlineBytes;
    const bool ask = may_matter && automatic && !request.memory_backed &&
                     (!small || policy::small_residence_matters(request, submission_.context.machine()));
    const bool few = extents_.size() <= kWindowedExtents;
    const bool may_be_registered = submission_.reading() && automatic && request.memory_backed && few;
    policy::Residence shared = policy::Residence::unknown;
    if (may_matter && request.memory_backed) shared = policy::Residence::hot;
    if (ask && !few) shared = of_all();
    for (std::uint64_t i = 0; i < extents_.size(); ++i) {
        if (may_be_registered && registered(extents_[i])) {
            add_whole(i, policy::Residence::registered);
        } else if (ask && small) {
            add_whole(i, of_small(extents_[i]));
        } else if (ask && few) {
            add_windows(i);
        } else {
            add_whole(i, shared);
        }
    }
}

}  // namespace

std::shared_ptr<OpenFile> file_to_register(const Submission& submission, const std::vector<Extent>& extents) {
    if (!submission.reading() || submission.to_host() || extents.empty()) return nullptr;
    const std::shared_ptr<OpenFile>& file = extents.front().file;
    const bool one = std::all_of(extents.begin(), extents.end(), [&](const Extent& e) { return e.file == file; });
    return one && file->memory_backed() ? file : nullptr;
}

Facts gather(const Submission& submission, const Checked& checked) {
    Facts facts{.request = facts_of_call(submission)};
    if (const std::string_view refusal = submission.context.cufile->refusal(); !refusal.empty()) {
        facts.request.gds_cause = facts.request.gds_compat_cause = refusal;
    }
    add_files(checked.extents, facts.request);
    add_registration(submission, checked.extents, facts);
    add_costs(submission, checked, facts);
    if (policy::dirty_room_matters(facts.request, submission.context.machine())) {
        facts.request.dirty_room_bytes = os::dirty_room_bytes();
    }
    Residences residences(submission, checked.extents);
    residences.find(facts.request);
    facts.request.segments = std::move(residences.segments);
    facts.before = residences.before();
    return facts;
}

}  // namespace penstock::context
