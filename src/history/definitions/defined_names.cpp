// See defined_names.hpp. One definition makes a schema of its own, with the time that all of them share.
#include "history/definitions/defined_names.hpp"

#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"

namespace penstock::history {
namespace {

// The variables of the schema that come of a definition are behind these.
std::size_t own_variables(const HistoryLayout& layout) { return layout.has_bounds ? 2 : 1; }

}  // namespace

Error other_length(const std::string& owner, const formats::NewDimension& has, std::uint64_t others) {
    return {ErrorCode::invalid_argument, "define",
            owner + " has " + std::to_string(has.length) + " elements along " + formats::shown(has.name) +
                ", others have " + std::to_string(others),
            "give dimensions of another length another name"};
}

void DefinedNames::add(const std::string& file, const Definitions& one, const HistoryOptions& options) {
    const HistoryLayout layout = plan_history(one, options, false);
    const formats::FileSchema& schema = layout.schema;
    formats::check_schema(schema, file);
    const formats::NewVariable& own = schema.variables.at(own_variables(layout));
    const bool brings_bounds = layout.has_bounds && !has_bounds_;
    if (variables_.contains(own.name)) throw formats::defined_twice(file, own.name);
    if (brings_bounds && variables_.contains(schema.variables[1].name)) {
        throw formats::defined_twice(file, schema.variables[1].name);
    }
    for (const formats::NewDimension& has : schema.dimensions) {
        const auto known = lengths_.find(has.name);
        if (has.grows || known == lengths_.end() || known->second == has.length) continue;
        throw other_length("variable " + formats::shown(own.name), has, known->second);
    }
    for (const formats::NewDimension& has : schema.dimensions) {
        if (!has.grows) lengths_.emplace(has.name, has.length);
    }
    for (std::size_t i = 1; i < schema.variables.size(); ++i) variables_.insert(schema.variables[i].name);
    has_bounds_ = has_bounds_ || layout.has_bounds;
}

void check_attributes(const std::string& file, const std::string& variable,
                      const std::vector<HistoryAttribute>& attributes, const HistoryOptions& options) {
    Definitions one;
    if (variable.empty()) {
        one.attributes = attributes;
    } else if (variable == "time") {
        one.time_attributes = attributes;
    } else {
        HistoryConstant owner{.name = variable, .attributes = attributes};
        owner.values.resize(sizeof(double));
        one.constants.push_back(std::move(owner));
    }
    formats::check_schema(plan_history(one, options, false).schema, file);
}

}  // namespace penstock::history
