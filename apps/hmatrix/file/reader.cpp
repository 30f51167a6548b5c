// Reads the header and the tables, and computes the place of every leaf from them.
#include "hmatrix/file/reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "hmatrix/file/check.hpp"
#include "hmatrix/file/packed.hpp"
#include "hmatrix/file/writer.hpp"

namespace penstock::hmatrix {
namespace {

void read_all(const Context& context, const File& file, std::int64_t offset, std::span<std::byte> to) {
    if (to.empty()) return;
    const Outcome outcome = file.read(context.wrap(to.data(), to.size(), MemoryKind::system), offset);
    if (!outcome.ok()) throw Error(outcome.error);
    if (outcome.bytes != to.size()) throw broken_file(file.name(), "it ends before its tables do");
}

FileHeader read_head(const Context& context, const File& file) {
    FileHeader head{};
    if (file.size_bytes() < static_cast<std::uint64_t>(kPage)) {
        throw broken_file(file.name(), "it is shorter than a header");
    }
    read_all(context, file, 0, std::as_writable_bytes(std::span(&head, 1)));
    check_head(file.name(), head, static_cast<std::int64_t>(file.size_bytes()));
    return head;
}

template <class Value>
std::vector<Value> take(std::span<const std::byte> tables, std::int64_t offset, std::int64_t count) {
    std::vector<Value> values(count);
    if (count > 0) std::memcpy(values.data(), tables.data() + offset, count * sizeof(Value));
    return values;
}

// Computes the place of every leaf. A tier of a batch holds the same tier of its leaves, without gaps.
std::vector<LeafPlace> place(const FileHeader& head, const std::vector<LeafRecord>& records,
                             const std::vector<BatchRecord>& batches, const std::string& name) {
    const auto encoding = static_cast<Encoding>(head.encoding);
    std::vector<LeafPlace> places(records.size());
    const auto other_length = [&](const BatchRecord& batch) {
        return broken_file(name, "batch " + std::to_string(&batch - batches.data()) +
                                     " is not as long as its leaves say");
    };
    for (const BatchRecord& batch : batches) {
        std::int64_t at[kMaxTiers] = {};
        for (std::int64_t i = batch.first_leaf; i < batch.first_leaf + batch.leaves; ++i) {
            places[i] = {records[i].row, records[i].column, shape_of(records[i]), {}};
            for (std::uint32_t tier = 0; tier < head.tiers; ++tier) {
                places[i].tier_offset[tier] = at[tier];
                at[tier] += tier_bytes(encoding, places[i].shape, static_cast<int>(tier));
                if (at[tier] > batch.tier_bytes[tier]) throw other_length(batch);
            }
        }
        for (std::uint32_t tier = 0; tier < head.tiers; ++tier) {
            if (at[tier] != batch.tier_bytes[tier]) throw other_length(batch);
        }
    }
    return places;
}

}  // namespace

MatrixFile::MatrixFile(File file, const FileHeader& head, MatrixTables tables)
    : file_(std::move(file)), head_(head), tables_(std::move(tables)) {}

MatrixFile MatrixFile::open(const Context& context, Workers& workers, const std::string& path) {
    File file = context.open(path);
    const FileHeader head = read_head(context, file);
    std::vector<std::byte> bytes(head.file_bytes - head.leaf_table_offset);
    read_all(context, file, head.leaf_table_offset, bytes);
    if (checksum_by(workers, bytes) != head.tables_checksum) {
        throw broken_file(path, "its tables are corrupted: the checksum does not match");
    }
    const auto from = [&](std::int64_t offset) { return offset - head.leaf_table_offset; };
    const auto records = take<LeafRecord>(bytes, from(head.leaf_table_offset), head.leaves);
    MatrixTables tables;
    tables.batches = take<BatchRecord>(bytes, from(head.batch_table_offset), head.batches);
    tables.order = take<std::int64_t>(bytes, from(head.order_offset), head.unknowns);
    const auto about = take<char>(bytes, from(head.about_offset), head.about_bytes);
    tables.about.assign(about.begin(), about.end());
    check_tables(path, head, {records, tables.batches, tables.order});
    tables.leaves = place(head, records, tables.batches, path);
    return {std::move(file), head, std::move(tables)};
}

int MatrixFile::tiers_for(double accuracy) const noexcept {
    int tiers = 1;
    while (tiers < this->tiers() && !(accuracy > 0 && head_.accuracies[tiers - 1] <= accuracy)) ++tiers;
    return tiers;
}

std::int64_t MatrixFile::prefix_bytes(std::int64_t batch, int tiers) const noexcept {
    const BatchRecord& record = tables_.batches[batch];
    return tiers == 0 ? 0 : record.tier_begin[tiers - 1] + record.tier_bytes[tiers - 1];
}

std::int64_t MatrixFile::prefix_bytes(int tiers) const noexcept {
    std::int64_t bytes = 0;
    for (std::int64_t batch = 0; batch < head_.batches; ++batch) bytes += prefix_bytes(batch, tiers);
    return bytes;
}

std::int64_t MatrixFile::largest_batch() const noexcept {
    std::int64_t bytes = 0;
    for (const BatchRecord& batch : tables_.batches) bytes = std::max(bytes, batch.bytes);
    return bytes;
}

Error MatrixFile::damaged(std::int64_t batch, int tier) const {
    const BatchRecord& record = tables_.batches[batch];
    ErrorInfo info;
    info.code = ErrorCode::io_error;
    info.operation = "read a matrix";
    info.file = file_.name();
    info.offset_bytes = record.offset + record.tier_begin[tier];
    info.length_bytes = record.tier_bytes[tier];
    info.cause = "batch " + std::to_string(batch) + " is damaged: the checksum of its tier " + std::to_string(tier) +
                 " does not match";
    info.advice = "build the matrix again";
    return Error(std::move(info));
}

}  // namespace penstock::hmatrix
