// Joining small leaves of the same rows into jobs for warps.
#include "hmatrix/gpu/plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>

#include "hmatrix/file/packed.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix::gpu {
namespace {

// A warp's job is ended beyond this: long ones would leave the rest of the GPU idle at the end of a batch.
constexpr std::int64_t kJobBytes = 16 * 1024;

[[noreturn]] void refuse(std::size_t leaf, const std::string& cause) {
    throw Error(ErrorCode::unsupported, "prepare products on the GPU", "leaf " + std::to_string(leaf) + " " + cause,
                "multiply on the device host");
}

Leaf leaf_of(const MatrixFile& file, std::size_t number) {
    const LeafPlace& place = file.tables().leaves[number];
    const LeafShape& shape = place.shape;
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (shape.rows > kMost || shape.columns > kMost) refuse(number, "has more than 2^31 rows or columns");
    if (shape.low_rank && shape.counts[kMaxTiers - 1][0] > kBlockRank) {
        refuse(number, "has rank " + std::to_string(shape.counts[kMaxTiers - 1][0]) + ", above " +
                           std::to_string(kBlockRank));
    }
    Leaf leaf{place.row, place.column, static_cast<std::int32_t>(shape.rows), static_cast<std::int32_t>(shape.columns),
              shape.low_rank ? 1 : 0, {}, {}};
    const std::int64_t word = file.encoding() == Encoding::tiers ? 4 : 8;
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        const std::int64_t offset = place.tier_offset[tier] / word;
        if (offset > std::numeric_limits<std::uint32_t>::max()) refuse(number, "lies too far into its batch");
        leaf.tier_offset[tier] = static_cast<std::uint32_t>(offset);
        std::copy(shape.counts[tier].begin(), shape.counts[tier].end(), leaf.counts[tier]);
    }
    return leaf;
}

bool for_a_warp(const Leaf& leaf, Encoding encoding) {
    const int rows = encoding == Encoding::tiers ? kWarpRowsOfDigits : kWarpRowsOfDoubles;
    const bool rank_fits = !leaf.low_rank || leaf.counts[kMaxTiers - 1][0] <= kWarpRank;
    return leaf.rows <= rows && leaf.columns <= kWarpColumns && rank_fits;
}

std::int64_t bytes_of(const MatrixFile& file, std::int64_t leaf) {
    std::int64_t bytes = 0;
    for (int tier = 0; tier < file.tiers(); ++tier) {
        bytes += tier_bytes(file.encoding(), file.tables().leaves[leaf].shape, tier);
    }
    return bytes;
}

void add_batch(const MatrixFile& file, const BatchRecord& record, Plan& made) {
    BatchPlan batch;
    batch.first_order = static_cast<std::int64_t>(made.order.size());
    batch.first_warp_job = static_cast<std::int64_t>(made.warp_jobs.size());
    batch.first_block_job = static_cast<std::int64_t>(made.block_jobs.size());
    std::vector<std::int32_t> order(record.leaves);
    std::iota(order.begin(), order.end(), static_cast<std::int32_t>(record.first_leaf));
    const auto rows_of = [&](std::int32_t leaf) { return std::tuple(made.leaves[leaf].row, made.leaves[leaf].rows); };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return std::tuple_cat(rows_of(a), std::tuple(a)) < std::tuple_cat(rows_of(b), std::tuple(b));
    });
    bool open = false;  // the last job of a warp may take more
    std::int64_t bytes = 0;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(order.size()); ++i) {
        if (!for_a_warp(made.leaves[order[i]], file.encoding())) {
            made.block_jobs.push_back({i, 1});
            open = false;
            continue;
        }
        const bool joins = open && bytes < kJobBytes && rows_of(order[i]) == rows_of(order[i - 1]);
        if (!joins) {
            made.warp_jobs.push_back({i, 0});
            bytes = 0;
        }
        ++made.warp_jobs.back().count;
        bytes += bytes_of(file, order[i]);
        open = true;
    }
    // The largest first: small ones fill what they leave idle.
    std::stable_sort(made.block_jobs.begin() + batch.first_block_job, made.block_jobs.end(),
                     [&](const Job& a, const Job& b) {
                         return bytes_of(file, order[a.first]) > bytes_of(file, order[b.first]);
                     });
    made.order.insert(made.order.end(), order.begin(), order.end());
    batch.warp_jobs = static_cast<std::int64_t>(made.warp_jobs.size()) - batch.first_warp_job;
    batch.block_jobs = static_cast<std::int64_t>(made.block_jobs.size()) - batch.first_block_job;
    made.batches.push_back(batch);
}

}  // namespace

Plan plan(const MatrixFile& file) {
    Plan made;
    const std::size_t leaves = file.tables().leaves.size();
    if (leaves > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) refuse(leaves, "is one too many");
    made.leaves.reserve(leaves);
    for (std::size_t i = 0; i < leaves; ++i) made.leaves.push_back(leaf_of(file, i));
    for (const BatchRecord& record : file.tables().batches) add_batch(file, record, made);
    return made;
}

}  // namespace penstock::hmatrix::gpu
