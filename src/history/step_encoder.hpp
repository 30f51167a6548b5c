// StepEncoder: compresses the data of a step, chunk by chunk, on the cores of the host.
//
// The thread of a history calls it, so a model waits for none of it. A step that lies on a device comes down first, all
// of it, into pinned memory: its slot is free then, while the chunks are encoded. Ensures: what encode() gave is whole
// until the next take().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/encode/encode_chunks.hpp"
#include "formats/create/schema.hpp"
#include "penstock/context.hpp"

namespace penstock::history {

// Where the elements of a part of a variable lie in a slot.
struct PlainField {
    std::size_t variable = 0;  // of the schema
    std::uint64_t slot_offset = 0;
    std::size_t place = 0;                        // of the part, among those of a step
    std::vector<std::uint64_t> shape{};           // of what lies in the slot; empty: that of the variable
    std::vector<std::uint64_t> first{}, count{};  // of these elements those that are encoded; empty: all
};

struct StepEncoderOptions {
    std::uint64_t slot_bytes = 0;
    std::size_t places = 0;  // of a step
    bool on_device = false;
    unsigned threads = 0;  // 0: one for each CPU of this process
};

class StepEncoder {
  public:
    // Variables of the schema without filters are left as they are.
    StepEncoder(const Context& context, const formats::FileSchema& schema, std::span<const PlainField> fields,
                const StepEncoderOptions& options);
    virtual ~StepEncoder() = default;
    StepEncoder(const StepEncoder&) = delete;
    StepEncoder& operator=(const StepEncoder&) = delete;

    // Where the bytes of the slot lie in memory of the host: a copy, where the slot lies on a device.
    std::byte* take(const Buffer& slot);
    // What was taken. Returns for each place of a step the sizes of its chunks; none for those without filters. Throws
    // Error, which names the variable.
    virtual std::vector<formats::StoredChunks> encode();
    // Chunks of the part, one behind the other; empty where it has no filters.
    std::span<std::byte> encoded(std::size_t place) const;

  private:
    struct FieldChunks {
        std::size_t place = 0, group = 0, first_chunk = 0, chunks = 0;
        std::uint64_t room_offset = 0;
        std::uint64_t bytes = 0;  // encoded
        std::string name;
    };
    // Chunks of one size that go through the same filters.
    struct ChunkGroup {
        std::vector<data::Filter> filters;
        data::Encoder encoder;
        std::vector<data::PlainChunk> chunks{};
        std::vector<data::GatheredBox> boxes{};
        std::vector<std::uint64_t> sources{};  // of the boxes, in the slot
        std::vector<std::uint64_t> sizes{};
    };
    ChunkGroup& group_of(const formats::NewVariable& variable, std::uint64_t chunk_bytes);
    void add_chunks(const formats::FileSchema& schema, const PlainField& field);
    void encode_group(ChunkGroup& group);
    formats::StoredChunks join(FieldChunks& field);

    std::vector<ChunkGroup> groups_;
    std::vector<FieldChunks> fields_;
    std::size_t places_;
    const data::CoreOptions cores_;
    std::optional<Buffer> staged_;  // a slot in memory of the host
    std::optional<Buffer> room_;    // what the chunks become
    std::unique_ptr<Stream> stream_;
    std::unique_ptr<Event> copied_;
    std::byte* plain_ = nullptr;
};

}  // namespace penstock::history
