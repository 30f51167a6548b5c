// See choice.hpp. A measured choice replaces the rule's choice only if it is predicted to be faster by more than noise,
// so that paths of equal speed do not alternate.
#include "policy/choice.hpp"

#include <algorithm>
#include <utility>

#include "base/path_traits.hpp"
#include "policy/shapes.hpp"

namespace penstock::policy {
namespace {

constexpr std::uint64_t kMappedReadMin = 1 * kMiB;   // for smaller reads, mapping costs more than pread
constexpr std::uint64_t kQueueMin = 8 * kMiB;        // smaller reads end sooner with blocking threads than with a ring
constexpr std::size_t kFewRanges = 8;                // more ranges than this go to a ring even if they are small
constexpr int kFewTransfers = 4;  // more transfers than this fill a deep queue together, even if each is small
constexpr double kNoise = 1.03;                      // keep the rule's path if it is at most this factor slower
constexpr double kDoubt = 1.15;                      // the same factor where a path was measured too seldom
constexpr std::uint32_t kSure = 3;                   // measurements of a size from which a prediction is reliable
constexpr double kClearly = 1.1;  // factor for small requests, because finding their residency costs time
constexpr std::uint64_t kThrottledMin = 64 * kMiB;   // a smaller write is predicted without a look at the page cache
// Pieces that begin or end inside pages and are shorter than this on average stay in the page cache.
constexpr std::uint64_t kRaggedMax = 512 * kKiB;
constexpr std::uint64_t kRaggedDurableMax = 128 * kKiB;  // where the caller waits for stable storage
constexpr std::uint64_t kAlignedPages = 64;          // in requests of this many pages an unaligned end does not matter

Choice cold_read(const RequestFacts& request, const MachineFacts& machine) {
    if (!request.direct) {
        const std::string cause = "not in the page cache, and O_DIRECT is not possible: " + request.direct_cause;
        return {PathKind::buffered, cause, {}, {}};
    }
    const bool all_cold = std::all_of(request.segments.begin(), request.segments.end(), [](const Segment& segment) {
        return segment.residence == Residence::cold;
    });
    if (all_cold && direct_on_caller(request, machine)) {
        return {PathKind::direct, "not in the page cache; O_DIRECT on the calling thread", {}, {}};
    }
    const bool few_pieces = request.total_bytes() < kQueueMin && request.ranges.size() <= kFewRanges;
    if (few_pieces && request.under_way <= kFewTransfers) {
        const char* reason = "not in the page cache; O_DIRECT by threads: too few pieces for a deep queue";
        return {PathKind::direct, reason, {}, {}};
    }
    if (machine.uring) return {PathKind::uring, "not in the page cache: O_DIRECT with a deep queue", {}, {}};
    return {PathKind::direct, "not in the page cache; O_DIRECT by threads, for io_uring is not usable: " +
                                  machine.uring_cause, {}, {}};
}

Choice read_by_rule(Residence residence, const RequestFacts& request, const MachineFacts& machine) {
    switch (residence) {
        case Residence::registered:
            return {PathKind::mmap, "the mapping is registered with the device: no host copy", {}, {}};
        case Residence::hot:
            if (request.memory_backed && !host_memory(request) && !small_ranges(request) &&
                request.total_bytes() >= kMappedReadMin) {
                return {PathKind::mmap, "the file lives in memory: workers copy from its mapping", {}, {}};
            }
            return {PathKind::buffered, "in the page cache: copying workers", {}, {}};
        case Residence::cold: return cold_read(request, machine);
        case Residence::hidden:
            return {PathKind::buffered, "nothing tells whether it is in the page cache: copying workers", {}, {}};
        case Residence::unknown: break;
    }
    return {PathKind::buffered, "residency not asked", {}, {}};
}

// Returns whether the caller of a write has what it waits for when the page cache has the bytes.
bool may_stay_cached(const RequestFacts& request) {
    return request.blocking && !request.durable && request.answers_here && request.total_bytes() <= kCachedWriteMax;
}

// Returns whether the write is of many short pieces that begin or end inside pages. Past the page cache each such end
// is a write of its own through it, which the kernel brings to the storage before it lets the pages beside it pass.
// Processes that write rows of one file wait for one another there.
bool ragged(const RequestFacts& request, const MachineFacts& machine) {
    const std::size_t count = request.ranges.size();
    const std::uint64_t most = request.durable ? kRaggedDurableMax : kRaggedMax;
    if (!request.answers_here || count <= kFewRanges || request.total_bytes() >= most * count) return false;
    const std::uint64_t page = std::max<std::uint64_t>(machine.page_bytes, 1);
    const auto ends_inside = [&](const RangeFacts& range) {
        return range.offset_bytes % page != 0 || (range.offset_bytes + range.bytes) % page != 0;
    };
    const auto inside = std::count_if(request.ranges.begin(), request.ranges.end(), ends_inside);
    return 2 * static_cast<std::size_t>(inside) > count;
}

Choice write_by_rule(const RequestFacts& request, const MachineFacts& machine) {
    if (request.memory_backed) return {PathKind::buffered, "the file lives in memory: copying workers", {}, {}};
    if (!request.direct) return {PathKind::buffered, "O_DIRECT is not possible: " + request.direct_cause, {}, {}};
    if (request.total_bytes() < kDirectWriteMin) {
        return {PathKind::buffered, "small write: through the page cache", {}, {}};
    }
    if (may_stay_cached(request) && request.total_bytes() <= request.dirty_room_bytes.value_or(UINT64_MAX)) {
        return {PathKind::buffered, "not to stable storage, and the page cache has room: copying workers", {}, {}};
    }
    if (ragged(request, machine)) {
        const PathKind path = machine.uring && !small_ranges(request) ? PathKind::uring_buffered : PathKind::buffered;
        return {path, "many pieces that begin or end inside pages: through the page cache", {}, {}};
    }
    if (!machine.uring) {
        return {PathKind::direct, "O_DIRECT by threads, for io_uring is not usable: " + machine.uring_cause, {}, {}};
    }
    return {PathKind::uring, "large write: O_DIRECT with a deep queue", {}, {}};
}

bool aligned(const RequestFacts& request, const MachineFacts& machine) {
    const std::uint64_t page = std::max<std::uint64_t>(machine.page_bytes, 1);
    return std::all_of(request.ranges.begin(), request.ranges.end(), [&](const RangeFacts& range) {
        return range.offset_bytes % page == 0 && (range.bytes % page == 0 || range.bytes >= kAlignedPages * page);
    });
}

// Returns whether the write ends only when the storage has it.
bool waits_for_storage(const UniformPart& part, const RequestFacts& request) {
    if (request.direction == Direction::read) return false;
    return request.durable || (request.dirty_room_bytes && part.bytes > *request.dirty_room_bytes);
}

// Returns predictions for a part. Times were measured for single ranges, so each of many ranges is predicted as a
// request of its own size.
PathCosts predicted(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine) {
    if (request.costs == nullptr || part.bytes == 0 || part.residence == Residence::registered) return {};
    // times of a cached file predict nothing of one that is not cached
    if (part.residence == Residence::hidden) return {};
    CostQuestion question;
    question.direction = request.direction;
    question.cached = part.residence != Residence::cold;
    question.memory = request.kind;
    question.first_touch = request.first_touch;
    question.aligned = aligned(request, machine);
    question.synced = waits_for_storage(part, request);
    question.bytes = part.bytes;
    return request.costs->predict(question, request.factors);
}

std::string measured_reason(const UniformPart& part, const RequestFacts& request) {
    const char* state = part.residence == Residence::cold ? "not in the page cache" : "in the page cache";
    std::string text = part.residence == Residence::unknown ? "" : std::string(state) + ": ";
    text += std::string("the fastest measured here for this ") + to_string(request.direction);
    if (!waits_for_storage(part, request)) return text;
    return text + (request.durable ? " to stable storage" : " of more than the page cache takes unwritten");
}

// Returns `rule` with the profile's prediction, or the path that the profile predicts to be faster.
Choice by_measurement(Choice rule, const UniformPart& part, const RequestFacts& request, const MachineFacts& machine) {
    const PathCosts costs = predicted(part, request, machine);
    const PathCost* own = nullptr;
    std::array<const PathCost*, 2> best{};  // the two fastest paths that can be taken
    for (const PathCost& cost : costs.all()) {
        if (cost.path == rule.path) own = &cost;
        if (best[1] != nullptr || !refusal(cost.path, request, machine).empty()) continue;
        best[best[0] == nullptr ? 0 : 1] = &cost;
    }
    if (best[0] == nullptr) return rule;
    const bool sure = own != nullptr && std::min(own->samples, best[0]->samples) >= kSure;
    const bool keep = own != nullptr && own->seconds <= best[0]->seconds * (sure ? kNoise : kDoubt);
    const PathCost* taken = keep ? own : best[0];
    const PathCost* next = taken == best[0] ? best[1] : best[0];
    if (!keep) rule.reason = measured_reason(part, request);
    rule.path = taken->path;
    rule.cost = *taken;
    if (next != nullptr) rule.next = *next;
    return rule;
}

// Returns `path` with its prediction and the best of the other paths. Leaves the shape to the policy.
Choice beside(PathKind path, const UniformPart& part, const RequestFacts& request, const MachineFacts& machine) {
    Choice choice{path, {}, {}, {}};
    const PathCosts costs = predicted(part, request, machine);
    for (const PathCost& cost : costs.all()) {
        if (cost.path == path) choice.cost.seconds = cost.seconds, choice.cost.curve = cost.curve;
        else if (choice.next.seconds == 0 && refusal(cost.path, request, machine).empty()) choice.next = cost;
    }
    return choice;
}

}  // namespace

bool dirty_room_matters(const RequestFacts& request, const MachineFacts& machine) {
    if (request.direction == Direction::read || request.memory_backed) return false;
    const std::uint64_t bytes = request.total_bytes();
    if (request.costs != nullptr && bytes >= kThrottledMin) return true;
    return may_stay_cached(request) && bytes >= kDirectWriteMin && bytes > machine.caller_cached_bytes;
}

bool cufile_may_win(const RequestFacts& request, const MachineFacts& machine) {
    if (request.costs == nullptr || request.kind != MemoryKind::device) return false;
    for (Residence residence : {Residence::hot, Residence::cold}) {
        const PathCosts costs = predicted({residence, request.total_bytes()}, request, machine);
        for (const PathCost& cost : costs.all()) {
            if (cost.path == PathKind::gds || cost.path == PathKind::gds_compat) return true;
            if (refusal(cost.path, request, machine).empty()) break;  // a faster path that can be taken without cuFile
        }
    }
    return false;
}

bool host_memory(const RequestFacts& request) {
    return request.kind == MemoryKind::pinned || request.kind == MemoryKind::system;
}

std::string refusal(PathKind path, const RequestFacts& request, const MachineFacts& machine) {
    if (bypasses_cache(path) && !request.direct) return "O_DIRECT is not possible: " + request.direct_cause;
    if (traits_of(path).io_uring && !machine.uring) return machine.uring_cause;
    if (is_cufile(path) && request.kind != MemoryKind::device) {
        return std::string("cuFile moves device memory; this is ") + to_string(request.kind) + " memory";
    }
    if (path == PathKind::gds_batch || path == PathKind::gds_stream) {
        return "batch and stream calls of cuFile are taken only when asked for";
    }
    if (path == PathKind::gds) return request.gds_cause;
    if (path == PathKind::gds_compat) return request.gds_compat_cause;
    if (path == PathKind::mmap && request.direction == Direction::write) {
        return "a mapping cannot tell of a full disk in time: writes take it only when asked to";
    }
    return {};
}

Choice choose_read(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine) {
    Choice rule = read_by_rule(part.residence, request, machine);
    return by_measurement(std::move(rule), part, request, machine);
}

Choice choose_write(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine) {
    return by_measurement(write_by_rule(request, machine), part, request, machine);
}

Choice small_choice(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine) {
    return beside(PathKind::buffered, part, request, machine);
}

bool clearly_faster(const PathCost& one, const PathCost& other) noexcept {
    return one.seconds > 0 && other.seconds > 0 && one.seconds * kClearly < other.seconds;
}

Choice asked_for(const UniformPart& part, const RequestFacts& request, const MachineFacts& machine) {
    Choice choice = beside(request.path, part, request, machine);
    choice.reason = "asked for";
    return choice;
}

std::vector<Candidate> candidates(const RequestFacts& request, const MachineFacts& machine, Residence residence,
                                  std::uint64_t bytes) {
    std::vector<Candidate> found;
    const PathCosts costs = predicted({residence, bytes}, request, machine);
    for (std::size_t i = 0; i < kPathKinds; ++i) {
        const auto path = static_cast<PathKind>(i);
        if (path == PathKind::automatic || path == PathKind::null || path == PathKind::memory) continue;
        Candidate one{path, 0, path == request.path ? std::string() : refusal(path, request, machine)};
        for (const PathCost& cost : costs.all()) {
            if (cost.path == path) one.seconds = cost.seconds;
        }
        found.push_back(std::move(one));
    }
    const auto rank = [](const Candidate& one) { return one.refusal.empty() ? (one.seconds > 0 ? 0 : 1) : 2; };
    std::stable_sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
        return rank(a) != rank(b) ? rank(a) < rank(b) : rank(a) == 0 && a.seconds < b.seconds;
    });
    return found;
}

}  // namespace penstock::policy
