// See parts.hpp.
#include "history/processes/parts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "formats/faults.hpp"
#include "history/layout.hpp"
#include "history/target/history_target.hpp"
#include "penstock/error.hpp"

namespace penstock::history {
namespace {

constexpr std::uint64_t kApartInSlot = 4096;  // of data that do not follow each other in the file
constexpr std::uint64_t kMostLonger = 4;      // a chunk becomes longer than wanted, where it would else be this shorter

std::uint64_t parts_of(std::uint64_t count, std::uint64_t part) { return (count + part - 1) / part; }

struct Divisors {
    std::uint64_t below, above;  // nearest to a number, or it
};

// Requires: the number is not larger than `all`.
Divisors divisors_near(std::uint64_t all, std::uint64_t number) {
    Divisors near{1, all};
    for (std::uint64_t one = 1; one <= all / one; ++one) {
        if (all % one != 0) continue;
        for (const std::uint64_t divisor : {one, all / one}) {
            if (divisor <= number) near.below = std::max(near.below, divisor);
            if (divisor >= number) near.above = std::min(near.above, divisor);
        }
    }
    return near;
}

// Boxes that would do: as many as these are, of one length.
[[noreturn]] void refuse_boxes(const std::string& what, const VariableBox& box, std::span<const std::uint64_t> block) {
    std::size_t axis = 0;
    for (std::size_t i = 1; i < block.size(); ++i) {
        if (parts_of(box.count[i], block[i]) > parts_of(box.count[axis], block[axis])) axis = i;
    }
    const std::uint64_t boxes = (box.whole[axis] + box.count[axis] / 2) / box.count[axis];
    const std::string length = std::to_string(parts_of(box.whole[axis], std::max<std::uint64_t>(boxes, 1)));
    throw Error(ErrorCode::invalid_argument, "begin",
                what + ": boxes of all processes begin and end at multiples of " + std::to_string(block[axis]) +
                    " along " + formats::shown(box.names[axis]) + ", so the " + std::to_string(box.count[axis]) +
                    " of this process would be more than " + std::to_string(kMostBlocks) + " files",
                "give each process " + length + " along it, and the last one what is left, as history_split says; or " +
                    "exchange what each has for that, by penstock_mpi_exchange.h or penstock.Exchange; or use a " +
                    "format that takes any boxes, netcdf4 or raw, and no compression; or give each process a " +
                    "store of its own, as history.pe000000.zarr, which open as one");
}

// The next place of a step, for a block of a store or for all of the variable.
FieldPart next_part(HistoryLayout& layout, const FieldLayout& field, const HistoryOptions& options,
                    std::vector<std::uint64_t> number) {
    if (!makes_store(options.format)) return {field.variable};
    layout.blocks.push_back({field.variable, std::move(number)});
    return {layout.blocks.size() - 1};
}

}  // namespace

bool VariableBox::is_empty() const {
    return std::any_of(count.begin(), count.end(), [](auto one) { return one == 0; });
}

std::vector<FieldRun> runs_of(const BoxMove& move) {
    const std::size_t rank = move.count.size();
    std::vector<std::uint64_t> slot(rank), file(rank);  // strides in bytes
    std::uint64_t in_slot = move.item_bytes, in_file = move.item_bytes, run = move.item_bytes, count = 1;
    FieldRun first;
    std::size_t outer = rank;  // elements from here on lie one behind the other on both sides
    bool is_whole = true;
    for (std::size_t axis = rank; axis-- > 0;) {
        slot[axis] = in_slot;
        file[axis] = in_file;
        first.slot_offset += move.slot_first[axis] * in_slot;
        first.file_offset += move.file_first[axis] * in_file;
        in_slot *= move.slot_shape[axis];
        in_file *= move.file_shape[axis];
        if (is_whole) {
            run *= move.count[axis];
            outer = axis;
            is_whole = move.count[axis] == move.slot_shape[axis] && move.count[axis] == move.file_shape[axis];
        } else {
            count *= move.count[axis];
        }
    }
    std::vector<FieldRun> runs(run == 0 ? 0 : count);
    for (std::uint64_t i = 0; i < runs.size(); ++i) {
        runs[i] = {first.slot_offset, first.file_offset, run};
        std::uint64_t left = i;
        for (std::size_t axis = outer; axis-- > 0; left /= move.count[axis]) {
            runs[i].slot_offset += left % move.count[axis] * slot[axis];
            runs[i].file_offset += left % move.count[axis] * file[axis];
        }
    }
    return runs;
}

std::vector<std::uint64_t> cuts_of(const VariableBox& box) {
    std::vector<std::uint64_t> cuts(box.count.size());
    if (box.is_empty()) return cuts;
    for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
        const std::uint64_t end = box.first[axis] + box.count[axis];
        cuts[axis] = std::gcd(box.first[axis], end == box.whole[axis] ? 0 : end);
    }
    return cuts;
}

std::vector<std::uint64_t> block_of(const std::string& what, const VariableBox& box,
                                    std::span<const std::uint64_t> cuts) {
    const std::vector<std::uint64_t> own = cuts_of(box);
    std::vector<std::uint64_t> block(box.whole);
    std::uint64_t blocks = 1;
    for (std::size_t axis = 0; axis < block.size(); ++axis) {
        if (cuts[axis] != 0) block[axis] = std::min(block[axis], cuts[axis]);
        if (own[axis] != 0 && (cuts[axis] == 0 || own[axis] % cuts[axis] != 0)) {
            throw Error(ErrorCode::invalid_argument, "begin", what + ": the cuts are not those of all processes",
                        "give the greatest common divisors of the cuts of all, this one among them");
        }
        const std::uint64_t along = parts_of(box.count[axis], block[axis]);
        if (__builtin_mul_overflow(blocks, along, &blocks)) blocks = kMostBlocks + 1;
    }
    if (!box.is_empty() && blocks > kMostBlocks) refuse_boxes(what, box, block);
    return block;
}

std::vector<BoxBlock> blocks_in(const VariableBox& box, std::span<const std::uint64_t> block) {
    std::vector<BoxBlock> found;
    if (box.is_empty()) return found;
    const std::size_t rank = block.size();
    BoxBlock one{std::vector<std::uint64_t>(rank), std::vector<std::uint64_t>(rank), std::vector<std::uint64_t>(rank)};
    for (;;) {
        for (std::size_t axis = 0; axis < rank; ++axis) {
            one.number[axis] = (box.first[axis] + one.first[axis]) / block[axis];
            one.count[axis] = std::min(block[axis], box.count[axis] - one.first[axis]);
        }
        found.push_back(one);
        std::size_t axis = rank;
        while (axis > 0 && one.first[axis - 1] + block[axis - 1] >= box.count[axis - 1]) one.first[--axis] = 0;
        if (axis == 0) return found;
        one.first[axis - 1] += block[axis - 1];
    }
}

std::vector<std::uint64_t> chunk_within(std::span<const std::uint64_t> chunk, std::span<const std::uint64_t> block,
                                        std::span<const std::uint64_t> whole) {
    std::vector<std::uint64_t> found(chunk.begin(), chunk.end());
    for (std::size_t axis = 0; axis < found.size(); ++axis) {
        if (block[axis] == whole[axis]) continue;
        const Divisors near = divisors_near(block[axis], chunk[axis]);
        found[axis] = near.below * kMostLonger < chunk[axis] ? near.above : near.below;
    }
    return found;
}

void add_parts(HistoryLayout& layout, FieldLayout& field, const VariableBox& box, const HistoryOptions& options) {
    const formats::NewVariable& made = layout.schema.variables[field.variable];
    const std::uint64_t item = made.type.item_bytes;
    if (field.is_whole) {
        if (options.process == 0) field.parts.push_back(next_part(layout, field, options, {}));
        return;
    }
    if (made.block.empty()) {
        std::vector<FieldRun> runs =
            runs_of({box.count, box.count, std::vector<std::uint64_t>(box.count.size()), box.whole, box.first, item});
        if (runs.empty()) {
            if (options.process == 0) next_part(layout, field, options, {});  // a store has its file all the same
            return;
        }
        field.parts.push_back(next_part(layout, field, options, {}));
        field.parts.back().runs = std::move(runs);
        return;
    }
    for (BoxBlock& one : blocks_in(box, made.block)) {
        field.parts.push_back(next_part(layout, field, options, std::move(one.number)));
        FieldPart& part = field.parts.back();
        if (made.filters.empty()) {
            part.runs = runs_of(
                {one.count, box.count, one.first, made.block, std::vector<std::uint64_t>(box.count.size()), item});
        }
        part.first = std::move(one.first);
        part.count = std::move(one.count);
    }
}

std::uint64_t lay_out_slot(std::vector<FieldLayout>& fields, const std::vector<formats::DataPlace>& places) {
    if (!places.empty()) {
        std::sort(fields.begin(), fields.end(), [&](const FieldLayout& a, const FieldLayout& b) {
            return places[a.variable].offset_bytes < places[b.variable].offset_bytes;
        });
    }
    std::uint64_t end = 0, end_in_file = 0;
    for (FieldLayout& field : fields) {
        if (places.empty() || !field.is_whole) {
            field.slot_offset = align_up(end, kApartInSlot);
            end = field.slot_offset + field.bytes;
            end_in_file = 0;
            continue;
        }
        const formats::DataPlace& place = places[field.variable];
        if (place.offset_bytes != end_in_file) end = align_up(end, kApartInSlot);
        field.slot_offset = end;
        end += place.bytes;
        end_in_file = place.offset_bytes + place.bytes;
    }
    return end;
}

}  // namespace penstock::history
