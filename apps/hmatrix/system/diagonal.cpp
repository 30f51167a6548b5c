// Divides the diagonal into blocks, and fills each block from the leaves that cover it.
#include "hmatrix/system/diagonal.hpp"

#include <algorithm>
#include <numeric>

namespace penstock::hmatrix {
namespace {

// The positions where undivided clusters begin. These clusters are the dense leaves on the diagonal.
std::vector<std::int64_t> cluster_begins(const MatrixFile& file) {
    std::vector<std::int64_t> begins;
    for (const LeafPlace& leaf : file.tables().leaves) {
        if (!leaf.shape.low_rank && leaf.row == leaf.column && leaf.shape.rows == leaf.shape.columns) {
            begins.push_back(leaf.row);
        }
    }
    std::sort(begins.begin(), begins.end());
    if (begins.empty() || begins.front() != 0) begins.insert(begins.begin(), 0);
    begins.push_back(file.head().unknowns);
    return begins;
}

std::vector<DiagonalBlock> cut(const MatrixFile& file, std::int64_t block_size) {
    std::vector<DiagonalBlock> blocks;
    const std::vector<std::int64_t> begins = cluster_begins(file);
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
        const std::int64_t size = begins[i + 1] - begins[i];
        if (blocks.empty() || blocks.back().size + size > block_size) blocks.push_back({begins[i], 0, {}});
        // More than one if the cluster is larger than a block.
        const std::int64_t pieces = (size + block_size - 1) / block_size;
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
            const std::int64_t begin = size * piece / pieces, end = size * (piece + 1) / pieces;
            if (piece > 0) blocks.push_back({begins[i] + begin, 0, {}});
            blocks.back().size += end - begin;
        }
    }
    for (DiagonalBlock& block : blocks) block.values.resize(block.size * block.size);
    return blocks;
}

Factors numbers(const MatrixFile& file, const LeafPlace& leaf, const BatchView& view, int tiers) {
    if (file.encoding() == Encoding::tiers) {
        std::vector<std::span<const std::byte>> parts;
        for (int tier = 0; tier < tiers; ++tier) {
            parts.emplace_back(view.tiers[tier] + leaf.tier_offset[tier], leaf.shape.tier_bytes(tier));
        }
        return decode(leaf.shape, parts);
    }
    const std::int64_t rank = leaf.shape.low_rank ? leaf.shape.counts[0][0] : 0;
    Factors made{leaf.shape.rows, leaf.shape.columns, rank, leaf.shape.low_rank, {}, {}};
    const auto* values = reinterpret_cast<const double*>(view.tiers[0] + leaf.tier_offset[0]);
    made.v.assign(values, values + rank * made.columns);
    values += made.v.size();
    made.u.assign(values, values + made.rows * (made.low_rank ? rank : made.columns));
    return made;
}

double entry(const Factors& leaf, std::int64_t row, std::int64_t column) {
    if (!leaf.low_rank) return leaf.u[column * leaf.rows + row];
    double sum = 0;
    for (std::int64_t k = 0; k < leaf.rank; ++k) sum += leaf.u[k * leaf.rows + row] * leaf.v[k * leaf.columns + column];
    return sum;
}

void add(const Factors& leaf, const LeafPlace& place, DiagonalBlock& block) {
    const std::int64_t end = block.offset + block.size;
    const std::int64_t first_row = std::max(place.row, block.offset), last_row = std::min(place.row + leaf.rows, end);
    const std::int64_t first = std::max(place.column, block.offset), last = std::min(place.column + leaf.columns, end);
    for (std::int64_t column = first; column < last; ++column) {
        for (std::int64_t row = first_row; row < last_row; ++row) {
            block.values[(column - block.offset) * block.size + (row - block.offset)] =
                entry(leaf, row - place.row, column - place.column);
        }
    }
}

BatchView on_host(const BatchRecord& record, const BatchView& view, const DiagonalOptions& options,
                  std::vector<std::byte>& scratch) {
    if (options.from_device == nullptr) return view;
    scratch.resize(record.bytes);
    BatchView copied;
    for (int tier = 0; tier < options.tiers; ++tier) {
        std::byte* const to = scratch.data() + record.tier_begin[tier];
        const auto bytes = static_cast<std::uint64_t>(record.tier_bytes[tier]);
        if (bytes > 0) options.from_device->copy(CopyDirection::to_host, to, view.tiers[tier], bytes);
        copied.tiers[tier] = to;
    }
    options.from_device->synchronize();
    return copied;
}

// The range of blocks that contain both rows and columns of a leaf.
struct Touched {
    std::int64_t first = 0;
    std::int64_t last = -1;
};

Touched touched(const LeafPlace& leaf, const std::vector<std::int64_t>& block_of) {
    return {std::max(block_of[leaf.row], block_of[leaf.column]),
            std::min(block_of[leaf.row + leaf.shape.rows - 1], block_of[leaf.column + leaf.shape.columns - 1])};
}

}  // namespace

std::vector<DiagonalBlock> diagonal_blocks(const MatrixFile& file, BatchSource& source, Workers& workers,
                                           const DiagonalOptions& options) {
    std::vector<DiagonalBlock> blocks = cut(file, options.block_size);
    std::vector<std::int64_t> block_of(file.head().unknowns);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        std::fill_n(block_of.begin() + blocks[i].offset, blocks[i].size, static_cast<std::int64_t>(i));
    }
    std::vector<std::int64_t> order(file.head().batches);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    source.begin({order, {}, options.tiers});
    std::vector<std::byte> scratch;
    for (const std::int64_t batch : order) {
        const BatchRecord& record = file.tables().batches[batch];
        const BatchView view = on_host(record, source.take(batch), options, scratch);
        constexpr std::int64_t kAtOnce = 64;
        // Each entry lies in exactly one leaf, so the workers write to different places and need no lock.
        workers.for_each((record.leaves + kAtOnce - 1) / kAtOnce, [&](int, std::int64_t group) {
            const std::int64_t begin = record.first_leaf + group * kAtOnce;
            const std::int64_t end = std::min(begin + kAtOnce, record.first_leaf + record.leaves);
            for (std::int64_t i = begin; i < end; ++i) {
                const LeafPlace& place = file.tables().leaves[i];
                const Touched found = touched(place, block_of);
                if (found.first > found.last) continue;
                const Factors leaf = numbers(file, place, view, options.tiers);
                for (std::int64_t block = found.first; block <= found.last; ++block) add(leaf, place, blocks[block]);
            }
        });
        source.give_back(batch);
    }
    return blocks;
}

}  // namespace penstock::hmatrix
