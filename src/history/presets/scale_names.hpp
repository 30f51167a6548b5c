// What SCALE-RM calls its coordinates, and what it says of fields on each of its staggered grids.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace penstock::history {

// A constant over the grid that the caller may define: what the model says of it.
struct ScaleCoordinate {
    const char* name;
    const char* long_name;
    const char* units;
    const char* standard_name;  // null: none
};
std::span<const ScaleCoordinate> scale_coordinates();

// What decides about the grid of a field: its dimensions.
struct ScaleStagger {
    bool has_x = false, has_y = false;          // either kind
    bool is_x_face = false, is_y_face = false;  // xh, yh
    bool has_z = false, is_z_face = false;      // z or zh
    char layers = 0;                            // 'o', 'l', 'u': of ocean, land or urban canopy; 'p': pressure
    bool is_horizontal() const noexcept { return has_x && has_y; }
    std::string suffix() const;    // of coordinates of longitude and latitude: "", "_uy", "_xv", "_uv"
    std::string height() const;    // the name of the height; empty: there is none
    std::string volume() const;    // of the cells; empty: there is none
    const char* location() const;  // on the grid
    const char* grid() const;      // the name of its description
};
ScaleStagger stagger_of(const std::vector<std::string>& dimensions);

}  // namespace penstock::history
