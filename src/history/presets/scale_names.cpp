// See scale_names.hpp.
#include "history/presets/scale_names.hpp"

namespace penstock::history {
namespace {

constexpr const char* kHeight = "height above ground level";
constexpr ScaleCoordinate kCoordinates[] = {
    {"height", kHeight, "m", nullptr},
    {"height_xyw", "height above ground level (half level xyw)", "m", nullptr},
    {"height_uyz", "height above ground level (half level uyz)", "m", nullptr},
    {"height_xvz", "height above ground level (half level xvz)", "m", nullptr},
    {"height_uvz", "height above ground level (half level uvz)", "m", nullptr},
    {"height_uyw", "height above ground level (half level uyw)", "m", nullptr},
    {"height_xvw", "height above ground level (half level xvw)", "m", nullptr},
    {"height_uvw", "height above ground level (half level uvw)", "m", nullptr},
    {"lon", "longitude", "degrees_east", nullptr},
    {"lon_uy", "longitude (half level uy)", "degrees_east", nullptr},
    {"lon_xv", "longitude (half level xv)", "degrees_east", nullptr},
    {"lon_uv", "longitude (half level uv)", "degrees_east", nullptr},
    {"lat", "latitude", "degrees_north", nullptr},
    {"lat_uy", "latitude (half level uy)", "degrees_north", nullptr},
    {"lat_xv", "latitude (half level xv)", "degrees_north", nullptr},
    {"lat_uv", "latitude (half level uv)", "degrees_north", nullptr},
    {"topo", "topography", "m", nullptr},
    {"lsmask", "fraction for land-sea mask", "1", nullptr},
    {"cell_area", "area of grid cell", "m2", "area"},
    {"cell_area_uy", "area of grid cell (half level uy)", "m2", "area"},
    {"cell_area_xv", "area of grid cell (half level xv)", "m2", "area"},
    {"cell_area_uyz_x", "area of grid cell face (half level uyz, normal x)", "m2", "area"},
    {"cell_area_xvz_y", "area of grid cell face (half level xvz, normal y)", "m2", "area"},
    {"cell_area_uyw_x", "area of grid cell face (half level uyw, normal x)", "m2", "area"},
    {"cell_area_xvw_y", "area of grid cell face (half level xvw, normal y)", "m2", "area"},
    {"cell_area_xyz_x", "area of grid cell face (half level xyz, normal x)", "m2", "area"},
    {"cell_area_xyz_y", "area of grid cell face (half level xyz, normal y)", "m2", "area"},
    {"cell_area_uvz_x", "area of grid cell face (half level uvz, normal x)", "m2", "area"},
    {"cell_area_uvz_y", "area of grid cell face (half level uvz, normal y)", "m2", "area"},
    {"cell_volume", "volume of grid cell", "m3", "volume"},
    {"cell_volume_xyw", "volume of grid cell (half level xyw)", "m3", "volume"},
    {"cell_volume_uyz", "volume of grid cell (half level uyz)", "m3", "volume"},
    {"cell_volume_xvz", "volume of grid cell (half level xvz)", "m3", "volume"},
    {"cell_volume_xyo", "volume of grid cell", "m3", "volume"},
    {"cell_volume_xyl", "volume of grid cell", "m3", "volume"},
    {"cell_volume_xyu", "volume of grid cell", "m3", "volume"}};

}  // namespace

std::span<const ScaleCoordinate> scale_coordinates() { return kCoordinates; }

std::string ScaleStagger::suffix() const {
    if (is_x_face) return is_y_face ? "_uv" : "_uy";
    return is_y_face ? "_xv" : "";
}

std::string ScaleStagger::height() const {
    if (!has_z) return {};
    const std::string level = is_z_face ? "w" : "z";
    if (suffix().empty()) return is_z_face ? "height_xyw" : "height";
    return "height" + suffix() + level;
}

std::string ScaleStagger::volume() const {
    if (layers == 'o' || layers == 'l' || layers == 'u') return std::string("cell_volume_xy") + layers;
    if (!has_z) return {};
    if (suffix().empty()) return is_z_face ? "cell_volume_xyw" : "cell_volume";
    return is_z_face ? std::string() : "cell_volume" + suffix() + "z";
}

const char* ScaleStagger::location() const {
    if (is_x_face) return is_y_face ? "node" : "edge1";
    return is_y_face ? "edge2" : "face";
}

const char* ScaleStagger::grid() const {
    switch (layers) {
        case 'o':
            return "grid_ocean";
        case 'l':
            return "grid_land";
        case 'u':
            return "grid_urban";
        case 'p':
            return "grid_pressure";
        default:
            return "grid";
    }
}

ScaleStagger stagger_of(const std::vector<std::string>& dimensions) {
    ScaleStagger found;
    for (const std::string& one : dimensions) {
        const bool is_face = one.size() > 1 && one.back() == 'h';
        const std::string plain = is_face ? one.substr(0, one.size() - 1) : one;
        if (plain == "x") {
            found.has_x = true;
            found.is_x_face = is_face;
        } else if (plain == "y") {
            found.has_y = true;
            found.is_y_face = is_face;
        } else if (plain == "z") {
            found.has_z = true;
            found.is_z_face = is_face;
        } else if (plain == "oz" || plain == "lz" || plain == "uz") {
            found.layers = plain.front();
        } else if (plain == "pressure") {
            found.layers = 'p';
        }
    }
    return found;
}

}  // namespace penstock::history
