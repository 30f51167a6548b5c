// netcdf4_tree: dimensions as dimension scales and attributes of fixed length, as the netCDF library stores them.
//
// Names that begin with "_Nc" or "_nc" are that library's own: numbers of dimensions, which it reads instead of
// following references; and the name of a variable that is called as a dimension is, and does not go along it.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "formats/create/hdf5/schema_tree.hpp"
#include "formats/faults.hpp"

namespace penstock::formats {
namespace {

// By these the netCDF library keeps dimensions and notes of its own. Its callers can write none of them, and readers
// crash where one holds something else.
constexpr std::array<std::string_view, 11> kReserved{
    "CLASS",       "DIMENSION_LIST", "NAME",         "REFERENCE_LIST",    "_Format",   "_IsNetcdf4",
    "_NCProperties", "_Netcdf4Coordinates", "_Netcdf4Dimid", "_SuperblockVersion", "_nc3_strict"};

void need_free_names(const std::string& file, const std::string& owner,
                     const std::vector<NewAttribute>& attributes) {
    for (const NewAttribute& one : attributes) {
        if (std::find(kReserved.begin(), kReserved.end(), one.name) == kReserved.end()) continue;
        throw not_created(file, "attribute " + one.name + " of " + owner + " is one that netCDF-4 keeps for itself",
                          "give it another name");
    }
}

class Netcdf4 {
  public:
    Netcdf4(const FileSchema& schema, const std::string& file) : schema_(schema) {
        made_.tree.file = file;
        check_schema(schema, file);
        check_filters(schema, file);
        need_free_names(file, "the file", schema.attributes);
        for (const NewVariable& variable : schema.variables) check_netcdf(variable);
    }
    SchemaTree take(const std::string& properties);

  private:
    void check_netcdf(const NewVariable& variable) const;
    bool is_coordinate(const NewVariable& variable) const;
    std::string stored_name(const NewVariable& variable) const;
    void add_variable(const NewVariable& variable);
    void add_plain_scale(std::size_t dimension);
    void set_scale(ObjectNumber object, const std::string& name, std::size_t dimension);
    void join_scales();

    const FileSchema& schema_;
    SchemaTree made_{};
    std::vector<ObjectNumber> scales_{};  // of each dimension
};

Hdf5Attribute integers(const std::string& name, const std::vector<std::int32_t>& values) {
    NewAttribute made = number_attribute(name, std::int32_t{0});
    made.shape = {values.size()};
    const auto bytes = std::as_bytes(std::span(values));
    made.bytes.assign(bytes.begin(), bytes.end());
    return value_attribute(std::move(made));
}

// As the HDF5 library's dimension scales have it: with the zero that ends it.
Hdf5Attribute ended_text(const std::string& name, std::string text) {
    text.push_back('\0');
    return value_attribute(text_attribute(name, text));
}

// The value that the netCDF library fills elements with that were not written.
template <typename Number>
std::vector<std::byte> bytes_of(Number value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> usual_fill(const std::string& type) {
    if (type == "int8") return bytes_of<std::int8_t>(-127);
    if (type == "uint8") return bytes_of<std::uint8_t>(255);
    if (type == "int16") return bytes_of<std::int16_t>(-32767);
    if (type == "uint16") return bytes_of<std::uint16_t>(65535);
    if (type == "int32") return bytes_of<std::int32_t>(-2147483647);
    if (type == "uint32") return bytes_of<std::uint32_t>(4294967295U);
    if (type == "int64") return bytes_of<std::int64_t>(-9223372036854775806);
    if (type == "uint64") return bytes_of<std::uint64_t>(18446744073709551614U);
    if (type == "float32") return bytes_of<float>(9.9692099683868690e+36F);
    if (type == "float64") return bytes_of<double>(9.9692099683868690e+36);
    return {std::byte{0}};
}

Hdf5Attribute netcdf_attribute(NewAttribute attribute) {
    if (attribute.type.kind != 'S' && attribute.shape.empty()) attribute.shape = {1};
    return value_attribute(std::move(attribute));
}

void Netcdf4::check_netcdf(const NewVariable& variable) const {
    const std::string& file = made_.tree.file;
    const auto refuse = [&](const std::string& what, const std::string& name) {
        throw new_file_error(file, ErrorCode::unsupported, "netCDF-4 has no " + what + ", as " + name + " has it",
                             "convert it, or write plain HDF5");
    };
    const auto check_type = [&](const ElementType& type, const std::string& name) {
        const bool is_number = (type.kind == 'i' || type.kind == 'u' || type.kind == 'f') && type.name != "float16";
        if (!is_number && type.kind != 'S') refuse(type.name, name);
    };
    check_type(variable.type, variable.name);
    if (variable.type.kind == 'S' && variable.type.item_bytes != 1)
        refuse("text elements of several bytes", variable.name);
    for (const NewAttribute& attribute : variable.attributes) check_type(attribute.type, attribute.name);
    need_free_names(file, "variable " + variable.name, variable.attributes);
}

// Whether the variable is where the netCDF library looks for the dimension of its name.
bool Netcdf4::is_coordinate(const NewVariable& variable) const {
    return !variable.dimensions.empty() && schema_.dimensions[variable.dimensions[0]].name == variable.name;
}

std::string Netcdf4::stored_name(const NewVariable& variable) const {
    const bool is_of_dimension = std::any_of(schema_.dimensions.begin(), schema_.dimensions.end(),
                                             [&](const NewDimension& one) { return one.name == variable.name; });
    return is_of_dimension && !is_coordinate(variable) ? "_nc4_non_coord_" + variable.name : variable.name;
}

void Netcdf4::set_scale(ObjectNumber object, const std::string& name, std::size_t dimension) {
    std::vector<Hdf5Attribute>& attributes = made_.tree.objects[object].attributes;
    attributes.push_back(ended_text("CLASS", "DIMENSION_SCALE"));
    attributes.push_back(ended_text("NAME", name));
    attributes.push_back(value_attribute(number_attribute("_Netcdf4Dimid", static_cast<std::int32_t>(dimension))));
}

void Netcdf4::add_variable(const NewVariable& variable) {
    Hdf5Object object = variable_object(schema_, variable);
    std::vector<Hdf5Attribute> attributes;
    object.attributes.clear();
    object.dataset.fill = usual_fill(variable.type.name);
    for (const NewAttribute& attribute : variable.attributes) {
        object.attributes.push_back(netcdf_attribute(attribute));
        if (attribute.name == "_FillValue") object.dataset.fill = attribute.bytes;
    }
    const ObjectNumber number = add_object(made_.tree, stored_name(variable), std::move(object));
    made_.variables.push_back(number);
    if (!variable.dimensions.empty()) {
        std::vector<std::int32_t> dimensions;
        for (const std::size_t one : variable.dimensions) dimensions.push_back(static_cast<std::int32_t>(one));
        made_.tree.objects[number].attributes.push_back(integers("_Netcdf4Coordinates", dimensions));
    }
    if (is_coordinate(variable)) {
        set_scale(number, variable.name, variable.dimensions[0]);
        scales_[variable.dimensions[0]] = number;
    }
    if (grows(schema_, variable)) made_.tree.growing.push_back(number);
}

// A dimension without a variable is a dataset without data.
void Netcdf4::add_plain_scale(std::size_t dimension) {
    const NewDimension& told = schema_.dimensions[dimension];
    constexpr std::uint64_t kChunkOfNothing = 1024;
    Hdf5Object object;
    Hdf5Dataset& dataset = object.dataset;
    type_named("float32", dataset.type);
    dataset.type = stored_in(dataset.type, true);
    dataset.has_data = false;
    dataset.shape = {told.grows ? 0 : told.length};
    if (told.grows) {
        dataset.most = {kNoLimit};
        dataset.chunk = {kChunkOfNothing};
    }
    const std::string length = std::to_string(dataset.shape[0]);
    const std::string words = "This is a netCDF dimension but not a netCDF variable.";
    const ObjectNumber number = add_object(made_.tree, told.name, std::move(object));
    set_scale(number, words + std::string(10 - std::min<std::size_t>(10, length.size()), ' ') + length, dimension);
    scales_[dimension] = number;
    if (told.grows) made_.tree.growing.push_back(number);
}

// Tells each variable its scales, and each scale its variables.
void Netcdf4::join_scales() {
    std::vector<Hdf5Attribute> uses(scales_.size());
    for (std::size_t i = 0; i < schema_.variables.size(); ++i) {
        const NewVariable& variable = schema_.variables[i];
        if (variable.dimensions.empty() || is_coordinate(variable)) continue;
        Hdf5Attribute list{.holds = Hdf5Attribute::Holds::reference_lists};
        list.value.name = "DIMENSION_LIST";
        for (std::size_t place = 0; place < variable.dimensions.size(); ++place) {
            const std::size_t dimension = variable.dimensions[place];
            list.lists.push_back({{.object = scales_[dimension]}});
            uses[dimension].lists.push_back(
                {{.object = made_.variables[i], .dimension = static_cast<std::uint32_t>(place)}});
        }
        made_.tree.objects[made_.variables[i]].attributes.push_back(std::move(list));
    }
    for (std::size_t dimension = 0; dimension < uses.size(); ++dimension) {
        if (uses[dimension].lists.empty()) continue;
        uses[dimension].holds = Hdf5Attribute::Holds::uses;
        uses[dimension].value.name = "REFERENCE_LIST";
        made_.tree.objects[scales_[dimension]].attributes.push_back(std::move(uses[dimension]));
    }
}

SchemaTree Netcdf4::take(const std::string& properties) {
    made_.tree.objects.push_back({.is_group = true});
    std::vector<Hdf5Attribute>& root = made_.tree.objects[0].attributes;
    root.push_back(value_attribute(text_attribute("_NCProperties", properties)));
    for (const NewAttribute& attribute : schema_.attributes) root.push_back(netcdf_attribute(attribute));
    scales_.resize(schema_.dimensions.size());
    for (std::size_t dimension = 0; dimension < schema_.dimensions.size(); ++dimension) {
        const bool has_variable =
            std::any_of(schema_.variables.begin(), schema_.variables.end(),
                        [&](const NewVariable& one) { return is_coordinate(one) && one.dimensions[0] == dimension; });
        if (!has_variable) add_plain_scale(dimension);
    }
    for (const NewVariable& variable : schema_.variables) add_variable(variable);
    join_scales();
    // The lengths of the growing dimension and of its variables change together; its own comes last where they cannot.
    std::vector<ObjectNumber>& growing = made_.tree.growing;
    std::stable_partition(growing.begin(), growing.end(), [&](ObjectNumber one) {
        return std::find(scales_.begin(), scales_.end(), one) != scales_.end();
    });
    return std::move(made_);
}

}  // namespace

SchemaTree netcdf4_tree(const FileSchema& schema, const std::string& file, const std::string& properties) {
    return Netcdf4(schema, file).take(properties);
}

}  // namespace penstock::formats
