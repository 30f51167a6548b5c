// What a history is told before it begins.
#include <algorithm>

#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"
#include "history/history_state.hpp"
#include "history/presets/scale.hpp"

namespace penstock::history {
namespace {

std::vector<HistoryAttribute>& attributes_of(Definitions& all, const std::string& variable) {
    if (variable.empty()) return all.attributes;
    if (variable == "time") return all.time_attributes;
    for (HistoryVariable& one : all.variables) {
        if (one.name == variable) return one.attributes;
    }
    for (HistoryConstant& one : all.constants) {
        if (one.name == variable) return one.attributes;
    }
    throw Error(ErrorCode::invalid_argument, "set attribute", "no variable " + formats::shown(variable) + " is defined",
                "define it first");
}

}  // namespace

void HistoryState::check_definable(const char* operation) const {
    check_open(operation);
    if (writer_) throw refused(operation, "fields were put already", "define before that");
}

void HistoryState::forget_agreements() {
    definitions_.cuts.reset();
    definitions_.coverage.reset();
    draft_.reset();
}

void HistoryState::define(const HistoryVariable& variable) {
    check_definable("define");
    names_.add(name_, {.variables = {variable}}, options_);
    definitions_.variables.push_back(variable);
    forget_agreements();
}

void HistoryState::define(const HistoryConstant& constant) {
    check_definable("define");
    names_.add(name_, {.constants = {constant}}, options_);
    definitions_.constants.push_back(constant);
    forget_agreements();
}

void HistoryState::set_attribute(const HistoryAttribute& attribute, const std::string& variable) {
    check_definable("set attribute");
    std::vector<HistoryAttribute>& place = attributes_of(definitions_, variable);
    std::vector<HistoryAttribute> all = place;
    std::erase_if(all, [&](const HistoryAttribute& one) { return one.name == attribute.name; });
    all.push_back(attribute);
    check_attributes(name_, variable, all, options_);
    place = std::move(all);
    forget_agreements();
}

void HistoryState::use_preset(const HistoryPreset& preset) {
    check_definable("use preset");
    Definitions all = definitions_;
    add_scale(all, preset, options_);
    formats::check_schema(plan_history(all, options_, false).schema, name_);
    DefinedNames names;
    for (const HistoryVariable& one : all.variables) {
        names.add(name_, {.variables = {one}, .has_bounds = all.has_bounds}, options_);
    }
    for (const HistoryConstant& one : all.constants) {
        names.add(name_, {.constants = {one}, .has_bounds = all.has_bounds}, options_);
    }
    definitions_ = std::move(all);
    names_ = std::move(names);
    forget_agreements();
}

}  // namespace penstock::history
