// See bypass_check.hpp. More than half of what was not in the page cache before must be there afterwards to count as a
// fallback where only residency tells: single pages come by edges that are not aligned, and by others' readahead.
#include "context/files/bypass_check.hpp"

#include <algorithm>

#include "base/path_traits.hpp"
#include "os/file/extents.hpp"
#include "policy/shapes.hpp"

namespace penstock::context {
namespace {

constexpr std::size_t kPartsMax = 16;  // of which FIEMAP is asked
constexpr const char* kEncoded =
    "the file system keeps these bytes compressed or among its metadata, and reads them by the page cache";

// Bytes of paths that bypass the page cache.
std::uint64_t bypassing_bytes(const Evidence& evidence) {
    std::uint64_t bytes = 0;
    for (const PathShare& share : evidence.paths) bytes += bypasses_cache(share.path) ? share.bytes : 0;
    return bytes;
}

// Some bytes went through the page cache by a path of that kind. Then pages that came prove nothing of the others.
bool fell_into_cache(const Evidence& evidence) {
    return std::any_of(evidence.fallbacks.begin(), evidence.fallbacks.end(), [](const Fallback& fallback) {
        return traits_of(fallback.took).page_cache == PageCacheUse::through;
    });
}

void add_fallback(Evidence& evidence, Fallback fallback) {
    for (Fallback& known : evidence.fallbacks) {
        if (known.wanted != fallback.wanted || known.took != fallback.took || known.cause != fallback.cause) continue;
        known.bytes += fallback.bytes;
        return;
    }
    evidence.fallbacks.push_back(std::move(fallback));
}

// Moves bytes of a share to the path that they took. With the last of them go its operations and copies.
void move_share(Evidence& evidence, std::size_t from, std::uint64_t bytes) {
    PathShare taken = evidence.paths[from];
    taken.path = PathKind::buffered;
    taken.past_page_cache = false;
    if (bytes < taken.bytes) {
        taken.operations = taken.host_copies_bytes = 0;
        taken.bytes = bytes;
        evidence.paths[from].bytes -= bytes;
    } else {
        evidence.paths.erase(evidence.paths.begin() + static_cast<std::ptrdiff_t>(from));
    }
    const auto same = std::find_if(evidence.paths.begin(), evidence.paths.end(),
                                   [](const PathShare& share) { return share.path == PathKind::buffered; });
    if (same == evidence.paths.end()) {
        evidence.paths.push_back(taken);
        return;
    }
    same->bytes += taken.bytes;
    same->operations += taken.operations;
    same->host_copies_bytes += taken.host_copies_bytes;
}

}  // namespace

std::shared_ptr<BypassCheck> BypassCheck::of(const Plan& plan, const std::vector<Extent>& extents,
                                             const BypassOptions& options) {
    std::shared_ptr<BypassCheck> check;
    bool alone = true;
    for (const Step& step : plan.steps) {
        if (!bypasses_cache(step.shape.path)) {
            alone = false;
            continue;
        }
        if (!check) check = std::make_shared<BypassCheck>();
        for (const PlanPiece& piece : step.pieces) check->add(piece, extents);
        check->asked_ |= step.reason == "asked for";
    }
    if (!check) return nullptr;
    check->options_ = options;
    check->alone_ = alone;
    for (const Extent& part : check->parts_) {
        const os::DirectFacts& direct = part.file->direct();
        check->promised_ &= direct.bypass == os::Bypass::promised;
        if (!direct.unknown_cause.empty()) check->unknown_ = direct.unknown_cause;
        if (options.direction == Direction::write && check->unknown_.empty()) {
            check->unknown_ = direct.write_unknown_cause;
        }
    }
    const bool look = options.direction == Direction::read && !check->promised_ && check->unknown_.empty();
    std::string why;
    if (look && !(alone && options.has_probe)) check->before_ = EvidenceProbe::sample(check->parts_, why);
    return check;
}

void BypassCheck::add(const PlanPiece& piece, const std::vector<Extent>& extents) {
    Extent& part = parts_.emplace_back(extents[piece.range]);
    part.offset_bytes += piece.offset_bytes;
    part.bytes = part.bytes_in_file = piece.bytes;
}

std::uint64_t BypassCheck::bytes() const {
    std::uint64_t total = 0;
    for (const Extent& part : parts_) total += part.bytes;
    return total;
}

std::optional<std::uint64_t> BypassCheck::encoded() const {
    if (parts_.size() > kPartsMax) return std::nullopt;
    std::uint64_t total = 0;
    for (const Extent& part : parts_) {
        const auto found = os::encoded_bytes(part.file->handle().buffered_fd, part.offset_bytes, part.bytes);
        if (!found) return std::nullopt;
        total += *found;
    }
    return total;
}

// What came into the page cache, in bytes of the whole transfer.
std::uint64_t BypassCheck::grown_bytes(const Residency& before, const Residency& after) const {
    if (after.resident_pages <= before.resident_pages) return 0;
    const double share = static_cast<double>(after.resident_pages - before.resident_pages) /
                         static_cast<double>(after.sampled_pages);
    return static_cast<std::uint64_t>(share * static_cast<double>(bytes()));
}

BypassCheck::Verdict BypassCheck::verdict_of_read(const Evidence& evidence) const {
    const std::uint64_t encoded_bytes = promised_ ? 0 : encoded().value_or(0);
    const bool probed = alone_ && options_.has_probe;
    std::optional<Residency> before = probed ? evidence.before : before_;
    std::optional<Residency> after = probed ? evidence.after : std::nullopt;
    std::string why = "nothing tells what the page cache holds of the file";
    if (!probed && before_) after = EvidenceProbe::sample(parts_, why);
    if (encoded_bytes == 0 && (!before || !after)) return {promised_ ? std::optional(true) : std::nullopt, 0, why};
    if (encoded_bytes != 0) {  // where a call meets such bytes, btrfs reads the rest of it by the page cache as well
        const std::uint64_t came_bytes = before && after ? grown_bytes(*before, *after) : 0;
        return {std::nullopt, std::min(std::max(encoded_bytes, came_bytes), bytes()), kEncoded};
    }
    const std::uint64_t cold = before->sampled_pages - std::min(before->resident_pages, before->sampled_pages);
    const std::uint64_t came = after->resident_pages - std::min(before->resident_pages, after->resident_pages);
    if (alone_ && !fell_into_cache(evidence) && came * 2 > cold) {
        return {std::nullopt, grown_bytes(*before, *after),
                "the pages that were read are in the page cache afterwards, and were not before"};
    }
    // btrfs reads plain bytes by the page cache too, into memory that has no pages yet: of hot bytes no page tells it.
    if (promised_ || cold * 2 >= before->sampled_pages) return {true, 0, {}};
    return {std::nullopt, 0, "most of it was in the page cache before, so the pages that are there prove nothing"};
}

BypassCheck::Verdict BypassCheck::verdict_of_write(const Evidence& evidence) const {
    const bool probed = alone_ && options_.has_probe;
    if (promised_ && !probed) return {true, 0, {}};
    std::string why;
    const std::optional<Residency> after = probed ? evidence.after : EvidenceProbe::sample(parts_, why);
    if (!after) return {promised_ ? std::optional(true) : std::nullopt, 0, why};
    if (alone_ && !fell_into_cache(evidence) && after->resident_pages * 2 > after->sampled_pages) {
        return {true, bytes(), "the pages that were written are in the page cache afterwards"};
    }
    return {true, 0, {}};
}

void BypassCheck::judge(Outcome& outcome) const {
    if (!outcome.ok() || bypassing_bytes(outcome.evidence) == 0) return;
    Verdict verdict{std::nullopt, 0, unknown_};
    if (unknown_.empty()) {
        verdict = options_.direction == Direction::read ? verdict_of_read(outcome.evidence)
                                                        : verdict_of_write(outcome.evidence);
    }
    tell(verdict, outcome);
    if (options_.strict && asked_ && (verdict.fallen_bytes != 0 || !verdict.past)) refuse(verdict, outcome);
}

void BypassCheck::tell(const Verdict& verdict, Outcome& outcome) const {
    Evidence& evidence = outcome.evidence;
    std::uint64_t left = verdict.fallen_bytes;
    for (std::size_t i = evidence.paths.size(); i-- > 0;) {
        const PathShare share = evidence.paths[i];
        if (!bypasses_cache(share.path)) continue;
        evidence.paths[i].past_page_cache = verdict.past;
        const std::uint64_t fallen = std::min(left, share.bytes);
        if (fallen == 0) continue;
        left -= fallen;
        move_share(evidence, i, fallen);
        add_fallback(evidence, {share.path, PathKind::buffered, fallen, verdict.cause});
    }
    std::sort(evidence.paths.begin(), evidence.paths.end(),
              [](const PathShare& a, const PathShare& b) { return a.bytes > b.bytes; });
    if (verdict.fallen_bytes != 0 && options_.direction == Direction::read) {
        for (const Extent& part : parts_) part.file->reads_by_cache = true;
    }
    if (!verdict.past && bypassing_bytes(evidence) != 0) {
        evidence.notes.push_back("whether it went past the page cache is unknown: " + verdict.cause);
    }
}

void BypassCheck::refuse(const Verdict& verdict, Outcome& outcome) const {
    ErrorInfo& info = outcome.error;
    info.code = ErrorCode::fallback_refused;
    info.operation = to_string(options_.direction);
    info.file = parts_.front().file->handle().name;
    info.offset_bytes = parts_.front().offset_bytes;
    info.length_bytes = bytes();
    info.cause = verdict.fallen_bytes != 0 ? "O_DIRECT was taken, but " + verdict.cause
                              : "whether it went past the page cache is unknown: " + verdict.cause;
    info.advice = "use path buffered or auto, or do not ask for strict";
}

}  // namespace penstock::context
