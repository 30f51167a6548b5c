// See box_reader.hpp.
#include "restart/stored/box_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/crc32/crc32.hpp"
#include "formats/faults.hpp"
#include "restart/block_sums.hpp"

namespace penstock::restart {
namespace {

constexpr std::uint64_t kGapsAtOnce = 16 * kMiB;

bool is_fault_of_file(ErrorCode code) { return code == ErrorCode::io_error || code == ErrorCode::end_of_file; }

std::string field_at(const std::vector<WantedBox>& boxes, std::uint64_t offset) {
    for (const WantedBox& box : boxes) {
        const RecordedField& field = *box.field;
        if (offset >= field.offset_bytes && offset - field.offset_bytes < field.bytes)
            return "field " + formats::shown(field.name) + ": ";
    }
    return {};
}

}  // namespace

void add_ranges(const WantedBox& box, const File& file, std::vector<Range>& ranges) {
    auto* base = static_cast<std::byte*>(box.memory.data);
    for (const RunOfField& run : box.runs)
        ranges.push_back({&file, box.field->offset_bytes + run.field_offset, base + run.memory_offset, run.bytes});
}

std::string BoxReader::read(const std::vector<WantedBox>& boxes, Evidence& evidence) const {
    std::string fault = read_data(boxes, evidence);
    for (std::size_t i = 0; i < boxes.size() && fault.empty(); ++i) {
        try {
            fault = compare(boxes[i]);
        } catch (const Error& error) {  // of a gap
            if (!is_fault_of_file(error.code())) throw;
            fault = "field " + formats::shown(boxes[i].field->name) + ": " + error.info().cause;
        }
    }
    return fault;
}

std::string BoxReader::read_data(const std::vector<WantedBox>& boxes, Evidence& evidence) const {
    std::vector<Range> ranges;
    for (const WantedBox& box : boxes) add_ranges(box, generation_.file, ranges);
    if (ranges.empty()) return {};
    TransferOptions how = options_.transfer;
    how.caller_waits = true;
    Outcome outcome = context_.start(Direction::read, ranges, options_.memory, how).result();
    evidence = std::move(outcome.evidence);
    if (outcome.ok()) return {};
    ErrorInfo& info = outcome.error;
    info.cause = field_at(boxes, info.offset_bytes) + info.cause;
    if (is_fault_of_file(info.code)) return info.cause;
    info.operation = "read restart";
    throw Error(std::move(info));
}

void BoxReader::add_gaps(const WantedBox& box, std::vector<std::uint32_t>& sums) const {
    const std::vector<RunOfField> gaps = gaps_of(box.runs, box.field->bytes);
    BlockSums all(box.field->bytes, sums);
    std::vector<std::byte> scratch;
    for (std::size_t begin = 0; begin < gaps.size();) {
        std::size_t end = begin;
        std::vector<RunOfField> some;
        std::uint64_t bytes = 0;
        for (; end < gaps.size() && (end == begin || bytes + gaps[end].bytes <= kGapsAtOnce); ++end) {
            some.push_back({gaps[end].field_offset, bytes, gaps[end].bytes});
            bytes += gaps[end].bytes;
        }
        scratch.resize(bytes);
        const MemoryView memory{scratch.data(), bytes, MemoryKind::system};
        std::vector<Range> ranges;
        add_ranges({box.field, some, memory}, generation_.file, ranges);
        context_.start(Direction::read, ranges, MemoryKind::system, {.caller_waits = true}).result().or_throw();
        all.add(context_, some, memory);
        begin = end;
    }
}

std::string BoxReader::compare(const WantedBox& box) const {
    std::vector<std::uint32_t> sums(blocks_of(box.field->bytes));
    BlockSums all(box.field->bytes, sums);
    all.add(context_, box.runs, box.memory);
    add_gaps(box, sums);
    for (const std::uint64_t block : touched_blocks(box.runs)) {
        const std::uint32_t found = base::crc32_of_remainder(sums[block], all.block_bytes(block));
        if (found == generation_.sums[box.field->first_block + block]) continue;
        const std::uint64_t first = block * kSummedBytes;
        return "field " + formats::shown(box.field->name) + ": bytes " + std::to_string(first) + " to " +
               std::to_string(first + all.block_bytes(block)) + " do not have their checksum";
    }
    return {};
}

}  // namespace penstock::restart
