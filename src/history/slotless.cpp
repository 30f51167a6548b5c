// A history without slots: the caller of put() writes the field, and has no thread and no second step in memory. What
// must stay true: when put() has returned, nothing reads the field any more.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/packs/pack_plan.hpp"
#include "history/history_state.hpp"

namespace penstock::history {
namespace {

// Whether the items of a Box or a Pack lie at the source as at the destination.
template <typename Moved>
bool has_equal_strides(const Moved& one) noexcept {
    for (std::uint32_t axis = 0; axis < one.dimensions; ++axis) {
        if (one.extents[axis] > 1 && one.source_strides[axis] != one.destination_strides[axis]) return false;
    }
    return true;
}

// Whether the elements lie one behind the other, in the order and with the bytes that the file has.
bool lies_as_in_the_file(const FieldLayout& layout) noexcept {
    if (!layout.is_packed) return layout.move.swap_bytes == 0 && has_equal_strides(layout.move);
    const Pack& pack = layout.pack;
    return pack.to == pack.from && !pack.swap && pack.keep_bits == 0 && has_equal_strides(pack);
}

}  // namespace

bool HistoryState::has_open_step() const noexcept {
    const auto was_put = [](const RunningField& field) { return field.puts != 0; };
    return has_slots() ? slot_.has_value() : std::any_of(fields_.begin(), fields_.end(), was_put);
}

std::byte* HistoryState::packed_apart(std::uint64_t bytes) {
    if (!apart_ || apart_->bytes() < bytes) {
        apart_.reset();
        apart_ = context_.allocate(bytes, slot_kind());
        facts_.slot_bytes = apart_->bytes();
    }
    return static_cast<std::byte*>(apart_->data());
}

void HistoryState::write_packed(const FieldLayout& layout, std::byte* memory) {
    if (on_device()) stream_->synchronize();
    writer_->write_field(layout.name, {memory, layout.bytes, slot_kind()});
}

void HistoryState::write_at_once(RunningField& field, const FieldLayout& layout, const void* data) {
    if (layout.bytes == 0) return;
    if (field.sum) {
        pack_field(field, layout, data, static_cast<std::byte*>(field.sum->data()));
    } else if (lies_as_in_the_file(layout)) {
        if (on_device()) stream_->synchronize();
        auto* first = const_cast<std::byte*>(static_cast<const std::byte*>(data)) + layout.first_bytes;
        writer_->write_field(layout.name, {first, layout.bytes, options_.memory});
    } else {
        std::byte* apart = packed_apart(layout.bytes);
        pack_field(field, layout, data, apart);
        write_packed(layout, apart);
    }
}

void HistoryState::write_statistics() {
    for (RunningField& field : fields_) {
        if (!field.sum) continue;
        Pack last = field.layout.finish;
        if (field.layout.statistic == HistoryStatistic::mean) last.divisor = static_cast<double>(field.puts);
        std::byte* apart = packed_apart(field.layout.bytes);
        pack(last, field.sum->data(), apart);
        write_packed(field.layout, apart);
    }
}

}  // namespace penstock::history
