// See growing.hpp.
#include "formats/create/hdf5/growing.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <numeric>
#include <utility>

#include "formats/create/hdf5/encoder.hpp"
#include "formats/create/hdf5/layout.hpp"
#include "formats/create/hdf5/schema_tree.hpp"

namespace penstock::formats {
namespace {

// A step of a variable that is reserved.
struct ReservedStep {
    std::uint64_t offset_bytes = 0;
    StoredChunks sizes{};
};

// A variable that grows.
struct Grown {
    std::string name;
    ChunkIndex* index = nullptr;
    std::uint64_t root_offset = 0;
    std::uint64_t chunk_bytes = 0;                     // with what checksums add, and not compressed
    bool has_stored_size = true;                       // that follows from the shape
    std::vector<std::vector<std::uint64_t>> firsts{};  // of the chunks of a step, within it
    std::deque<ReservedStep> steps{};                  // that are not in the index
};

class GrowingHdf5 final : public GrowingFile {
  public:
    GrowingHdf5(const FileSchema& schema, ByteSink& sink, const NewHdf5Options& options);
    const char* format() const override { return is_netcdf4_ ? "netcdf4" : "hdf5"; }
    bool is_big_endian() const override { return std::endian::native == std::endian::big; }
    std::vector<DataPlace> fixed() const override { return fixed_; }
    std::vector<DataPlace> reserve(std::span<const StoredChunks> stored) override;
    void publish(std::uint64_t steps) override;
    std::uint64_t end_bytes() const override { return end_bytes_; }

  private:
    void add_variable(const NewVariable& variable, const Hdf5Dataset& dataset, PlacedObject& placed);
    void keep_lengths(const Hdf5Tree& tree);
    void write_values(const FileSchema& schema);
    StoredChunks stored_sizes(const Grown& variable, const StoredChunks& told) const;
    void index_step();
    void write_changes(std::uint64_t end_bytes);
    void write_lengths(std::uint64_t steps);
    Error refusal(ErrorCode code, std::string cause, std::string advice) const {
        return new_file_error(sink_.name(), code, std::move(cause), std::move(advice));
    }

    ByteSink& sink_;
    bool is_netcdf4_;
    Hdf5Image image_{};
    FileRoom room_{};
    std::vector<DataPlace> fixed_{};
    std::vector<std::size_t> grown_of_{};  // of each variable of the schema: its place in grown_, or none
    std::vector<Grown> grown_{};
    std::vector<FileChange> lengths_{};  // the part of each page that has lengths
    std::vector<std::uint64_t> length_offsets_{};
    IndexChanges changes_{};  // that no publish wrote yet
    std::uint64_t reserved_ = 0, indexed_ = 0, published_ = 0, end_bytes_ = 0, data_end_ = 0;
};

constexpr std::size_t kStays = ~std::size_t{0};

GrowingHdf5::GrowingHdf5(const FileSchema& schema, ByteSink& sink, const NewHdf5Options& options)
    : sink_(sink), is_netcdf4_(options.is_netcdf4) {
    const SchemaTree made =
        is_netcdf4_ ? netcdf4_tree(schema, sink.name(), options.properties) : plain_tree(schema, sink.name());
    image_ = lay_out(made.tree, options.half_entries);
    room_ = FileRoom(image_.end_bytes);
    end_bytes_ = image_.end_bytes;
    for (std::size_t i = 0; i < schema.variables.size(); ++i) {
        const ObjectNumber number = made.variables[i];
        PlacedObject& placed = image_.objects[number];
        fixed_.push_back(placed.index ? DataPlace{} : placed.data.at(0));
        grown_of_.push_back(placed.index ? grown_.size() : kStays);
        if (placed.index) add_variable(schema.variables[i], made.tree.objects[number].dataset, placed);
    }
    keep_lengths(made.tree);
    write_last_byte(image_, sink_);
    write_values(schema);
    write_metadata(image_, sink_);
}

void GrowingHdf5::add_variable(const NewVariable& variable, const Hdf5Dataset& dataset, PlacedObject& placed) {
    Grown grown{.name = variable.name, .index = &*placed.index, .root_offset = placed.root_offset};
    grown.chunk_bytes = element_count(dataset.chunk) * dataset.type.item_bytes;
    for (const data::Filter& filter : variable.filters) {
        grown.chunk_bytes += filter.name == "fletcher32" ? 4 : 0;
        grown.has_stored_size = grown.has_stored_size && (filter.name == "fletcher32" || filter.name == "shuffle");
    }
    std::vector<std::uint64_t> at(dataset.shape.size());
    std::uint64_t chunks = 1;
    for (std::size_t k = 1; k < at.size(); ++k) chunks *= (dataset.shape[k] + dataset.chunk[k] - 1) / dataset.chunk[k];
    for (std::uint64_t i = 0; i < chunks; ++i) {
        grown.firsts.push_back(at);
        for (std::size_t k = at.size(); k-- > 1;) {
            if ((at[k] += dataset.chunk[k]) < dataset.shape[k]) break;
            at[k] = 0;
        }
    }
    grown_.push_back(std::move(grown));
}

void GrowingHdf5::keep_lengths(const Hdf5Tree& tree) {
    for (const ObjectNumber number : tree.growing) length_offsets_.push_back(image_.objects[number].length_offset);
    for (const std::uint64_t offset : length_offsets_) {
        if (lengths_.empty() || lengths_.back().offset_bytes / kFilePageBytes != offset / kFilePageBytes)
            lengths_.push_back({offset, {}});
        const std::uint64_t first = lengths_.back().offset_bytes;
        const auto begin = image_.metadata.begin() + static_cast<std::ptrdiff_t>(first);
        lengths_.back().bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(offset + 8 - first));
    }
}

void GrowingHdf5::write_values(const FileSchema& schema) {
    for (std::size_t i = 0; i < schema.variables.size(); ++i)
        if (!schema.variables[i].values.empty()) sink_.write(fixed_[i].offset_bytes, schema.variables[i].values);
}

StoredChunks GrowingHdf5::stored_sizes(const Grown& variable, const StoredChunks& told) const {
    constexpr std::uint64_t kMostStored = ~std::uint32_t{0};
    if (told.empty() && variable.has_stored_size) return StoredChunks(variable.firsts.size(), variable.chunk_bytes);
    const auto is_wrong = [&](std::uint64_t bytes) {
        return variable.has_stored_size ? bytes != variable.chunk_bytes : bytes == 0 || bytes > kMostStored;
    };
    if (told.size() != variable.firsts.size() || std::any_of(told.begin(), told.end(), is_wrong))
        throw refusal(ErrorCode::invalid_argument,
                      "a step of " + variable.name + " is to take " +
                          std::to_string(std::accumulate(told.begin(), told.end(), std::uint64_t{0})) + " bytes in " +
                          std::to_string(told.size()) + " of " + std::to_string(variable.firsts.size()) + " chunks",
                      "tell the size of what the filters made of each chunk, which is below 4 GiB");
    return told;
}

std::vector<DataPlace> GrowingHdf5::reserve(std::span<const StoredChunks> stored) {
    if (!stored.empty() && stored.size() != grown_of_.size())
        throw refusal(ErrorCode::invalid_argument, "there are not as many sizes of data as variables",
                      "tell one for each variable of the schema");
    if (reserved_ + 1 == kStepLimit)
        throw refusal(ErrorCode::unsupported, "the file has " + std::to_string(reserved_) + " steps",
                      "begin another file");
    std::vector<DataPlace> places(grown_of_.size());
    std::vector<ReservedStep> steps(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (grown_of_[i] == kStays) continue;
        steps[i].sizes = stored_sizes(grown_[grown_of_[i]], stored.empty() ? StoredChunks{} : stored[i]);
        places[i].bytes = std::accumulate(steps[i].sizes.begin(), steps[i].sizes.end(), std::uint64_t{0});
    }
    for (Grown& variable : grown_)
        for (std::size_t i = 0; i < variable.firsts.size(); ++i) variable.index->reserve(room_);
    // Small ones lie behind the large ones, so that these leave less room to the next page.
    for (const bool is_large : {true, false})
        for (DataPlace& place : places)
            if (place.bytes != 0 && is_large == is_aligned(place.bytes))
                place.offset_bytes = take_for_data(room_, place.bytes);
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (grown_of_[i] == kStays) continue;
        steps[i].offset_bytes = places[i].offset_bytes;
        grown_[grown_of_[i]].steps.push_back(std::move(steps[i]));
    }
    ++reserved_;
    return places;
}

void GrowingHdf5::publish(std::uint64_t steps) {
    if (steps > reserved_)
        throw refusal(
            ErrorCode::invalid_argument,
            std::to_string(steps) + " steps are to be seen, and " + std::to_string(reserved_) + " were reserved",
            "reserve each step before its data are written");
    if (steps <= published_) return;
    while (indexed_ < steps) index_step();
    for (Grown& variable : grown_) {
        IndexChanges made = variable.index->take_changes();
        changes_.has_new_nodes |= made.has_new_nodes;
        std::move(made.unseen.begin(), made.unseen.end(), std::back_inserter(changes_.unseen));
        std::move(made.shown.begin(), made.shown.end(), std::back_inserter(changes_.shown));
        if (!made.has_new_root) continue;
        FileChange root{variable.root_offset, std::vector<std::byte>(8)};
        store_number(root.bytes, variable.index->root());
        changes_.shown.push_back(std::move(root));
    }
    std::uint64_t end = std::max(end_bytes_, data_end_);
    for (const FileChange& change : changes_.unseen) end = std::max(end, change.offset_bytes + change.bytes.size());
    write_changes(end);
    write_lengths(steps);
    changes_ = {};
    published_ = steps;
    end_bytes_ = end;
}

void GrowingHdf5::index_step() {
    for (Grown& variable : grown_) {
        const ReservedStep step = std::move(variable.steps.front());
        variable.steps.pop_front();
        std::uint64_t offset_bytes = step.offset_bytes;
        for (std::size_t i = 0; i < variable.firsts.size(); ++i) {
            IndexEntry entry{.first = variable.firsts[i],
                             .next = variable.firsts[(i + 1) % variable.firsts.size()],
                             .offset_bytes = offset_bytes,
                             .stored_bytes = step.sizes[i]};
            offset_bytes += step.sizes[i];
            entry.first[0] = indexed_;
            entry.next[0] = indexed_ + (i + 1 == variable.firsts.size() ? 1 : 0);
            variable.index->append(entry);
        }
        data_end_ = std::max(data_end_, offset_bytes);
    }
    ++indexed_;
}

void GrowingHdf5::write_changes(std::uint64_t end_bytes) {
    for (const FileChange& change : changes_.unseen) sink_.write(change.offset_bytes, change.bytes);
    sink_.barrier();
    std::vector<std::byte> end(8);
    store_number(end, end_bytes);
    sink_.write(image_.end_field_offset, end);
    if (changes_.has_new_nodes) sink_.barrier();
    for (const FileChange& change : changes_.shown) sink_.write(change.offset_bytes, change.bytes);
    sink_.barrier();
}

// The first page has the growing dimension, whose length is what tells readers of a new step: it comes last.
void GrowingHdf5::write_lengths(std::uint64_t steps) {
    auto page = lengths_.begin();
    for (const std::uint64_t offset : length_offsets_) {
        if (page->offset_bytes / kFilePageBytes != offset / kFilePageBytes) ++page;
        store_number(std::span(page->bytes).subspan(offset - page->offset_bytes, 8), steps);
    }
    for (std::size_t i = lengths_.size(); i-- > 0;) {
        if (i == 0 && lengths_.size() > 1) sink_.barrier();
        sink_.write(lengths_[i].offset_bytes, lengths_[i].bytes);
    }
    sink_.barrier();
}

}  // namespace

GrowingFilePtr make_hdf5(const FileSchema& schema, ByteSink& sink, const NewHdf5Options& options) {
    return std::make_unique<GrowingHdf5>(schema, sink, options);
}

}  // namespace penstock::formats
