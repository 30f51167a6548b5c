// The choices. Each step's reason names the facts that decided it.
#include "policy/policy.hpp"

#include <algorithm>
#include <utility>

#include "penstock/error.hpp"
#include "policy/shapes.hpp"

namespace penstock::policy {
namespace {

constexpr std::size_t kInlineRanges = 8;
constexpr std::uint32_t kWorkersMax = 512;
constexpr std::uint32_t kDepthMax = 4096;
constexpr std::uint64_t kChunkMax = 1 * kGiB;
constexpr std::uint64_t kMappedReadMin = 1 * kMiB;   // below it, mapping costs more than pread
constexpr std::uint64_t kDirectWriteMin = 1 * kMiB;  // below it, O_DIRECT's round trip outweighs the copy it saves

bool host_memory(const RequestFacts& request) {
    return request.kind == MemoryKind::pinned || request.kind == MemoryKind::system;
}

[[noreturn]] void refuse(ErrorCode code, PathKind path, const std::string& cause, const std::string& advice) {
    throw Error(code, std::string("plan path ") + to_string(path), cause, advice);
}

// Beyond these, sums wrap and memory goes into bookkeeping, before any budget is looked at.
void check_wishes(const RequestFacts& request) {
    const auto refuse_over = [](const char* name, std::uint64_t value, std::uint64_t limit) {
        if (value <= limit) return;
        throw Error(ErrorCode::invalid_argument, "plan",
                    std::string(name) + " " + std::to_string(value) + " is more than " + std::to_string(limit),
                    std::string("lower ") + name + ", or leave it to the policy with 0");
    };
    refuse_over("workers", request.workers, kWorkersMax);
    refuse_over("depth", request.depth, kDepthMax);
    refuse_over("chunk_bytes", request.chunk_bytes, kChunkMax);
}

// An asked-for path is taken or refused, never replaced.
void check_asked(const RequestFacts& request, const MachineFacts& machine) {
    check_wishes(request);
    const PathKind path = request.path;
    if (bypasses_cache(path) && !request.direct) {
        refuse(ErrorCode::unsupported, path, "O_DIRECT is not possible: " + request.direct_cause,
               "use path buffered or auto");
    }
    if ((path == PathKind::uring || path == PathKind::uring_buffered) && !machine.uring) {
        refuse(ErrorCode::unsupported, path, machine.uring_cause, "use path direct, aio or buffered");
    }
    if (is_cufile(path) && request.kind != MemoryKind::device) {
        refuse(ErrorCode::unsupported, path, std::string("cuFile moves device memory; this is ") +
               to_string(request.kind) + " memory", "use a device buffer or another path");
    }
}

// Whether every operation may go straight between the file and the caller's memory without a slot.
bool straight(PathKind path, const RequestFacts& request) {
    if (!host_memory(request)) return false;
    if (!bypasses_cache(path)) return true;
    return std::all_of(request.ranges.begin(), request.ranges.end(), [&](const RangeFacts& range) {
        return range.offset_bytes % request.offset_alignment == 0 && range.bytes % request.offset_alignment == 0 &&
               range.memory_address % request.memory_alignment == 0;
    });
}

struct Choice {
    PathKind path;
    std::string reason;
};

Choice cold_read(const RequestFacts& request, const MachineFacts& machine) {
    if (!request.direct) {
        return {PathKind::buffered, "not in the page cache, and O_DIRECT is not possible: " + request.direct_cause};
    }
    if (machine.uring) return {PathKind::uring, "not in the page cache: O_DIRECT with a deep queue"};
    return {PathKind::direct, "not in the page cache; O_DIRECT by threads, for io_uring is not usable: " +
                                  machine.uring_cause};
}

Choice choose_read(Residence residence, const RequestFacts& request, const MachineFacts& machine) {
    switch (residence) {
        case Residence::registered: return {PathKind::mmap, "the mapping is registered with the device: no host copy"};
        case Residence::hot:
            if (request.memory_backed && !host_memory(request) && !small_ranges(request) &&
                request.total_bytes() >= kMappedReadMin) {
                return {PathKind::mmap, "the file lives in memory: workers copy from its mapping"};
            }
            return {PathKind::buffered, "in the page cache: copying workers"};
        case Residence::cold: return cold_read(request, machine);
        case Residence::unknown: break;
    }
    return {PathKind::buffered, "residency not asked"};
}

Choice choose_write(const RequestFacts& request, const MachineFacts& machine) {
    if (request.memory_backed) return {PathKind::buffered, "the file lives in memory: copying workers"};
    if (!request.direct) return {PathKind::buffered, "O_DIRECT is not possible: " + request.direct_cause};
    if (request.total_bytes() < kDirectWriteMin) return {PathKind::buffered, "small write: through the page cache"};
    if (!machine.uring) {
        return {PathKind::direct, "O_DIRECT by threads, for io_uring is not usable: " + machine.uring_cause};
    }
    return {PathKind::uring, "large write: O_DIRECT with a deep queue"};
}

Step make_step(const Choice& choice, const RequestFacts& request, const MachineFacts& machine,
               std::vector<PlanPiece> pieces) {
    std::uint64_t bytes = 0;
    for (const PlanPiece& piece : pieces) bytes += piece.bytes;
    Shape shape = default_shape(choice.path, request, machine, bytes);
    if (straight(choice.path, request)) shape.staged = false;
    return {fit_shape(shape, request, machine, bytes), std::move(pieces), choice.reason};
}

// Splits the pieces of a write for a path that needs alignment: whole pages go that way, edges through the page cache.
// Pages, not blocks: buffered and direct writes must not share a page of the cache.
void split_edges(const RequestFacts& request, const MachineFacts& machine, const std::vector<PlanPiece>& pieces,
                 std::vector<PlanPiece>& body, std::vector<PlanPiece>& edges) {
    const std::uint64_t step = std::max(request.offset_alignment, machine.page_bytes);
    for (const PlanPiece& piece : pieces) {
        const std::uint64_t start = request.ranges[piece.range].offset_bytes + piece.offset_bytes;
        const std::uint64_t end = start + piece.bytes;
        const std::uint64_t body_start = align_up(start, step);
        const std::uint64_t body_end = align_down(end, step);
        if (body_start >= body_end) {
            edges.push_back(piece);
            continue;
        }
        const auto part = [&](std::uint64_t from, std::uint64_t to) {
            return PlanPiece{piece.range, piece.offset_bytes + (from - start), to - from};
        };
        if (body_start > start) edges.push_back(part(start, body_start));
        body.push_back(part(body_start, body_end));
        if (end > body_end) edges.push_back(part(body_end, end));
    }
}

void add_write_steps(Plan& plan, const Choice& choice, const RequestFacts& request, const MachineFacts& machine) {
    std::vector<PlanPiece> pieces;
    for (const Segment& segment : request.segments) pieces.push_back(segment.piece);
    if (!bypasses_cache(choice.path)) {
        plan.steps.push_back(make_step(choice, request, machine, std::move(pieces)));
        return;
    }
    std::vector<PlanPiece> body;
    std::vector<PlanPiece> edges;
    split_edges(request, machine, pieces, body, edges);
    if (!edges.empty() && request.strict && request.path != PathKind::automatic) {
        refuse(ErrorCode::fallback_refused, request.path,
               "the range does not start and end on multiples of " +
                   std::to_string(std::max(request.offset_alignment, machine.page_bytes)) + " bytes",
               "align the write, or do not ask for strict");
    }
    if (!body.empty()) plan.steps.push_back(make_step(choice, request, machine, std::move(body)));
    if (edges.empty()) return;
    RequestFacts loose = request;  // the caller's chunk and workers are meant for the body
    if (!plan.steps.empty()) loose.workers = loose.depth = 0, loose.chunk_bytes = 0;
    Step step =
        make_step({PathKind::buffered, "unaligned edges of an O_DIRECT write"}, loose, machine, std::move(edges));
    step.fallback_from = request.path == PathKind::automatic ? PathKind::automatic : choice.path;
    plan.steps.push_back(std::move(step));
}

void add_read_steps(Plan& plan, const RequestFacts& request, const MachineFacts& machine) {
    if (request.path != PathKind::automatic) {
        std::vector<PlanPiece> pieces;
        for (const Segment& segment : request.segments) pieces.push_back(segment.piece);
        plan.steps.push_back(make_step({request.path, "asked for"}, request, machine, std::move(pieces)));
        return;
    }
    for (Residence residence : {Residence::registered, Residence::hot, Residence::cold, Residence::unknown}) {
        std::vector<PlanPiece> pieces;
        for (const Segment& segment : request.segments) {
            if (segment.residence == residence) pieces.push_back(segment.piece);
        }
        if (pieces.empty()) continue;
        RequestFacts facts = request;
        facts.mapping_registered = residence == Residence::registered;
        plan.steps.push_back(make_step(choose_read(residence, request, machine), facts, machine, std::move(pieces)));
    }
}

bool small_enough_inline(const RequestFacts& request) {
    if (request.path != PathKind::automatic && request.path != PathKind::buffered) return false;
    return request.blocking && request.total_bytes() <= kInlineBytes && request.ranges.size() <= kInlineRanges &&
           request.workers == 0 && request.depth == 0;
}

}  // namespace

std::uint64_t RequestFacts::total_bytes() const noexcept {
    std::uint64_t total = 0;
    for (const RangeFacts& range : ranges) total += range.bytes;
    return total;
}

Plan make_plan(const RequestFacts& request, const MachineFacts& machine) {
    check_asked(request, machine);
    Plan plan;
    if (small_enough_inline(request)) {
        Step step;
        step.shape = {PathKind::buffered, request.direction, !host_memory(request), true, kInlineBytes, 1, 1};
        for (const Segment& segment : request.segments) step.pieces.push_back(segment.piece);
        step.reason = "small: on the calling thread";
        plan.steps.push_back(std::move(step));
    } else if (request.direction == Direction::read) {
        add_read_steps(plan, request, machine);
    } else if (request.path != PathKind::automatic) {
        add_write_steps(plan, {request.path, "asked for"}, request, machine);
    } else {
        add_write_steps(plan, choose_write(request, machine), request, machine);
    }
    for (const Step& step : plan.steps) {
        plan.pinned_bytes += staging_bytes(step.shape);
    }
    plan.pinned_bytes = std::min(plan.pinned_bytes, machine.budget_bytes);
    return plan;
}

}  // namespace penstock::policy
