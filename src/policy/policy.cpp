// See policy.hpp. The reason of each step names the facts that decided it.
#include "policy/policy.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/path_traits.hpp"
#include "penstock/error.hpp"
#include "policy/choice.hpp"
#include "policy/shapes.hpp"

namespace penstock::policy {
namespace {

constexpr std::uint32_t kWorkersWishMax = 512;
constexpr std::uint32_t kDepthMax = 4096;
constexpr std::uint64_t kChunkMax = 1 * kGiB;
constexpr std::uint64_t kChunkStep = 4 * kKiB;  // the unit of shapes: see fit_shape()

[[noreturn]] void refuse(ErrorCode code, PathKind path, const std::string& cause, const std::string& advice) {
    throw Error(code, std::string("plan path ") + to_string(path), cause, advice);
}

// With larger values, sums would wrap and bookkeeping would take too much memory, before the budget is checked.
void check_wishes(const RequestFacts& request) {
    const auto refuse_over = [](const char* name, std::uint64_t value, std::uint64_t limit) {
        if (value <= limit) return;
        throw Error(ErrorCode::invalid_argument, "plan",
                    std::string(name) + " " + std::to_string(value) + " is more than " + std::to_string(limit),
                    std::string("lower ") + name + ", or leave it to the policy with 0");
    };
    refuse_over("workers", request.workers, kWorkersWishMax);
    refuse_over("depth", request.depth, kDepthMax);
    refuse_over("chunk_bytes", request.chunk_bytes, kChunkMax);
    if (request.chunk_bytes % kChunkStep == 0) return;
    throw Error(ErrorCode::invalid_argument, "plan",
                "chunk_bytes " + std::to_string(request.chunk_bytes) + " is no multiple of " +
                    std::to_string(kChunkStep),
                "use " + std::to_string(align_up(request.chunk_bytes, kChunkStep)) +
                    ", or leave it to the policy with 0");
}

// Checks that a path the caller named can be taken. The policy never replaces it by another.
void check_asked(const RequestFacts& request, const MachineFacts& machine) {
    check_wishes(request);
    const PathKind path = request.path;
    if (bypasses_cache(path) && !request.direct) {
        refuse(ErrorCode::unsupported, path, "O_DIRECT is not possible: " + request.direct_cause,
               "use path buffered or auto");
    }
    if (bypasses_cache(path) && request.strict && !request.bypass_unknown.empty()) {
        refuse(ErrorCode::fallback_refused, path,
               "nothing tells whether bytes go past the page cache here: " + request.bypass_unknown,
               "use path buffered or auto, or do not ask for strict");
    }
    if (traits_of(path).io_uring && !machine.uring) {
        refuse(ErrorCode::unsupported, path, machine.uring_cause, "use path direct, aio or buffered");
    }
    if (is_cufile(path) && request.kind != MemoryKind::device) {
        refuse(ErrorCode::unsupported, path, std::string("cuFile moves device memory; this is ") +
               to_string(request.kind) + " memory", "use a device buffer or another path");
    }
}

// Returns whether every operation may move bytes between the file and the caller's memory without a slot.
bool straight(PathKind path, const RequestFacts& request) {
    if (!host_memory(request)) return false;
    if (!bypasses_cache(path)) return true;
    return std::all_of(request.ranges.begin(), request.ranges.end(), [&](const RangeFacts& range) {
        return range.offset_bytes % request.offset_alignment == 0 && range.bytes % request.offset_alignment == 0 &&
               range.memory_address % request.memory_alignment == 0;
    });
}

void predict(Step& step, const Choice& choice) {
    step.predicted_seconds = choice.cost.seconds;
    step.cost_curve = choice.cost.curve;
    step.next_path = choice.next.path;
    step.next_seconds = choice.next.seconds;
}

// Returns the request with the shape that was measured as the best for this path. Values that the caller gave stay, and
// the shape must fit the budget.
RequestFacts with_measured_shape(const RequestFacts& request, const Choice& choice, const MachineFacts& machine,
                                 std::uint64_t bytes) {
    RequestFacts wish = request;
    if (wish.workers == 0) wish.workers = choice.cost.workers;
    if (wish.depth == 0) wish.depth = choice.cost.depth;
    if (wish.chunk_bytes == 0) wish.chunk_bytes = choice.cost.chunk_bytes;
    Shape shape = default_shape(choice.path, wish, machine, bytes);
    if (wish.workers != 0) shape.workers = wish.workers;
    if (wish.depth != 0) shape.depth = wish.depth;
    if (wish.chunk_bytes != 0) shape.chunk_bytes = wish.chunk_bytes;
    return staging_bytes(shape) <= machine.budget_bytes ? wish : request;
}

Step make_step(const Choice& choice, const RequestFacts& request, const MachineFacts& machine,
               std::vector<PlanPiece> pieces) {
    Step step;
    step.pieces = std::move(pieces);
    const std::uint64_t bytes = step.bytes();
    const bool measured_shape = choice.cost.workers != 0 || choice.cost.depth != 0 || choice.cost.chunk_bytes != 0;
    std::optional<RequestFacts> measured;
    if (measured_shape) measured = with_measured_shape(request, choice, machine, bytes);
    const RequestFacts& wish = measured ? *measured : request;
    Shape shape = default_shape(choice.path, wish, machine, bytes);
    if (straight(choice.path, request)) shape.staged = false;
    step.shape = fit_shape(shape, wish, machine, bytes);
    step.reason = choice.reason;
    predict(step, choice);
    return step;
}

struct SplitPieces {
    std::vector<PlanPiece> body, edges;
};

// Splits the pieces of a write for a path that needs alignment: whole pages take that path, edges the page cache. It
// splits by pages and not by blocks, because buffered and direct writes must not share a page of the cache.
SplitPieces split_edges(const RequestFacts& request, const MachineFacts& machine,
                        const std::vector<PlanPiece>& pieces) {
    SplitPieces split;
    const std::uint64_t step = std::max(request.offset_alignment, machine.page_bytes);
    for (const PlanPiece& piece : pieces) {
        const std::uint64_t start = request.ranges[piece.range].offset_bytes + piece.offset_bytes;
        const std::uint64_t end = start + piece.bytes;
        const std::uint64_t body_start = align_up(start, step);
        const std::uint64_t body_end = align_down(end, step);
        if (body_start >= body_end) {
            split.edges.push_back(piece);
            continue;
        }
        const auto part = [&](std::uint64_t from, std::uint64_t to) {
            return PlanPiece{piece.range, piece.offset_bytes + (from - start), to - from};
        };
        if (body_start > start) split.edges.push_back(part(start, body_start));
        split.body.push_back(part(body_start, body_end));
        if (end > body_end) split.edges.push_back(part(body_end, end));
    }
    return split;
}

void add_write_steps(Plan& plan, const Choice& choice, const RequestFacts& request, const MachineFacts& machine) {
    std::vector<PlanPiece> pieces;
    for (const Segment& segment : request.segments) pieces.push_back(segment.piece);
    if (!bypasses_cache(choice.path)) {
        plan.steps.push_back(make_step(choice, request, machine, std::move(pieces)));
        return;
    }
    auto [body, edges] = split_edges(request, machine, pieces);
    if (!edges.empty() && request.strict && request.path != PathKind::automatic) {
        refuse(ErrorCode::fallback_refused, request.path,
               "the range does not start and end on multiples of " +
                   std::to_string(std::max(request.offset_alignment, machine.page_bytes)) + " bytes",
               "align the write, or do not ask for strict");
    }
    if (!body.empty()) plan.steps.push_back(make_step(choice, request, machine, std::move(body)));
    if (edges.empty()) return;
    RequestFacts loose = request;  // the caller's chunk and workers apply to the body only
    if (!plan.steps.empty()) loose.workers = loose.depth = 0, loose.chunk_bytes = 0;
    const Choice at_edges{PathKind::buffered, "unaligned edges of an O_DIRECT write", {}, {}};
    Step step = make_step(at_edges, loose, machine, std::move(edges));
    step.fallback_from = request.path == PathKind::automatic ? PathKind::automatic : choice.path;
    plan.steps.push_back(std::move(step));
}

std::uint64_t bytes_of(const std::vector<PlanPiece>& pieces) {
    std::uint64_t total = 0;
    for (const PlanPiece& piece : pieces) total += piece.bytes;
    return total;
}

// Returns the residence of most bytes. A write is not split by residence.
Residence main_residence(const RequestFacts& request) {
    std::uint64_t hot = 0;
    std::uint64_t cold = 0;
    for (const Segment& segment : request.segments) {
        if (segment.residence == Residence::hot) hot += segment.piece.bytes;
        if (segment.residence == Residence::cold) cold += segment.piece.bytes;
    }
    if (hot == 0 && cold == 0) return Residence::unknown;
    return hot > cold ? Residence::hot : Residence::cold;
}

void add_read_steps(Plan& plan, const RequestFacts& request, const MachineFacts& machine) {
    if (request.path != PathKind::automatic) {
        std::vector<PlanPiece> pieces;
        for (const Segment& segment : request.segments) pieces.push_back(segment.piece);
        const UniformPart part{main_residence(request), bytes_of(pieces)};
        plan.steps.push_back(make_step(asked_for(part, request, machine), request, machine, std::move(pieces)));
        return;
    }
    for (Residence residence : {Residence::registered, Residence::hot, Residence::cold, Residence::hidden,
                                Residence::unknown}) {
        std::vector<PlanPiece> pieces;
        for (const Segment& segment : request.segments) {
            if (segment.residence == residence) pieces.push_back(segment.piece);
        }
        if (pieces.empty()) continue;
        RequestFacts facts = request;
        facts.mapping_registered = residence == Residence::registered;
        const Choice choice = choose_read({residence, bytes_of(pieces)}, request, machine);
        plan.steps.push_back(make_step(choice, facts, machine, std::move(pieces)));
    }
}

bool small_enough_inline(const RequestFacts& request) {
    if (request.path != PathKind::automatic && request.path != PathKind::buffered) return false;
    return request.blocking && request.total_bytes() <= kInlineBytes && request.ranges.size() <= kInlineRanges &&
           request.workers == 0 && request.depth == 0;
}

bool all_cold(const RequestFacts& request) {
    return std::all_of(request.segments.begin(), request.segments.end(),
                       [](const Segment& segment) { return segment.residence == Residence::cold; });
}

// Returns whether a small request uses the page cache on the calling thread. Its residency is seldom asked for. There
// are two exceptions. First, the profile says that another path is clearly faster both for cached and for uncached
// bytes. Second, the bytes are known to be uncached and a read past the cache is faster. If uncached bytes were not
// asked for, the prediction is wrong and the evidence shows it.
bool goes_inline(const RequestFacts& request, const MachineFacts& machine, Choice& choice) {
    if (!small_enough_inline(request)) return false;
    // The context found the residency because it matters here.
    if (all_cold(request) && request.costs != nullptr && direct_on_caller(request, machine)) return false;
    choice = {PathKind::buffered, "small: on the calling thread", {}, {}};
    if (request.costs == nullptr || request.path != PathKind::automatic) return true;
    const Choice hot = small_choice({Residence::hot, request.total_bytes()}, request, machine);
    choice.cost = hot.cost;
    choice.next = hot.next;
    if (!clearly_faster(hot.next, hot.cost)) return true;
    const Choice cold = small_choice({Residence::cold, request.total_bytes()}, request, machine);
    return !(clearly_faster(cold.next, cold.cost) && cold.next.path == hot.next.path);
}

// A transfer by one path that the waiting thread can make itself. A profile has measured it by workers: what is
// predicted is the most that it takes, and nothing is learnt of it.
void put_on_caller(Plan& plan, const RequestFacts& request, const MachineFacts& machine) {
    if (plan.steps.size() != 1) return;
    Step& step = plan.steps.front();
    if (step.shape.path == PathKind::direct && direct_on_caller(request, machine)) {
        step.shape = {PathKind::direct, Direction::read, true, true, machine.caller_direct_bytes, 0, 1, 1};
    } else if (step.shape.path == PathKind::buffered && copied_on_caller(request, machine)) {
        const bool reads = request.direction == Direction::read;
        const bool staged = !host_memory(request);
        const std::uint64_t chunk = staged ? kStagedPiece : machine.caller_cached_bytes;
        step.shape = {PathKind::buffered, request.direction, staged, true, chunk, 0, 1, staged ? 2u : 1u};
        step.cost_curve = 0;
        if (request.costs != nullptr) return;
        step.reason = reads ? "in the page cache: a worker would have to be woken"
                            : "small write: to the page cache; a worker would have to be woken";
    }
}

}  // namespace

bool small_residence_matters(const RequestFacts& request, const MachineFacts& machine) {
    if (request.costs == nullptr || request.path != PathKind::automatic || !machine.cachestat) return false;
    if (!small_enough_inline(request) || !direct_on_caller(request, machine)) return false;
    if (request.total_bytes() < kAskedMin) return false;
    const Choice cold = small_choice({Residence::cold, request.total_bytes()}, request, machine);
    return cold.next.path == PathKind::direct && clearly_faster(cold.next, cold.cost);
}

std::uint64_t RequestFacts::total_bytes() const noexcept {
    std::uint64_t total = 0;
    for (const RangeFacts& range : ranges) total += range.bytes;
    return total;
}

Plan make_plan(const RequestFacts& request, const MachineFacts& machine) {
    check_asked(request, machine);
    Plan plan;
    Choice small;
    if (goes_inline(request, machine, small)) {
        Step step;
        step.shape = {PathKind::buffered, request.direction, !host_memory(request), true, kInlineBytes, 0, 1, 1};
        for (const Segment& segment : request.segments) step.pieces.push_back(segment.piece);
        step.reason = small.reason;
        predict(step, small);
        plan.steps.push_back(std::move(step));
    } else if (request.direction == Direction::read) {
        add_read_steps(plan, request, machine);
        put_on_caller(plan, request, machine);
    } else {
        const UniformPart part{main_residence(request), request.total_bytes()};
        const bool asked = request.path != PathKind::automatic;
        add_write_steps(plan, asked ? asked_for(part, request, machine) : choose_write(part, request, machine),
                        request, machine);
        put_on_caller(plan, request, machine);
    }
    for (const Step& step : plan.steps) {
        plan.pinned_bytes += staging_bytes(step.shape);
    }
    plan.pinned_bytes = std::min(plan.pinned_bytes, machine.budget_bytes);
    return plan;
}

}  // namespace penstock::policy
