// See penstock/restart.hpp: what a program calls, passed on to the state of the restart.
#include "penstock/restart.hpp"

#include <algorithm>

#include "formats/faults.hpp"
#include "restart/restart_state.hpp"

namespace penstock {

void RestartPart::join(const RestartPart& other) {
    if (sums.size() < other.sums.size()) sums.resize(other.sums.size());
    for (std::size_t i = 0; i < other.sums.size(); ++i) sums[i] ^= other.sums[i];
    coverage += other.coverage;
}

Restart::Restart(const Context& context, std::string name, const RestartOptions& options)
    : state_(std::make_unique<restart::RestartState>(context, name, options)) {}
Restart::~Restart() = default;
Restart::Restart(Restart&&) noexcept = default;
Restart& Restart::operator=(Restart&&) noexcept = default;

void Restart::set_field(const RestartField& field) { state_->set_field(field); }
void Restart::set_attribute(const SnapshotAttribute& attribute) { state_->set_attribute(attribute); }
void Restart::clear() { state_->clear(); }
void Restart::use_stream(std::uintptr_t stream) { state_->use_stream(stream); }
RestartFacts Restart::write() { return state_->write(); }
bool Restart::find() { return state_->find(); }
std::uint64_t Restart::generation() const { return state_->found("ask for the generation").number; }

std::vector<std::string> Restart::field_names() const {
    std::vector<std::string> names;
    for (const restart::RecordedField& field : state_->found("list fields").record.fields) names.push_back(field.name);
    return names;
}

std::vector<std::string> Restart::attribute_names() const {
    std::vector<std::string> names;
    for (const SnapshotAttribute& one : state_->found("list attributes").record.attributes) names.push_back(one.name);
    return names;
}

SnapshotDataset Restart::stored(const std::string& field) const {
    const restart::RecordedField* found = state_->found("look at field").field(field);
    if (found != nullptr) return {found->name, found->dtype, found->shape};
    throw state_->refused("look at field", "there is no field " + formats::shown(field), "ask for one of field_names");
}

SnapshotAttribute Restart::attribute(const std::string& name) const {
    const std::vector<SnapshotAttribute>& all = state_->found("get attribute").record.attributes;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    if (found != all.end()) return *found;
    throw state_->refused("get attribute", "there is no attribute " + formats::shown(name),
                          "ask for one that the model set");
}

RestartFacts Restart::read() { return state_->read(); }
std::uint64_t Restart::digest() const { return state_->digest(); }
std::string Restart::begin(const std::string& part) { return state_->begin(part); }
RestartPart Restart::move() { return state_->move(); }
RestartFacts Restart::commit(const RestartPart& whole) { return state_->commit(whole); }
void Restart::abandon() noexcept { state_->abandon(); }
void Restart::release() noexcept { state_->release(); }
std::string Restart::read_found(RestartFacts& facts) { return state_->read_found(facts); }
bool Restart::pass_over(const std::string& cause) { return state_->pass_over(cause); }

}  // namespace penstock
