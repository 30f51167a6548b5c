// Joining small leaves of the same rows into jobs for warps.
#include "hmatrix/gpu/plan.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "hmatrix/file/packed.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix::gpu {
namespace {

[[noreturn]] void refuse(std::size_t leaf, const std::string& cause) {
    throw Error(ErrorCode::unsupported, "prepare products on the GPU", "leaf " + std::to_string(leaf) + " " + cause,
                "multiply on the device host");
}

// A leaf of the file, its pieces, and what a job needs to know of it.
struct Entry {
    Leaf leaf;
    std::vector<Piece> pieces;
    std::int64_t bytes = 0;
    int rank() const noexcept { return leaf.low_rank != 0 ? leaf.vectors[kMaxTiers - 1] : 0; }
};

// The pieces of digits that one tier adds, in the order of its bytes.
void add_digits(const LeafShape& shape, int tier, Entry& made) {
    constexpr std::int64_t kNumbers = 4;
    const std::int64_t u_words = (shape.rows + kNumbers - 1) / kNumbers;
    const std::int64_t words = shape.low_rank ? u_words + (shape.columns + kNumbers - 1) / kNumbers
                                              : u_words * shape.columns;
    std::int64_t offset = shape.counts[tier][0] - shape.before(tier, 0);  // scales
    for (int digit = 0; digit < kDigits; ++digit) {
        const std::int64_t before = shape.before(tier, digit), count = shape.counts[tier][digit] - before;
        if (count == 0) continue;
        made.pieces.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint16_t>(before),
                               static_cast<std::uint16_t>(count), static_cast<std::uint16_t>(tier),
                               static_cast<std::uint16_t>(digit), 0});
        offset += count * words;
    }
}

void add_doubles(const LeafShape& shape, Entry& made) {
    const std::uint16_t count = shape.low_rank ? shape.counts[0][0] : std::uint16_t{1};
    if (count > 0) made.pieces.push_back({0, 0, count, 0, 0, 0});
}

Entry entry_of(const MatrixFile& file, std::size_t number) {
    const LeafPlace& place = file.tables().leaves[number];
    const LeafShape& shape = place.shape;
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (shape.rows > kMost || shape.columns > kMost) refuse(number, "has more than 2^31 rows or columns");
    Entry made{{place.row, place.column, static_cast<std::int32_t>(shape.rows),
                static_cast<std::int32_t>(shape.columns), shape.low_rank ? 1 : 0, 0, {}, {}, {}, {}}, {}, 0};
    const bool digits = file.encoding() == Encoding::tiers;
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        const std::int64_t offset = place.tier_offset[tier] / (digits ? 4 : 8);
        if (offset > std::numeric_limits<std::uint32_t>::max()) refuse(number, "lies too far into its batch");
        made.leaf.tier_offset[tier] = static_cast<std::uint32_t>(offset);
        if (tier < file.tiers()) {
            if (digits) add_digits(shape, tier, made);
            if (!digits && tier == 0) add_doubles(shape, made);
            const std::int64_t bytes = tier_bytes(file.encoding(), shape, tier);
            made.leaf.tier_words[tier] = static_cast<std::uint32_t>(bytes / (digits ? 4 : 8));
            made.bytes += bytes;
        }
        made.leaf.pieces[tier] = static_cast<std::uint16_t>(made.pieces.size());
        const bool whole = !digits && !shape.low_rank;
        made.leaf.vectors[tier] = whole ? std::uint16_t{1} : shape.counts[tier][0];
    }
    return made;
}

// The jobs of a batch, from its leaves by rows.
class BatchJobs {
  public:
    BatchJobs(Encoding encoding, const PlanOptions& options)
        : options_(options), rows_together_(encoding == Encoding::tiers ? kWarpRowsOfDigits : kWarpRowsOfDoubles) {}

    void add(std::int32_t place, const Entry& one) {
        if (!for_a_warp(one)) return add_large(place, one);
        const bool joins = bytes_ > 0 && bytes_ + one.bytes <= options_.warp_bytes && one.leaf.rows <= rows_together_ &&
                           one.leaf.row == row_ && one.leaf.rows == rows_;
        if (!joins) {
            warps.push_back({place, 0, 0, kAllVectors});
            bytes_ = 0;
        }
        ++warps.back().count;
        bytes_ += one.bytes;
        row_ = one.leaf.row;
        rows_ = one.leaf.rows;
    }

    // The largest first: small ones fill what they leave idle.
    std::vector<Job> blocks() {
        const auto larger = [](const Large& a, const Large& b) { return a.bytes > b.bytes; };
        std::stable_sort(large_.begin(), large_.end(), larger);
        std::vector<Job> jobs;
        for (const Large& one : large_) jobs.push_back(one.job);
        return jobs;
    }

    std::vector<Job> warps;

  private:
    struct Large {
        Job job;
        std::int64_t bytes;
    };

    bool for_a_warp(const Entry& one) const {
        return one.leaf.rows <= kWarpRowsOfOne && one.leaf.columns <= kWarpColumns && one.rank() <= kWarpRank &&
               one.bytes <= options_.warp_bytes;
    }

    void add_large(std::int32_t place, const Entry& one) {
        bytes_ = 0;  // the last job of a warp takes no more
        const std::int64_t by_bytes = (one.bytes + options_.block_bytes - 1) / options_.block_bytes;
        const std::int64_t wanted = std::max<std::int64_t>(by_bytes, (one.rank() + kBlockRank - 1) / kBlockRank);
        const auto parts = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::max(one.rank(), 1)));
        for (int part = 0; part < parts; ++part) {
            const int begin = one.rank() * part / parts, end = one.rank() * (part + 1) / parts;
            const bool all = parts == 1;
            large_.push_back({{place, 1, all ? 0 : begin, all ? kAllVectors : end}, one.bytes / parts});
        }
    }

    PlanOptions options_;
    int rows_together_;
    std::vector<Large> large_;
    std::int64_t bytes_ = 0;  // of the last job of a warp; 0: it takes no more
    std::int64_t row_ = 0;
    std::int32_t rows_ = 0;
};

void add_batch(const MatrixFile& file, const BatchRecord& record, const PlanOptions& options, Plan& made) {
    std::vector<Entry> entries;
    entries.reserve(record.leaves);
    for (std::int64_t i = 0; i < record.leaves; ++i) entries.push_back(entry_of(file, record.first_leaf + i));
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::tuple(a.leaf.row, a.leaf.rows) < std::tuple(b.leaf.row, b.leaf.rows);
    });
    BatchPlan batch;
    batch.first_leaf = static_cast<std::int64_t>(made.leaves.size());
    batch.first_warp_job = static_cast<std::int64_t>(made.warp_jobs.size());
    batch.first_block_job = static_cast<std::int64_t>(made.block_jobs.size());
    BatchJobs jobs(file.encoding(), options);
    for (const Entry& one : entries) {
        jobs.add(static_cast<std::int32_t>(made.leaves.size() - batch.first_leaf), one);
        made.leaves.push_back(one.leaf);
        made.leaves.back().first_piece = static_cast<std::uint32_t>(made.pieces.size());
        made.pieces.insert(made.pieces.end(), one.pieces.begin(), one.pieces.end());
    }
    const std::vector<Job> blocks = jobs.blocks();
    batch.warp_jobs = static_cast<std::int64_t>(jobs.warps.size());
    batch.block_jobs = static_cast<std::int64_t>(blocks.size());
    made.warp_jobs.insert(made.warp_jobs.end(), jobs.warps.begin(), jobs.warps.end());
    made.block_jobs.insert(made.block_jobs.end(), blocks.begin(), blocks.end());
    made.batches.push_back(batch);
}

}  // namespace

Plan plan(const MatrixFile& file, const PlanOptions& options) {
    Plan made;
    const std::size_t leaves = file.tables().leaves.size();
    if (leaves > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) refuse(leaves, "is one too many");
    made.leaves.reserve(leaves);
    for (const BatchRecord& record : file.tables().batches) add_batch(file, record, options, made);
    return made;
}

}  // namespace penstock::hmatrix::gpu
