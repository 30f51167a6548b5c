// See shapes.hpp. The defaults were measured on an H200 host (16 cores) and on a machine with 2 cores: see
// docs/decisions.
#include "policy/shapes.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "base/path_traits.hpp"
#include "penstock/error.hpp"
#include "policy/choice.hpp"

namespace penstock::policy {
namespace {

// if ranges are smaller on average, the number of operations decides the time
constexpr std::uint64_t kSmallRange = 64 * kKiB;
constexpr std::uint32_t kCopyWorkersMax = 8;      // more workers add CPU time but no bandwidth on a link of 55 GB/s
constexpr std::uint32_t kWritersMax = 2;          // through the page cache of one file
constexpr std::uint32_t kSharedWorkersMax = 12;   // a team keeps only as many of them busy as it needs
constexpr std::uint32_t kMappedWorkersMax = 16;   // page faults cost more than copying the pages
constexpr std::uint64_t kLentChunk = 32 * kMiB;
constexpr std::uint64_t kSharedMin = 64 * kMiB;   // smaller reads start sooner with slots of their own
constexpr std::uint64_t kSharedChunk = 16 * kMiB;
constexpr std::uint64_t kSharedPart = 1 * kMiB;
constexpr std::uint32_t kSharedSlots = 6;         // 96 MiB, which still fits the last-level cache of a server CPU

// Large reads into a real GPU share slots, because one copy of 16 MiB costs the copy engine less than four of 4 MiB.
bool shares_slots(const RequestFacts& request, const MachineFacts& machine, std::uint64_t bytes) {
    const bool device_memory = request.kind == MemoryKind::device || request.kind == MemoryKind::managed;
    const bool free_choice = request.chunk_bytes == 0 && request.depth == 0;
    return request.direction == Direction::read && device_memory && free_choice && !machine.emulated_device &&
           bytes >= kSharedMin && !small_ranges(request) && machine.budget_bytes >= kSharedSlots * kSharedChunk;
}

Shape shared_shape(PathKind path, const MachineFacts& machine) {
    Shape shape;
    const std::uint32_t workers_max = path == PathKind::mmap ? kMappedWorkersMax : kSharedWorkersMax;
    shape.workers = std::clamp<std::uint32_t>(machine.cpus, 1, workers_max);
    shape.chunk_bytes = kSharedChunk;
    shape.part_bytes = kSharedPart;
    shape.depth = kSharedSlots;
    return shape;
}

Shape copying_shape(const RequestFacts& request, const MachineFacts& machine) {
    Shape shape;
    shape.workers = std::clamp<std::uint32_t>(machine.cpus, 1, kCopyWorkersMax);
    // The emulated device copies by CPU: chunks that fit its caches are faster than fewer, larger chunks.
    shape.chunk_bytes = machine.emulated_device ? 512 * kKiB : 4 * kMiB;
    shape.depth = machine.emulated_device ? 2 : 3;
    // Writes wait for the page cache and not for the link, so small slots suffice and leave budget to other transfers.
    if (request.direction == Direction::write && !machine.emulated_device) {
        shape.chunk_bytes = 2 * kMiB;
        shape.depth = 2;
    }
    return shape;
}

// Most file systems admit one writer to a file at a time. Two workers keep it busy. More would wait for the lock and
// cost 10 to 20 %.
bool excludes_writers(const RequestFacts& request) {
    return request.direction == Direction::write && !request.parallel_writes;
}

Shape queue_shape(const RequestFacts& request, const MachineFacts& machine) {
    Shape shape;
    // 64 operations in flight. Smaller pieces keep a disk with several queues busier. On two cores there is one worker
    // for each, because copies into the emulated device use the CPU.
    shape.workers = std::clamp<std::uint32_t>(machine.cpus, 1, 4);
    shape.chunk_bytes = machine.cpus >= 4 ? 512 * kKiB : 1 * kMiB;
    shape.depth = machine.cpus >= 4 ? 16 : 8;
    if (small_ranges(request)) {
        shape.workers = std::clamp<std::uint32_t>(machine.cpus / 2, 1, 4);
        shape.chunk_bytes = 128 * kKiB;
        shape.depth = 8;
    }
    return shape;
}

Shape cufile_shape(PathKind path, const MachineFacts& machine) {
    Shape shape;
    shape.staged = false;
    shape.workers = std::clamp<std::uint32_t>(machine.cpus, 1, 4);
    shape.chunk_bytes = 16 * kMiB;
    shape.depth = 1;
    if (path == PathKind::gds_batch) {
        shape.workers = 1;
        shape.chunk_bytes = 1 * kMiB;
        shape.depth = 32;
    } else if (path == PathKind::gds_stream) {
        shape.workers = 2;
        shape.chunk_bytes = 4 * kMiB;
        shape.depth = 8;
    }
    return shape;
}

}  // namespace

bool small_ranges(const RequestFacts& request) {
    return !request.ranges.empty() && request.total_bytes() / request.ranges.size() < kSmallRange;
}

bool direct_on_caller(const RequestFacts& request, const MachineFacts& machine) {
    if (request.direction == Direction::write || !request.blocking) return false;
    if (host_memory(request) || !request.direct) return false;
    if (request.workers != 0 || request.depth != 0 || request.chunk_bytes != 0) return false;
    if (request.total_bytes() > machine.caller_direct_bytes || request.ranges.size() > kInlineRanges) return false;
    return std::all_of(request.ranges.begin(), request.ranges.end(), [&](const RangeFacts& range) {
        return range.offset_bytes % request.offset_alignment == 0 && range.bytes % request.offset_alignment == 0;
    });
}

bool copied_on_caller(const RequestFacts& request, const MachineFacts& machine) {
    if (!request.blocking || !request.answers_here) return false;
    if (!host_memory(request) && (request.kind != MemoryKind::device || request.direction == Direction::write)) {
        return false;
    }
    if (request.path != PathKind::automatic || request.workers != 0 || request.depth != 0) return false;
    if (request.chunk_bytes != 0 || request.ranges.size() > kInlineRanges) return false;
    const std::uint64_t most = host_memory(request) ? machine.caller_cached_bytes : machine.caller_staged_bytes;
    if (request.total_bytes() > most) return false;
    if (request.direction == Direction::write) {
        return !request.durable && request.total_bytes() <= request.dirty_room_bytes.value_or(UINT64_MAX);
    }
    return std::all_of(request.segments.begin(), request.segments.end(),
                       [](const Segment& segment) { return segment.residence == Residence::hot; });
}

std::uint64_t staging_bytes(const Shape& shape) noexcept {
    if (!shape.staged) return 0;
    return align_up(shape.chunk_bytes * shape.depth, kStagingStep) * (shape.part_bytes != 0 ? 1 : shape.workers);
}

Shape default_shape(PathKind path, const RequestFacts& request, const MachineFacts& machine, std::uint64_t bytes) {
    Shape shape;
    if (is_cufile(path)) {
        shape = cufile_shape(path, machine);
    } else if (path == PathKind::direct) {
        shape = copying_shape(request, machine);
        shape.chunk_bytes = 1 * kMiB;
        shape.workers = std::max(shape.workers, 4u);  // each waits for the disk and hardly uses a CPU
        shape.depth = 2;
    } else if (traits_of(path).family == PathFamily::queue) {
        shape = queue_shape(request, machine);
    } else if (shares_slots(request, machine, bytes) && !request.mapping_registered) {
        shape = shared_shape(path, machine);
        shape.path = path;
        shape.direction = request.direction;
        return shape;
    } else {
        shape = copying_shape(request, machine);
        if (small_ranges(request)) shape.chunk_bytes = 256 * kKiB;
        if (path == PathKind::buffered && excludes_writers(request) && !machine.emulated_device) {
            shape.workers = std::min(shape.workers, kWritersMax);
            shape.chunk_bytes = std::min(shape.chunk_bytes, 1 * kMiB);
            shape.depth = 3;
        }
    }
    shape.path = path;
    shape.direction = request.direction;
    if (path == PathKind::mmap && request.mapping_registered) {
        shape.staged = false;
        shape.workers = 1;
        shape.depth = 4;
        shape.chunk_bytes = kLentChunk;
    }
    // Each worker gets at least two chunks, but no chunk is so small that starting it costs more than moving it. Sizes
    // are powers of two, so that requests of similar size reuse the same slots.
    const std::uint64_t share = std::bit_ceil(bytes / (std::uint64_t{shape.workers} * 2) + 1);
    shape.chunk_bytes = std::clamp<std::uint64_t>(share, 64 * kKiB, shape.chunk_bytes);
    return shape;
}

Shape fit_shape(Shape shape, const RequestFacts& request, const MachineFacts& machine, std::uint64_t bytes) {
    const std::uint64_t step = std::max<std::uint64_t>(bypasses_cache(shape.path) ? request.offset_alignment : 1, 4096);
    if (request.workers != 0) shape.workers = request.workers;
    if (request.depth != 0) shape.depth = request.depth;
    if (request.chunk_bytes != 0) shape.chunk_bytes = request.chunk_bytes;
    shape.chunk_bytes = align_up(std::max<std::uint64_t>(shape.chunk_bytes, 1), step);
    if (!shape.staged) return shape;
    if (shape.part_bytes != 0) return shape;  // such a shape always fits
    const auto need = [&] { return staging_bytes(shape); };
    if (request.workers == 0) {
        const std::uint64_t chunks = (bytes + shape.chunk_bytes - 1) / shape.chunk_bytes;
        shape.workers = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(chunks, 1, shape.workers));
        while (shape.workers > 1 && need() > machine.budget_bytes) --shape.workers;
    }
    if (request.depth == 0) {
        while (shape.depth > 1 && need() > machine.budget_bytes) --shape.depth;
    }
    if (request.chunk_bytes == 0) {
        while (shape.chunk_bytes > step && need() > machine.budget_bytes) {
            shape.chunk_bytes = align_up(shape.chunk_bytes / 2, step);
        }
    }
    if (need() > machine.budget_bytes) {
        throw Error(ErrorCode::invalid_argument, "plan",
                    "chunks of " + std::to_string(shape.chunk_bytes) + " bytes, workers " +
                        std::to_string(shape.workers) + " and depth " + std::to_string(shape.depth) +
                        " need more staging memory than there is: " + std::to_string(machine.budget_bytes) + " bytes",
                    "lower chunk_bytes, workers or depth, or give the context a larger budget_bytes");
    }
    return shape;
}

}  // namespace penstock::policy
