// Each check relies on those before it: magic, version, checksum, sizes, leaves, batches, order.
#include "hmatrix/file/check.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "penstock/checksum.hpp"

namespace penstock::hmatrix {
namespace {

bool within(std::int64_t value, std::int64_t low, std::int64_t high) noexcept { return value >= low && value <= high; }

// The four tables follow each other without gaps. The tests of the counts come first: they keep the products below from
// overflowing.
bool tables_fit(const FileHeader& head, std::int64_t file_bytes) noexcept {
    for (const std::int64_t count : {head.unknowns, head.leaves, head.batches, head.about_bytes}) {
        if (!within(count, 0, file_bytes)) return false;
    }
    if (head.leaves > file_bytes / static_cast<std::int64_t>(sizeof(LeafRecord))) return false;
    if (head.batches > file_bytes / static_cast<std::int64_t>(sizeof(BatchRecord))) return false;
    if (head.unknowns > file_bytes / static_cast<std::int64_t>(sizeof(std::int64_t))) return false;
    if (!within(head.leaf_table_offset, kPage, file_bytes)) return false;
    const std::int64_t batches = head.leaf_table_offset + head.leaves * static_cast<std::int64_t>(sizeof(LeafRecord));
    const std::int64_t order = batches + head.batches * static_cast<std::int64_t>(sizeof(BatchRecord));
    const std::int64_t about = order + head.unknowns * static_cast<std::int64_t>(sizeof(std::int64_t));
    return head.batch_table_offset == batches && head.order_offset == order && head.about_offset == about &&
           head.file_bytes == about + head.about_bytes;
}

void check_leaf(const std::string& name, const FileHeader& head, const LeafRecord& leaf, std::size_t number) {
    constexpr std::int64_t kMostEntries = std::int64_t{1} << 56;  // so that a leaf's length in bytes cannot overflow
    const bool inside = within(leaf.row, 0, head.unknowns) && within(leaf.column, 0, head.unknowns) &&
                        within(leaf.rows, 1, head.unknowns - leaf.row) &&
                        within(leaf.columns, 1, head.unknowns - leaf.column) && leaf.low_rank <= 1 &&
                        leaf.rows <= kMostEntries / leaf.columns;
    bool counts = true;
    const bool dense_digits = leaf.low_rank == 0 && head.encoding == static_cast<std::uint32_t>(Encoding::tiers);
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        for (int d = 0; d < kDigits; ++d) {
            const int now = leaf.counts[tier][d];
            if (tier > 0 && now < leaf.counts[tier - 1][d]) counts = false;
            if (d > 0 && now > leaf.counts[tier][d - 1]) counts = false;
            if (dense_digits && (now > 1 || (d == 0 && now != leaf.counts[0][0]))) counts = false;
        }
    }
    if (inside && counts) return;
    throw broken_file(name,
                      "leaf " + std::to_string(number) + " lies outside the matrix, or its counts are impossible");
}

void check_batch(const std::string& name, const FileHeader& head, const BatchRecord& batch, std::size_t number) {
    bool right = batch.offset % kPage == 0 && within(batch.offset, kPage, head.leaf_table_offset) &&
                 within(batch.bytes, 0, head.leaf_table_offset - batch.offset);
    std::int64_t end = 0;
    for (std::uint32_t tier = 0; tier < head.tiers; ++tier) {
        right = right && batch.tier_begin[tier] % kTierAlign == 0 && within(batch.tier_begin[tier], end, batch.bytes) &&
                within(batch.tier_bytes[tier], 0, batch.bytes - batch.tier_begin[tier]);
        if (right) end = batch.tier_begin[tier] + batch.tier_bytes[tier];
    }
    if (right) return;
    throw broken_file(name, "batch " + std::to_string(number) + " lies outside the part of the file for batches");
}

void check_accuracies(const std::string& name, const FileHeader& head) {
    for (std::uint32_t tier = 0; tier < head.tiers; ++tier) {
        const double before = tier == 0 ? 1 : head.accuracies[tier - 1];
        if (head.accuracies[tier] > 0 && head.accuracies[tier] < before) continue;
        throw broken_file(name, "the accuracy of its tier " + std::to_string(tier) + " is not below the one before");
    }
}

// Compares the number of entries only. Both sides wrap modulo 2^64 alike, so a right cover passes for every size.
void check_cover(const std::string& name, const FileHeader& head, std::span<const LeafRecord> leaves) {
    std::uint64_t entries = 0;
    std::int64_t low_rank = 0;
    for (const LeafRecord& leaf : leaves) {
        entries += static_cast<std::uint64_t>(leaf.rows) * static_cast<std::uint64_t>(leaf.columns);
        low_rank += leaf.low_rank;
    }
    const auto unknowns = static_cast<std::uint64_t>(head.unknowns);
    if (entries != unknowns * unknowns) throw broken_file(name, "its leaves do not cover the matrix once");
    if (low_rank == head.low_rank_leaves) return;
    throw broken_file(name, "its header gives another number of low-rank leaves than its table");
}

}  // namespace

Error broken_file(const std::string& name, const std::string& cause, const std::string& advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = "open a matrix";
    info.file = name;
    info.cause = cause;
    info.advice = advice;
    return Error(std::move(info));
}

void check_head(const std::string& name, const FileHeader& head, std::int64_t file_bytes) {
    if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) {
        throw broken_file(name, "this is not a .hmat file", "check the name; penstock hmatrix build makes such files");
    }
    if (head.version != kVersion) {
        throw Error(ErrorCode::unsupported, "open " + name,
                    "it is of version " + std::to_string(head.version) + " and this program reads version " +
                        std::to_string(kVersion),
                    "build the matrix again, or use the program that wrote it");
    }
    const auto bytes = std::as_bytes(std::span(&head, 1)).first(offsetof(FileHeader, header_checksum));
    if (checksum(ChecksumKind::crc32, bytes) != head.header_checksum) {
        throw broken_file(name, "its header is corrupted: the checksum does not match");
    }
    const bool tiers = head.encoding == static_cast<std::uint32_t>(Encoding::tiers)
                           ? head.tiers >= 1 && head.tiers <= kMaxTiers
                           : head.encoding == static_cast<std::uint32_t>(Encoding::fp64) && head.tiers == 1;
    if (!tiers) throw broken_file(name, "its encoding is not known");
    if (head.file_bytes != file_bytes) {
        throw broken_file(name, "it has " + std::to_string(file_bytes) + " bytes and should have " +
                                    std::to_string(head.file_bytes) + ": it was cut short, or written to");
    }
    if (head.unknowns < 1 || !tables_fit(head, file_bytes)) {
        throw broken_file(name, "its tables overlap or leave the file");
    }
    check_accuracies(name, head);
}

void check_tables(const std::string& name, const FileHeader& head, const StoredTables& tables) {
    const auto& [leaves, batches, order] = tables;
    for (std::size_t i = 0; i < leaves.size(); ++i) check_leaf(name, head, leaves[i], i);
    check_cover(name, head, leaves);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        check_batch(name, head, batches[i], i);
        if (batches[i].first_leaf != next || !within(batches[i].leaves, 0, head.leaves - next)) {
            throw broken_file(name, "the leaves of batch " + std::to_string(i) + " do not follow those before");
        }
        next += batches[i].leaves;
    }
    if (next != head.leaves) throw broken_file(name, "some leaves are in no batch");
    std::vector<bool> seen(order.size());
    for (const std::int64_t unknown : order) {
        if (!within(unknown, 0, head.unknowns - 1) || seen[unknown]) {
            throw broken_file(name, "the order of its unknowns is not a permutation");
        }
        seen[unknown] = true;
    }
}

}  // namespace penstock::hmatrix
