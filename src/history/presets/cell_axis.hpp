// Positions along one dimension of a grid of cells: of the whole domain with its halo, and of the part of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/history.hpp"

namespace penstock::history {

// Centres of the cells between these faces.
std::vector<double> centres_of(const std::vector<double>& faces);
std::vector<double> differences_of(const std::vector<double>& positions);

// A run of elements: the number of the first one, and how many there are.
struct CellRun {
    std::size_t first = 0, count = 0;
};

// What a coordinate that is shared out says of itself, besides its values.
struct SharedPlace {
    std::int32_t size_global = 0, start_global = 0;  // counted from 1
    std::int32_t halo_global[2]{}, halo_local[2]{};
};

class CellAxis {
  public:
    // `place`: of this process among those along the axis. Throws Error{invalid_argument} of numbers that make no grid.
    CellAxis(std::string name, const HistoryGridAxis& axis, std::uint32_t place, bool has_boundary);

    std::size_t cells() const noexcept { return cells_; }  // of the domain, without halo
    const HistoryGridAxis& told() const noexcept { return axis_; }
    const std::vector<double>& centres() const noexcept { return centres_; }  // of the domain, with its halo
    // Those of this process, with its halo: cells count from 0, and face i is the one before cell i.
    CellRun own_cells() const noexcept { return {place_ * each_, each_ + 2 * axis_.halo}; }
    // Those that fields have, by their number in the domain with its halo.
    CellRun written_cells() const noexcept { return written_; }
    // Faces behind these cells, and the one before the first where no other process has it.
    CellRun written_faces() const noexcept;
    SharedPlace place_of_cells() const noexcept;
    SharedPlace place_of_faces() const noexcept;
    // Two numbers for each: faces of cells, and centres of cells beside faces; a face itself where there is no cell.
    std::vector<double> cell_bounds() const;
    std::vector<double> face_bounds() const;

  private:
    bool is_open() const noexcept { return !axis_.is_periodic && !has_boundary_; }
    bool is_first() const noexcept { return place_ == 0; }
    bool is_last() const noexcept { return place_ + 1 == axis_.processes; }

    std::string name_;
    const HistoryGridAxis& axis_;
    std::size_t place_, cells_ = 0, each_ = 0;
    bool has_boundary_;
    std::vector<double> centres_;
    CellRun written_;
};

std::vector<double> part_of(const std::vector<double>& all, CellRun run);

}  // namespace penstock::history
