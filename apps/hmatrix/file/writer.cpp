// A batch is written while the caller assembles the next one. The tables come last, because their content depends on
// all batches.
#include "hmatrix/file/writer.hpp"

#include <algorithm>
#include <cstring>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::int64_t up_to_page(std::int64_t bytes) noexcept { return (bytes + kPage - 1) / kPage * kPage; }

void require(const Outcome& outcome, std::int64_t bytes) {
    if (!outcome.ok()) throw Error(outcome.error);
    if (static_cast<std::int64_t>(outcome.bytes) == bytes) return;
    throw Error(ErrorCode::io_error, "write", "the file took " + std::to_string(outcome.bytes) + " of " +
                                                  std::to_string(bytes) + " bytes");
}

template <class Value>
void append(std::vector<std::byte>& to, std::span<const Value> values) {
    const auto bytes = std::as_bytes(values);
    to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::uint32_t checksum_by(Workers& workers, std::span<const std::byte> bytes) {
    std::vector<std::uint64_t> sums((bytes.size() + kChecksumSegment - 1) / kChecksumSegment);
    workers.for_each(static_cast<std::int64_t>(sums.size()), [&](int, std::int64_t i) {
        const std::size_t begin = i * kChecksumSegment;
        sums[i] = checksum_segment(ChecksumKind::crc32,
                                   bytes.subspan(begin, std::min<std::size_t>(kChecksumSegment, bytes.size() - begin)));
    });
    return join_segments(ChecksumKind::crc32, sums, bytes.size());
}

MatrixWriter::MatrixWriter(const Context& context, Workers& workers, const std::string& path, const FileHeader& head)
    : context_(context), workers_(workers), head_(head) {
    OpenOptions options;
    options.mode = OpenMode::create;
    options.durable = true;
    file_ = context_.open(path, options);
    std::memcpy(head_.magic, kMagic, sizeof kMagic);
    head_.version = kVersion;
    head_.sampled_error = -1;
}

std::byte* MatrixWriter::reserve(WriteSlot& slot, std::int64_t bytes) {
    wait(slot);
    if (slot.buffer.bytes() < static_cast<std::uint64_t>(bytes)) {
        slot.buffer = Buffer{};
        slot.buffer = context_.allocate(bytes, MemoryKind::pinned);
    }
    return static_cast<std::byte*>(slot.buffer.data());
}

void MatrixWriter::wait(WriteSlot& slot) {
    if (!slot.writing) return;
    slot.writing = false;
    const std::int64_t bytes = static_cast<std::int64_t>(slot.transfer.bytes_total());
    require(slot.transfer.result(), bytes);
}

void MatrixWriter::checksum_tiers(BatchRecord& batch, const std::byte* bytes) {
    for (std::uint32_t tier = 0; tier < head_.tiers; ++tier) {
        const std::span<const std::byte> part(bytes + batch.tier_begin[tier], batch.tier_bytes[tier]);
        batch.checksums[tier] = checksum_by(workers_, part);
    }
}

void MatrixWriter::add(std::span<const Leaf> places, std::span<const TieredLeaf> leaves) {
    BatchRecord batch = lay_out(static_cast<Encoding>(head_.encoding), leaves, static_cast<int>(head_.tiers));
    batch.offset = offset_;
    batch.first_leaf = static_cast<std::int64_t>(leaves_.size());
    const std::int64_t size = std::max(kPage, up_to_page(batch.bytes));
    WriteSlot& slot = slots_[next_slot_];
    next_slot_ ^= 1;
    std::byte* const bytes = reserve(slot, size);
    std::int64_t filled = 0;
    // Zeros between tiers, so that no old memory reaches the file.
    for (std::uint32_t tier = 0; tier < head_.tiers; ++tier) {
        std::memset(bytes + filled, 0, batch.tier_begin[tier] - filled);
        filled = batch.tier_begin[tier] + batch.tier_bytes[tier];
    }
    std::memset(bytes + filled, 0, size - filled);
    workers_.for_each(head_.tiers, [&](int, std::int64_t tier) {
        pack_tier(leaves, static_cast<int>(tier), bytes + batch.tier_begin[tier]);
    });
    checksum_tiers(batch, bytes);
    slot.transfer = file_.start_write(slot.buffer.view().slice(0, size), offset_);
    slot.writing = true;
    offset_ += size;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        leaves_.push_back(record_of(places[i], leaves[i].shape));
        head_.low_rank_leaves += places[i].low_rank ? 1 : 0;
    }
    batches_.push_back(batch);
}

void MatrixWriter::write_all(const void* data, std::int64_t bytes) {
    require(file_.write(context_.wrap(const_cast<void*>(data), bytes, MemoryKind::system), offset_), bytes);
    offset_ += bytes;
}

FileHeader MatrixWriter::finish(std::span<const std::int64_t> order, const std::string& about) {
    for (WriteSlot& slot : slots_) wait(slot);
    head_.unknowns = static_cast<std::int64_t>(order.size());
    head_.leaves = static_cast<std::int64_t>(leaves_.size());
    head_.batches = static_cast<std::int64_t>(batches_.size());
    std::vector<std::byte> tables;
    const auto place = [&] { return offset_ + static_cast<std::int64_t>(tables.size()); };
    head_.leaf_table_offset = place();
    append(tables, std::span<const LeafRecord>(leaves_));
    head_.batch_table_offset = place();
    append(tables, std::span<const BatchRecord>(batches_));
    head_.order_offset = place();
    append(tables, order);
    head_.about_offset = place();
    head_.about_bytes = static_cast<std::int64_t>(about.size());
    append(tables, std::span<const char>(about));
    head_.file_bytes = place();
    head_.tables_checksum = checksum_by(workers_, tables);
    write_all(tables.data(), static_cast<std::int64_t>(tables.size()));

    std::vector<std::byte> page(kPage);
    head_.header_checksum =
        checksum(ChecksumKind::crc32, std::as_bytes(std::span(&head_, 1)).first(offsetof(FileHeader, header_checksum)));
    std::memcpy(page.data(), &head_, sizeof head_);
    offset_ = 0;
    write_all(page.data(), kPage);
    file_.close();
    return head_;
}

}  // namespace penstock::hmatrix
