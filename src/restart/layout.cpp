// See layout.hpp. The record comes last of all data. Its length follows from places of others alone: they are laid out
// with a record of one element first.
#include "restart/layout.hpp"

#include <algorithm>
#include <utility>

#include "formats/create/hdf5/encoder.hpp"
#include "formats/faults.hpp"
#include "restart/block_sums.hpp"
#include "snapshot/snapshot_attribute.hpp"

namespace penstock::restart {
namespace {

constexpr const char* kOwnGroup = "penstock";
constexpr const char* kGenerationName = "generation";

formats::Hdf5Object dataset_of(const std::string& dtype, std::vector<std::uint64_t> shape) {
    formats::Hdf5Object made;
    made.dataset.shape = std::move(shape);
    formats::type_named(dtype, made.dataset.type);
    return made;
}

SnapshotAttribute number_of(const char* name, std::uint64_t number) { return snapshot_scalar(name, number); }

std::uint64_t end_of(const formats::Hdf5Image& image) {
    return std::max<std::uint64_t>(image.end_bytes, image.metadata.size());
}

std::uint64_t offset_of(const formats::Hdf5Image& image, formats::ObjectNumber object) {
    return image.objects[object].data.empty() ? 0 : image.objects[object].data[0].offset_bytes;
}

}  // namespace

RestartLayout lay_out(const std::string& file, std::span<const RestartField> fields,
                      std::span<const SnapshotAttribute> attributes) {
    RestartLayout layout;
    formats::Hdf5Tree& tree = layout.tree;
    tree.file = file;
    tree.objects.push_back({.is_group = true});
    for (const SnapshotAttribute& one : attributes) tree.objects[0].attributes.push_back(snapshot::tree_attribute(one));
    std::vector<formats::ObjectNumber> objects;
    for (const RestartField& field : fields) {
        objects.push_back(formats::add_object(tree, field.name, dataset_of(field.dtype, field.shape)));
        const formats::Hdf5Dataset& dataset = tree.objects[objects.back()].dataset;
        const std::uint64_t bytes = elements_of(field.shape) * dataset.type.item_bytes;
        layout.record.fields.push_back(
            {field.name, field.dtype, dataset.type.item_bytes, field.shape, 0, bytes, layout.record.blocks});
        layout.record.blocks += blocks_of(bytes);
    }
    layout.record.attributes.assign(attributes.begin(), attributes.end());
    const std::string own = kOwnGroup;
    const auto sums = formats::add_object(tree, own + "/checksums", dataset_of("uint32", {layout.record.blocks}));
    const auto record = formats::add_object(tree, own + "/record", dataset_of("uint8", {1}));
    const formats::Hdf5Image without = layout.image(0);
    for (std::size_t i = 0; i < objects.size(); ++i)
        layout.record.fields[i].offset_bytes = offset_of(without, objects[i]);
    layout.record.sums_offset = offset_of(without, sums);
    layout.text = record_text(layout.record);
    tree.objects[record].dataset.shape = {layout.text.size() + kTrailerBytes};
    const formats::Hdf5Image whole = layout.image(0);
    layout.record_offset = offset_of(whole, record);
    layout.file_bytes = end_of(whole);
    return layout;
}

std::uint64_t RestartLayout::digest() const {
    constexpr std::uint64_t prime = 0x100000001b3;
    std::uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
    for (const char one : text) sum = (sum ^ static_cast<unsigned char>(one)) * prime;
    return sum;
}

formats::Hdf5Image RestartLayout::image(std::uint64_t generation) const {
    formats::Hdf5Tree made = tree;
    formats::Hdf5Object& group = made.objects[formats::add_group(made, kOwnGroup)];
    group.attributes.push_back(snapshot::tree_attribute(number_of(kGenerationName, generation)));
    group.attributes.push_back(snapshot::tree_attribute(number_of("block_bytes", kSummedBytes)));
    return formats::lay_out(made);
}

}  // namespace penstock::restart
