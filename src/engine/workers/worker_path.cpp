// See worker_path.hpp.
#include "engine/workers/worker_path.hpp"

#include <utility>

namespace penstock::engine {
namespace {

constexpr std::uint32_t kPathDepthMin = 32;
constexpr std::uint32_t kPathDepthMax = 256;
constexpr std::uint64_t kSmallChunk = 256 * kKiB;  // chunks up to here may hold many small operations

// Two depths only, so that shapes differ little in what they ask of a path.
std::uint32_t path_depth(const Shape& shape) noexcept {
    return shape.chunk_bytes <= kSmallChunk || shape.depth > kPathDepthMin ? kPathDepthMax : kPathDepthMin;
}

}  // namespace

WorkerPath::WorkerPath(const EngineOptions& options, const Shape& shape, std::uint32_t worker,
                       std::unique_ptr<StagingSlots> slots)
    : kind_(shape.path), depth_(slots ? path_depth(shape) : kPathDepthMin), worker_(worker), slots_(std::move(slots)) {
    PathOptions path_options;
    path_options.depth = depth_;
    if (slots_) {
        if (!slots_->blocks().empty()) path_options.arena = slots_->blocks().front();
        path_options.stream = &slots_->stream();
    }
    path_ = options.make_path(kind_, path_options);
}

void WorkerPath::shut() noexcept {
    path_.reset();
    if (slots_) slots_->drain();
}

bool WorkerPath::serves(const Shape& shape, std::uint32_t worker) const noexcept {
    return is_of(shape.path, worker) && slots_ && slots_->fit(shape) &&
           (!path_->capabilities().asynchronous || depth_ >= path_depth(shape));
}

bool WorkerPath::serves_member(PathKind kind, std::uint32_t worker) const noexcept {
    return is_of(kind, worker) && !slots_;
}

}  // namespace penstock::engine
