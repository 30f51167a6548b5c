// See step_encoder.hpp. Chunks of all variables that are alike are encoded in one call, so that no core waits for the
// last chunk of each.
#include "history/step_encoder.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "context/crew.hpp"
#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"
#include "history/compression.hpp"

namespace penstock::history {
namespace {

constexpr std::uint64_t kRoomAlignment = 4096;

bool are_equal(std::span<const data::Filter> one, std::span<const data::Filter> other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const auto& a, const auto& b) { return a.name == b.name && a.values == b.values; });
}

// Elements of a field of a step in chunks, both in C order and without gaps.
struct ChunkGrid {
    std::vector<std::uint64_t> shape, first, count, chunk;
    std::uint64_t item_bytes;

    std::uint64_t chunk_bytes() const {
        return std::accumulate(chunk.begin(), chunk.end(), item_bytes, std::multiplies<>());
    }
    // The chunk that begins at this element of `count`. Its source is told apart: bytes from the first one of the
    // field.
    data::GatheredBox box(std::span<const std::uint64_t> at, std::uint64_t& source_bytes) const {
        std::vector<BoxDimension> dimensions(shape.size());
        std::uint64_t in_field = item_bytes, in_chunk = item_bytes;
        source_bytes = 0;
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            dimensions[axis] = {std::min(chunk[axis], count[axis] - at[axis]), static_cast<std::int64_t>(in_chunk),
                                static_cast<std::int64_t>(in_field)};
            source_bytes += (first[axis] + at[axis]) * in_field;
            in_field *= shape[axis];
            in_chunk *= chunk[axis];
        }
        data::GatheredBox made;
        Box item;
        item.item_bytes = item_bytes;
        item.destination = &made;  // any that is none: both are told when the elements are there
        item.source = &made;
        split_box(item, dimensions, [&](const Box& one) { made.box = one; });
        return made;
    }
    bool next(std::vector<std::uint64_t>& at) const {
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            if ((at[axis] += chunk[axis]) < count[axis]) return true;
            at[axis] = 0;
        }
        return false;
    }
};

}  // namespace

StepEncoder::StepEncoder(const Context& context, const formats::FileSchema& schema, std::span<const PlainField> fields,
                         const StepEncoderOptions& options)
    : places_(options.places),
      cores_({.threads = options.threads, .crew = &context::crew_of(context)}) {
    for (const PlainField& field : fields) {
        if (!schema.variables[field.variable].filters.empty()) add_chunks(schema, field);
    }
    std::uint64_t bytes = 0;
    for (FieldChunks& field : fields_) {
        field.room_offset = align_up(bytes, kRoomAlignment);
        bytes = field.room_offset + field.chunks * groups_[field.group].encoder.most_bytes();
    }
    room_ = context.allocate(std::max<std::uint64_t>(bytes, 1), MemoryKind::pinned);
    for (const FieldChunks& field : fields_) {
        ChunkGroup& group = groups_[field.group];
        const std::uint64_t most = group.encoder.most_bytes();
        std::byte* first = static_cast<std::byte*>(room_->data()) + field.room_offset;
        for (std::size_t i = 0; i < field.chunks; ++i)
            group.chunks[field.first_chunk + i].room = {first + i * most, most};
    }
    if (!options.on_device) return;
    staged_ = context.allocate(std::max<std::uint64_t>(options.slot_bytes, 1), MemoryKind::pinned);
    stream_ = context.device().make_stream();
    copied_ = context.device().make_event();
}

StepEncoder::ChunkGroup& StepEncoder::group_of(const formats::NewVariable& variable, std::uint64_t chunk_bytes) {
    const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const ChunkGroup& one) {
        return one.encoder.chunk_bytes() == chunk_bytes && are_equal(one.filters, variable.filters);
    });
    if (found != groups_.end()) return *found;
    groups_.push_back({variable.filters, data::Encoder(variable.filters, chunk_bytes)});
    return groups_.back();
}

void StepEncoder::add_chunks(const formats::FileSchema& schema, const PlainField& field) {
    const formats::NewVariable& variable = schema.variables[field.variable];
    const std::vector<std::uint64_t> all = field.shape.empty() ? formats::step_shape(schema, variable) : field.shape;
    const std::vector<std::uint64_t> first = field.first.empty() ? std::vector<std::uint64_t>(all.size()) : field.first;
    const ChunkGrid grid{all, first, field.count.empty() ? all : field.count, variable.chunk, variable.type.item_bytes};
    ChunkGroup& group = group_of(variable, grid.chunk_bytes());
    FieldChunks made{.place = field.place, .name = variable.name};
    made.group = static_cast<std::size_t>(&group - groups_.data());
    made.first_chunk = group.chunks.size();
    std::vector<std::uint64_t> at(grid.shape.size());
    do {
        std::uint64_t source = 0;
        group.boxes.push_back(grid.box(at, source));
        group.sources.push_back(field.slot_offset + source);
        const bool is_filled = group.boxes.back().box.bytes() != grid.chunk_bytes();
        group.chunks.push_back({group.chunks.size(), 1, is_filled});
    } while (grid.next(at));
    made.chunks = group.chunks.size() - made.first_chunk;
    group.sizes.resize(group.chunks.size());
    fields_.push_back(std::move(made));
}

std::byte* StepEncoder::take(const Buffer& slot) {
    plain_ = static_cast<std::byte*>(slot.data());
    if (!staged_) return plain_;
    stream_->copy(CopyDirection::to_host, staged_->data(), plain_, std::min(staged_->bytes(), slot.bytes()));
    stream_->record(*copied_);
    copied_->wait(Deadline::never());
    plain_ = static_cast<std::byte*>(staged_->data());
    return plain_;
}

std::vector<formats::StoredChunks> StepEncoder::encode() {
    for (ChunkGroup& group : groups_) encode_group(group);
    std::vector<formats::StoredChunks> stored(places_);
    for (FieldChunks& field : fields_) stored[field.place] = join(field);
    return stored;
}

void StepEncoder::encode_group(ChunkGroup& group) {
    for (std::size_t i = 0; i < group.boxes.size(); ++i) group.boxes[i].box.source = plain_ + group.sources[i];
    const data::CoreResult result =
        data::encode_chunks({group.encoder, group.chunks, group.boxes, {}, group.sizes}, cores_);
    if (!result.fault) return;
    const auto& fault = *result.fault;
    const auto owner = std::find_if(fields_.begin(), fields_.end(), [&](const FieldChunks& one) {
        return &groups_[one.group] == &group && fault.first - one.first_chunk < one.chunks;
    });
    throw Error(ErrorCode::unsupported, "compress", "variable " + formats::shown(owner->name) + ": " + fault.second,
                "write it without compression");
}

formats::StoredChunks StepEncoder::join(FieldChunks& field) {
    const ChunkGroup& group = groups_[field.group];
    const auto first = group.sizes.begin() + static_cast<std::ptrdiff_t>(field.first_chunk);
    formats::StoredChunks sizes(first, first + static_cast<std::ptrdiff_t>(field.chunks));
    std::byte* const begin = static_cast<std::byte*>(room_->data()) + field.room_offset;
    field.bytes = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        std::memmove(begin + field.bytes, group.chunks[field.first_chunk + i].room.data(), sizes[i]);
        field.bytes += sizes[i];
    }
    return sizes;
}

std::span<std::byte> StepEncoder::encoded(std::size_t place) const {
    for (const FieldChunks& field : fields_) {
        if (field.place != place) continue;
        return {static_cast<std::byte*>(room_->data()) + field.room_offset, field.bytes};
    }
    return {};
}

}  // namespace penstock::history
