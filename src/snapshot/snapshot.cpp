// See penstock/snapshot.hpp: what a program calls, passed on to the state of the snapshot.
#include "penstock/snapshot.hpp"

#include <utility>

#include "base/in_file.hpp"
#include "snapshot/snapshot_state.hpp"

namespace penstock {
namespace {

// What a snapshot throws names its file.
template <class Call>
decltype(auto) of_snapshot(const snapshot::SnapshotState& state, Call&& call) {
    return base::in_file(state.name(), std::forward<Call>(call));
}

}  // namespace

Snapshot::Snapshot(const Context& context, std::string name, const SnapshotOptions& options)
    : state_(std::make_unique<snapshot::SnapshotState>(context, std::move(name), options)) {}
Snapshot::~Snapshot() = default;
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;

void Snapshot::add_group(const std::string& path) {
    of_snapshot(*state_, [&] { state_->add_group(path); });
}
void Snapshot::add_link(const std::string& path, const std::string& target, const std::string& file) {
    of_snapshot(*state_, [&] { state_->add_link(path, target, file); });
}
void Snapshot::add_dataset(const SnapshotDataset& dataset) {
    of_snapshot(*state_, [&] { state_->add_dataset(dataset); });
}
void Snapshot::add_values(const SnapshotDataset& dataset, std::span<const std::byte> values) {
    of_snapshot(*state_, [&] { state_->add_values(dataset, values); });
}
void Snapshot::add_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    of_snapshot(*state_, [&] { state_->add_cells(cells, types); });
}
SnapshotCellSums Snapshot::count_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    return of_snapshot(*state_, [&] { return state_->count_cells(cells, types); });
}
void Snapshot::add_counted_cells() {
    of_snapshot(*state_, [&] { state_->add_counted_cells(); });
}
void Snapshot::sort_by_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    of_snapshot(*state_, [&] { state_->sort_by_cells(cells, types); });
}
SnapshotCellSums Snapshot::sort_and_count(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    return of_snapshot(*state_, [&] { return state_->sort_and_count(cells, types); });
}
void Snapshot::set_attribute(const std::string& path, const SnapshotAttribute& attribute) {
    of_snapshot(*state_, [&] { state_->set_attribute(path, attribute); });
}
void Snapshot::use_preset(const SnapshotPreset& preset) {
    of_snapshot(*state_, [&] { state_->use_preset(preset); });
}
void Snapshot::use_stream(std::uintptr_t stream) { state_->use_stream(stream); }
void Snapshot::check_memory(const SnapshotField& field) const {
    of_snapshot(*state_, [&] { state_->check_memory(field); });
}
SnapshotFacts Snapshot::write(std::span<const SnapshotField> fields, const SnapshotWatch& goes_on) {
    return of_snapshot(*state_, [&] { return state_->write(fields, goes_on); });
}
std::uint64_t Snapshot::digest() const {
    return of_snapshot(*state_, [&] { return state_->digest(); });
}
void Snapshot::begin(const std::string& place) {
    of_snapshot(*state_, [&] { state_->begin(place); });
}
const std::string& Snapshot::place() const { return state_->place(); }
void Snapshot::commit() {
    of_snapshot(*state_, [&] { state_->commit(); });
}
void Snapshot::abandon() noexcept { state_->abandon(); }

}  // namespace penstock
