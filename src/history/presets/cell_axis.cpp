// See cell_axis.hpp.
#include "history/presets/cell_axis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "penstock/error.hpp"

namespace penstock::history {
namespace {

[[noreturn]] void refuse_grid(std::string cause, std::string advice) {
    throw Error(ErrorCode::invalid_argument, "use preset", std::move(cause), std::move(advice));
}

void check_rising(const std::string& name, const std::vector<double>& faces) {
    for (std::size_t i = 0; i < faces.size(); ++i) {
        if (std::isfinite(faces[i]) && (i == 0 || faces[i] > faces[i - 1])) continue;
        refuse_grid("face " + std::to_string(i) + " of " + name + " is at " + std::to_string(faces[i]) +
                        ", which is not behind the one before it",
                    "give positions that rise");
    }
}

void check_factors(const std::string& name, std::size_t given, std::size_t wanted) {
    if (given == 0 || given == wanted) return;
    refuse_grid(
        "there are " + std::to_string(given) + " factors of " + name + " for " + std::to_string(wanted) + " places",
        "give one for each cell or face, or none");
}

}  // namespace

std::vector<double> centres_of(const std::vector<double>& faces) {
    std::vector<double> centres;
    for (std::size_t i = 1; i < faces.size(); ++i) centres.push_back((faces[i - 1] + faces[i]) / 2);
    return centres;
}

std::vector<double> differences_of(const std::vector<double>& positions) {
    std::vector<double> lengths;
    for (std::size_t i = 1; i < positions.size(); ++i) lengths.push_back(positions[i] - positions[i - 1]);
    return lengths;
}

std::vector<double> part_of(const std::vector<double>& all, CellRun run) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(run.first);
    return {first, first + static_cast<std::ptrdiff_t>(run.count)};
}

CellAxis::CellAxis(std::string name, const HistoryGridAxis& axis, std::uint32_t place, bool has_boundary)
    : name_(std::move(name)), axis_(axis), place_(place), has_boundary_(has_boundary && !axis.is_periodic) {
    const std::size_t all = axis.faces.empty() ? 0 : axis.faces.size() - 1;
    if (axis.halo >= all || all - axis.halo <= axis.halo) {
        refuse_grid(name_ + " has " + std::to_string(axis.faces.size()) + " faces, and a halo of " +
                        std::to_string(axis.halo) + " cells at each end",
                    "give all faces of the domain and its halo: one more than cells");
    }
    if (all > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) / 2) {
        refuse_grid(name_ + " has " + std::to_string(all) + " cells", "use less than 2^30");
    }
    check_rising(name_, axis.faces);
    cells_ = all - 2 * axis.halo;
    if (axis.processes == 0 || cells_ % axis.processes != 0) {
        refuse_grid(
            name_ + " has " + std::to_string(cells_) + " cells for " + std::to_string(axis.processes) + " processes",
            "give each process as many cells as the others");
    }
    each_ = cells_ / axis.processes;
    check_factors("centres of " + name_, axis.centre_factors.size(), all);
    check_factors("faces of " + name_, axis.face_factors.size(), all + 1);
    centres_ = centres_of(axis.faces);
    written_ = {axis.halo + place_ * each_, each_};
    if (has_boundary_ && is_first()) written_ = {0, written_.count + axis.halo};
    if (has_boundary_ && is_last()) written_.count += axis.halo;
}

CellRun CellAxis::written_faces() const noexcept {
    if (is_open() && is_first()) return {written_.first, written_.count + 1};
    return {written_.first + 1, written_.count};
}

SharedPlace CellAxis::place_of_cells() const noexcept {
    const auto halo = static_cast<std::int32_t>(axis_.halo);
    SharedPlace place;
    place.size_global = static_cast<std::int32_t>(cells_);
    place.start_global = static_cast<std::int32_t>(place_ * each_) + 1;
    if (!has_boundary_) return place;
    place.size_global += 2 * halo;
    if (!is_first()) place.start_global += halo;
    place.halo_global[0] = place.halo_global[1] = halo;
    place.halo_local[0] = is_first() ? halo : 0;
    place.halo_local[1] = is_last() ? halo : 0;
    return place;
}

SharedPlace CellAxis::place_of_faces() const noexcept {
    SharedPlace place = place_of_cells();
    if (!is_open()) return place;
    ++place.size_global;
    ++place.halo_global[0];
    ++(is_first() ? place.halo_local[0] : place.start_global);
    return place;
}

std::vector<double> CellAxis::cell_bounds() const {
    std::vector<double> bounds;
    for (std::size_t i = written_.first; i < written_.first + written_.count; ++i) {
        bounds.push_back(axis_.faces[i]);
        bounds.push_back(axis_.faces[i + 1]);
    }
    return bounds;
}

std::vector<double> CellAxis::face_bounds() const {
    std::vector<double> bounds;
    const CellRun faces = written_faces();
    for (std::size_t i = faces.first; i < faces.first + faces.count; ++i) {
        bounds.push_back(i == 0 ? axis_.faces[i] : centres_[i - 1]);
        bounds.push_back(i == centres_.size() ? axis_.faces[i] : centres_[i]);
    }
    return bounds;
}

}  // namespace penstock::history
