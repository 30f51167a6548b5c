// Computes checksums on the device or with all workers.
#include "hmatrix/multiply/verifier.hpp"

#include <algorithm>

#include "hmatrix/file/writer.hpp"
#include "penstock/checksum.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

Verifier::Verifier(const MatrixFile& file, Verify how, const Where& where)
    : file_(file), how_(how), workers_(where.workers), verified_(file.head().batches) {
    if (where.memory == MemoryKind::device) stream_ = where.context.device().make_stream();
}

std::uint32_t Verifier::sum(const std::byte* bytes, std::uint64_t size) {
    if (!stream_) return checksum_by(workers_, {bytes, size});
    const ChecksumRange range{bytes, size};
    return stream_->checksums(ChecksumKind::crc32, {&range, 1}).front();
}

void Verifier::check(std::int64_t batch, Tiers tiers, const Part& part) {
    if (how_ == Verify::never) return;
    const BatchRecord& record = file_.tables().batches[batch];
    for (int tier = tiers.first; tier < tiers.end; ++tier) {
        if (how_ == Verify::first && tier < verified_[batch]) continue;
        const std::byte* const bytes = part.memory + (record.tier_begin[tier] - part.begin);
        const auto size = static_cast<std::uint64_t>(record.tier_bytes[tier]);
        if (sum(bytes, size) != record.checksums[tier]) throw file_.damaged(batch, tier);
        verified_[batch] = static_cast<std::uint8_t>(std::max<int>(verified_[batch], tier + 1));
    }
}

}  // namespace penstock::hmatrix
