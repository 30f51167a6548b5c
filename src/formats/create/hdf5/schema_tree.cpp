// See schema_tree.hpp.
#include "formats/create/hdf5/schema_tree.hpp"

#include <algorithm>
#include <utility>

#include "formats/create/hdf5/encoder.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostChunkOfHdf5 = (std::uint64_t{1} << 32) - 1024;  // room for what filters add

}  // namespace

Error new_file_error(const std::string& file, ErrorCode code, std::string cause, std::string advice) {
    ErrorInfo info;
    info.code = code;
    info.operation = "create";
    info.file = file;
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    return Error(std::move(info));
}

void check_filters(const FileSchema& schema, const std::string& file) {
    for (const NewVariable& variable : schema.variables) {
        if (!variable.filters.empty() && !grows(schema, variable))
            throw new_file_error(file, ErrorCode::unsupported,
                                 "variable " + variable.name + " does not grow and has filters",
                                 "store it without: it is written once");
        if (!variable.chunk.empty() && element_count(variable.chunk) > kMostChunkOfHdf5 / variable.type.item_bytes)
            throw new_file_error(file, ErrorCode::unsupported,
                                 "a chunk of variable " + variable.name + " has 4 GiB or more",
                                 "take smaller chunks; some MiB serve readers better");
    }
}

Hdf5Object variable_object(const FileSchema& schema, const NewVariable& variable) {
    Hdf5Object object;
    Hdf5Dataset& dataset = object.dataset;
    dataset.type = variable.type;
    for (const std::size_t number : variable.dimensions) dataset.shape.push_back(schema.dimensions[number].length);
    dataset.filters = variable.filters;
    for (const NewAttribute& attribute : variable.attributes) object.attributes.push_back(value_attribute(attribute));
    if (!grows(schema, variable)) return object;
    dataset.shape[0] = 1;
    dataset.chunk = step_chunk(dataset.shape, variable.type.item_bytes);
    if (!variable.chunk.empty()) std::copy(variable.chunk.begin(), variable.chunk.end(), dataset.chunk.begin() + 1);
    dataset.most = dataset.shape;
    dataset.most[0] = kNoLimit;
    dataset.shape[0] = 0;
    return object;
}

std::vector<std::uint64_t> step_chunk(const std::vector<std::uint64_t>& shape, std::uint64_t item_bytes) {
    std::vector<std::uint64_t> chunk(shape);
    std::uint64_t bytes = element_count(shape) * item_bytes;
    for (std::size_t i = 1; i < chunk.size() && bytes > kMostChunkOfHdf5; ++i) {
        if (chunk[i] == 1) continue;
        std::uint64_t parts = 2;
        while (parts < chunk[i] && (chunk[i] % parts != 0 || bytes / parts > kMostChunkOfHdf5)) ++parts;
        bytes /= parts;
        chunk[i] /= parts;
    }
    return chunk;
}

SchemaTree plain_tree(const FileSchema& schema, const std::string& file) {
    check_schema(schema, file);
    check_filters(schema, file);
    SchemaTree made;
    made.tree.file = file;
    made.tree.objects.push_back({.is_group = true});
    for (const NewAttribute& attribute : schema.attributes)
        made.tree.objects[0].attributes.push_back(value_attribute(attribute));
    for (const NewVariable& variable : schema.variables) {
        const ObjectNumber number = add_object(made.tree, variable.name, variable_object(schema, variable));
        made.variables.push_back(number);
        if (!grows(schema, variable)) continue;
        const bool is_time = schema.dimensions[variable.dimensions[0]].name == variable.name;
        std::vector<ObjectNumber>& growing = made.tree.growing;
        growing.insert(is_time ? growing.begin() : growing.end(), number);
    }
    return made;
}

}  // namespace penstock::formats
