// See scale.hpp. First coordinates, then what is said of the file, of constants and of fields.
#include "history/presets/scale.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/faults.hpp"
#include "history/attributes.hpp"
#include "history/presets/cell_axis.hpp"
#include "history/presets/scale_names.hpp"

namespace penstock::history {
namespace {

constexpr double kMissing = -9.9999e30;

HistoryAttribute words(std::string name, std::string text) { return {std::move(name), {}, std::move(text), {}}; }

HistoryAttribute whole(std::string name, std::vector<double> numbers) {
    return {std::move(name), "int32", {}, std::move(numbers)};
}

HistoryAttribute yes_or_no(std::string name, bool holds) { return words(std::move(name), holds ? "true" : "false"); }

// Attributes of one owner: those that are there already stay.
class Told {
  public:
    explicit Told(std::vector<HistoryAttribute>& attributes) : attributes_(attributes) {}
    Told& add(HistoryAttribute one) {
        if (!has_attribute(attributes_, one.name)) attributes_.push_back(std::move(one));
        return *this;
    }
    Told& add_text(const char* name, const std::string& text) { return text.empty() ? *this : add(words(name, text)); }

  private:
    std::vector<HistoryAttribute>& attributes_;
};

class ScaleFile {
  public:
    ScaleFile(Definitions& all, const HistoryPreset& preset, const HistoryOptions& options)
        : all_(all),
          preset_(preset),
          options_(options),
          x_("x", preset.x, preset.process % preset.x.processes, preset.has_boundary),
          y_("y", preset.y, preset.process / preset.x.processes, preset.has_boundary),
          z_("z", preset.z, 0, false) {}

    void add_vertical();
    void add_horizontals() {
        add_horizontal("x", x_);
        add_horizontal("y", y_);
    }
    void add_layers(char letter, const char* of, const std::vector<double>& faces);
    void add_pressures();
    void add_grids();
    void describe_file();
    void describe_constants();
    void describe_fields();

  private:
    struct Coordinate {
        std::string name, long_name, units = "m";
        std::string dimension{};  // empty: that of its name
        bool is_down = false;
    };
    void add_horizontal(const std::string& letter, const CellAxis& axis);
    HistoryConstant* find(const std::string& name);
    Told constant(const std::string& name, std::vector<std::string> dimensions, std::vector<std::uint64_t> shape,
                  std::vector<std::byte> values);
    Told coordinate(const Coordinate& one, const std::vector<double>& values);
    void bound(const std::string& name, const std::vector<double>& bounds);
    void place(const std::string& name, const SharedPlace& place, bool is_periodic);
    void add_vectors(const std::string& letter, const CellAxis& axis, const std::string& global);
    Told scalar(const std::string& name);
    void add_grid(const std::string& name, const std::string& vertical);
    std::string present(const std::vector<std::string>& names);
    void describe_field(HistoryVariable& field);

    Definitions& all_;
    const HistoryPreset& preset_;
    const HistoryOptions& options_;
    CellAxis x_, y_, z_;
};

HistoryConstant* ScaleFile::find(const std::string& name) {
    const auto found = std::find_if(all_.constants.begin(), all_.constants.end(),
                                    [&](const HistoryConstant& one) { return one.name == name; });
    return found == all_.constants.end() ? nullptr : &*found;
}

Told ScaleFile::constant(const std::string& name, std::vector<std::string> dimensions, std::vector<std::uint64_t> shape,
                         std::vector<std::byte> values) {
    HistoryConstant* one = find(name);
    if (one == nullptr) {
        all_.constants.push_back({name, std::move(dimensions), std::move(shape), "float64", std::move(values), {}});
        one = &all_.constants.back();
    }
    return Told(one->attributes);
}

std::vector<std::byte> bytes_of(const std::vector<double>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

Told ScaleFile::coordinate(const Coordinate& one, const std::vector<double>& values) {
    Told told =
        constant(one.name, {one.dimension.empty() ? one.name : one.dimension}, {values.size()}, bytes_of(values));
    told.add(words("long_name", one.long_name)).add(words("units", one.units));
    if (one.is_down) told.add(words("positive", "down"));
    return told;
}

// Values of bounds have no attributes, as the conventions have it.
void ScaleFile::bound(const std::string& name, const std::vector<double>& bounds) {
    Told(find(name)->attributes).add(words("bounds", name + "_bnds"));
    constant(name + "_bnds", {name, "nv"}, {bounds.size() / 2, 2}, bytes_of(bounds));
}

void ScaleFile::place(const std::string& name, const SharedPlace& place, bool is_periodic) {
    const auto pair = [](const std::int32_t(&two)[2]) { return std::vector<double>(std::begin(two), std::end(two)); };
    Told told(find(name)->attributes);
    told.add(whole("size_global", {double(place.size_global)}))
        .add(whole("start_global", {double(place.start_global)}));
    told.add(whole("halo_global", pair(place.halo_global))).add(whole("halo_local", pair(place.halo_local)));
    told.add(yes_or_no("periodic", is_periodic));
    if (!preset_.mapping.empty()) {
        told.add(words("standard_name", std::string("projection_") + name.front() + "_coordinate"));
    }
}

void ScaleFile::add_vertical() {
    coordinate({"z", "Z"}, part_of(z_.centres(), z_.written_cells()));
    coordinate({"zh", "Z (half level)"}, part_of(z_.told().faces, z_.written_faces()));
    bound("z", z_.cell_bounds());
    bound("zh", z_.face_bounds());
    const std::vector<double>&faces = z_.told().faces, &centres = z_.centres();
    coordinate({"CZ", "Atmos Grid Center Position Z"}, centres);
    coordinate({"FZ", "Atmos Grid Face Position Z"}, faces);
    coordinate({"CDZ", "Grid Cell length Z", "m", "CZ"}, differences_of(faces));
    if (centres.size() > 1) coordinate({"FDZ", "Grid distance Z"}, differences_of(centres));
    const HistoryGridAxis& told = z_.told();
    const auto factors = [](const std::vector<double>& given, std::size_t count) {
        return given.empty() ? std::vector<double>(count) : given;
    };
    coordinate({"CBFZ", "Boundary factor Center Z", "1", "CZ"}, factors(told.centre_factors, centres.size()));
    coordinate({"FBFZ", "Boundary factor Face Z", "1", "FZ"}, factors(told.face_factors, faces.size()));
}

void ScaleFile::add_horizontal(const std::string& letter, const CellAxis& axis) {
    const std::string upper(1, letter == "x" ? 'X' : 'Y');
    coordinate({letter, upper}, part_of(axis.centres(), axis.written_cells()));
    coordinate({letter + "h", upper + " (half level)"}, part_of(axis.told().faces, axis.written_faces()));
    bound(letter, axis.cell_bounds());
    bound(letter + "h", axis.face_bounds());
    place(letter, axis.place_of_cells(), axis.told().is_periodic);
    place(letter + "h", axis.place_of_faces(), axis.told().is_periodic);
    add_vectors(upper, axis, "");
    add_vectors(upper, axis, "G");
}

// Positions and lengths, with the halo: of this process's cells, or, where `global` is a letter, of all.
void ScaleFile::add_vectors(const std::string& letter, const CellAxis& axis, const std::string& global) {
    const bool is_own = global.empty();
    const std::vector<double>&faces = axis.told().faces, &centres = axis.centres();
    const CellRun cells = is_own ? axis.own_cells() : CellRun{0, centres.size()};
    const CellRun edges{cells.first, cells.count + 1};
    const std::string grid = is_own ? "Atmos Grid" : "Grid", end = is_own ? "" : " (global)";
    const std::string centre = "C" + letter + global, face = "F" + letter + global;
    std::vector<double> between = differences_of(centres);  // of faces, which at both ends of the domain have none
    between.insert(between.begin(), kMissing);
    between.push_back(kMissing);
    const auto factors = [](const std::vector<double>& given, CellRun run) {
        return given.empty() ? std::vector<double>(run.count) : part_of(given, run);
    };
    const auto named = [&](const char* prefix) { return prefix + letter + global; };
    coordinate({centre, grid + " Center Position " + letter + end}, part_of(centres, cells));
    coordinate({face, grid + " Face Position " + letter + end}, part_of(faces, edges));
    coordinate({named("CD"), "Grid Cell length " + letter + end, "m", centre}, part_of(differences_of(faces), cells));
    coordinate({named("FD"), "Grid distance " + letter + end, "m", is_own ? face : named("FD")},
               part_of(between, edges))
        .add({"missing_value", "float64", {}, {kMissing}});
    coordinate({named("CBF"), "Boundary factor Center " + letter + end, "1", centre},
               factors(axis.told().centre_factors, cells));
    coordinate({named("FBF"), "Boundary factor Face " + letter + end, "1", face},
               factors(axis.told().face_factors, edges));
}

void ScaleFile::add_layers(char letter, const char* of, const std::vector<double>& faces) {
    if (faces.empty()) return;
    HistoryGridAxis told;
    told.faces = faces;
    const std::string small(1, letter), large(1, static_cast<char>(letter - 'a' + 'A'));
    const CellAxis axis(small + "z", told, 0, false);
    const std::string grid = std::string(of) + " Grid ";
    coordinate({small + "z", large + "Z", "m", {}, true}, axis.centres());
    coordinate({small + "zh", large + "Z (half level)", "m", {}, true}, faces);
    bound(small + "z", axis.cell_bounds());
    bound(small + "zh", axis.face_bounds());
    coordinate({large + "CZ", grid + "Center Position Z", "m", {}, true}, axis.centres());
    coordinate({large + "FZ", grid + "Face Position Z", "m", {}, true}, faces);
    coordinate({large + "CDZ", grid + "Cell length Z", "m", large + "CZ"}, differences_of(faces));
}

void ScaleFile::add_pressures() {
    if (preset_.pressures_hpa.empty()) return;
    coordinate({"pressure", "Pressure", "hPa", {}, true}, preset_.pressures_hpa);
}

Told ScaleFile::scalar(const std::string& name) {
    Told told = constant(name, {}, {}, std::vector<std::byte>(sizeof(std::int32_t)));
    find(name)->dtype = "int32";
    return told;
}

// Those of these names that the caller defined, with spaces between them.
std::string ScaleFile::present(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& one : names) {
        if (find(one) != nullptr) all += (all.empty() ? "" : " ") + one;
    }
    return all;
}

void ScaleFile::add_grid(const std::string& name, const std::string& vertical) {
    Told told = scalar(name);
    told.add(words("cf_role", "grid_topology")).add(whole("topology_dimension", {2}));
    told.add(words("node_dimensions", "xh yh"));
    told.add(words("face_dimensions", "x: xh (padding: none) y: yh (padding: none)"));
    const std::pair<const char*, const char*> places[] = {{"node_coordinates", "_uv"},
                                                          {"face_coordinates", ""},
                                                          {"edge1_coordinates", "_uy"},
                                                          {"edge2_coordinates", "_xv"}};
    for (const auto& [attribute, suffix] : places) {
        told.add_text(attribute, present({std::string("lon") + suffix, std::string("lat") + suffix}));
    }
    told.add(words("vertical_dimensions", vertical));
}

void ScaleFile::add_grids() {
    add_grid("grid", "z: zh (padding: none)");
    if (!preset_.ocean_faces.empty()) add_grid("grid_ocean", "oz: ozh (padding: none)");
    if (!preset_.land_faces.empty()) add_grid("grid_land", "lz: lzh (padding: none)");
    if (!preset_.urban_faces.empty()) add_grid("grid_urban", "uz: uzh (padding: none)");
    if (!preset_.pressures_hpa.empty()) add_grid("grid_pressure", "pressure");
    for (const std::string& end : {std::string(), std::string("G")}) {
        Told told = scalar(end.empty() ? "grid_model" : "grid_model_global");
        told.add(words("cf_role", "grid_topology")).add(whole("topology_dimension", {2}));
        told.add(words("node_dimensions", "FX" + end + " FY" + end));
        told.add(words("face_dimensions",
                       "CX" + end + ": FY" + end + " (padding: none) CY" + end + ": FY" + end + " (padding: none)"));
        told.add(words("vertical_dimensions", "CZ: FZ (padding: none)"));
    }
    if (preset_.mapping.empty()) return;
    scalar(preset_.mapping).add(words("grid_mapping_name", preset_.mapping));
}

void ScaleFile::describe_file() {
    Told file(all_.attributes);
    file.add(words("Conventions", "CF-1.6")).add_text("title", preset_.title).add_text("source", preset_.source);
    file.add_text("institution", preset_.institution).add(words("grid_name", "cartesC"));
    const auto number = [&](const std::string& name, std::size_t value) {
        file.add(whole("scale_" + name, {static_cast<double>(value)}));
    };
    file.add(whole("rankid", {double(preset_.process)}));
    number("cartesC_prc_rank_x", preset_.process % preset_.x.processes);
    number("cartesC_prc_rank_y", preset_.process / preset_.x.processes);
    number("cartesC_prc_num_x", preset_.x.processes);
    number("cartesC_prc_num_y", preset_.y.processes);
    file.add(yes_or_no("scale_cartesC_prc_periodic_z", false));
    file.add(yes_or_no("scale_cartesC_prc_periodic_x", preset_.x.is_periodic));
    file.add(yes_or_no("scale_cartesC_prc_periodic_y", preset_.y.is_periodic));
    number("atmos_grid_cartesC_index_imaxg", x_.cells());
    number("atmos_grid_cartesC_index_jmaxg", y_.cells());
    number("atmos_grid_cartesC_index_kmax", z_.cells());
    if (!preset_.ocean_faces.empty()) number("ocean_grid_cartesC_index_kmax", preset_.ocean_faces.size() - 1);
    if (!preset_.land_faces.empty()) number("land_grid_cartesC_index_kmax", preset_.land_faces.size() - 1);
    if (!preset_.urban_faces.empty()) number("urban_grid_cartesC_index_kmax", preset_.urban_faces.size() - 1);
    number("atmos_grid_cartesC_index_khalo", preset_.z.halo);
    number("atmos_grid_cartesC_index_ihalo", preset_.x.halo);
    number("atmos_grid_cartesC_index_jhalo", preset_.y.halo);
    file.add_text("time_units", options_.time_units).add({"time_start", "float64", {}, {options_.start_time}});
    file.add_text("calendar", options_.calendar);
    Told(all_.time_attributes).add(words("long_name", "time"));
    all_.has_bounds = true;
}

void ScaleFile::describe_constants() {
    for (const ScaleCoordinate& known : scale_coordinates()) {
        HistoryConstant* one = find(known.name);
        if (one == nullptr) continue;
        Told told(one->attributes);
        told.add(words("long_name", known.long_name)).add(words("units", known.units));
        if (known.standard_name != nullptr) told.add(words("standard_name", known.standard_name));
    }
}

void ScaleFile::describe_field(HistoryVariable& field) {
    Told told(field.attributes);
    if (field.dtype == "float32" || field.dtype == "float64") {
        told.add({"_FillValue", field.dtype, {}, {kMissing}}).add({"missing_value", field.dtype, {}, {kMissing}});
    }
    const ScaleStagger stagger = stagger_of(field.dimensions);
    if (!stagger.is_horizontal()) return;
    const std::string suffix = stagger.suffix();
    std::string coordinates = present({"lon" + suffix, "lat" + suffix, stagger.height()});
    if (!coordinates.empty()) told.add(words("coordinates", coordinates + " time"));
    std::string measures;
    const std::string area = "cell_area" + suffix, volume = stagger.volume();
    if (find(area) != nullptr) measures = "area: " + area;
    if (!volume.empty() && find(volume) != nullptr) measures += (measures.empty() ? "volume: " : " volume: ") + volume;
    told.add_text("cell_measures", measures).add_text("grid_mapping", preset_.mapping);
    told.add(words("grid", stagger.grid())).add(words("location", stagger.location()));
}

void ScaleFile::describe_fields() {
    for (HistoryVariable& field : all_.variables) describe_field(field);
}

void check_preset(const HistoryPreset& preset) {
    const auto refuse_preset = [](std::string cause, std::string advice) {
        throw Error(ErrorCode::invalid_argument, "use preset", std::move(cause), std::move(advice));
    };
    if (preset.layout != "scale") {
        refuse_preset("there is no layout " + formats::shown(preset.layout) + " of histories", "use scale");
    }
    const std::uint64_t processes = std::uint64_t{preset.x.processes} * preset.y.processes;
    if (preset.process >= processes) {
        refuse_preset("this is process " + std::to_string(preset.process) + " of " + std::to_string(processes),
                      "numbers go from 0 to one less than the processes along x and y");
    }
    if (preset.z.processes != 1) {
        refuse_preset("z is shared out over " + std::to_string(preset.z.processes) + " processes", "share out x and y");
    }
}

}  // namespace

void add_scale(Definitions& all, const HistoryPreset& preset, const HistoryOptions& options) {
    check_preset(preset);
    ScaleFile file(all, preset, options);
    file.add_vertical();
    file.add_pressures();
    file.add_layers('o', "Ocean", preset.ocean_faces);
    file.add_layers('l', "Land", preset.land_faces);
    file.add_layers('u', "Urban", preset.urban_faces);
    file.add_horizontals();
    file.add_grids();
    file.describe_file();
    file.describe_constants();
    file.describe_fields();
}

}  // namespace penstock::history
