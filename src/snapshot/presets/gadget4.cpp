// The layout of GADGET-4: numbers are scalars, counts have 64 bits, and each dataset of a known quantity tells how its
// unit is made.
#include <cmath>
#include <span>

#include "snapshot/presets/presets.hpp"

namespace penstock::snapshot {
namespace {

constexpr std::size_t kGadgetTypes = 6;

// Powers of the scale factor and of h in a stored value, and of the units of length, mass and velocity in its unit.
struct GadgetField {
    const char* name;
    double a, h, length, mass, velocity;
};
constexpr GadgetField kGadgetFields[] = {
    {"Coordinates", 1, -1, 1, 0, 0},   {"Velocities", 0.5, 0, 0, 0, 1},   {"Masses", 0, -1, 0, 1, 0},
    {"InternalEnergy", 0, 0, 0, 0, 2}, {"Density", -3, 2, -3, 1, 0},      {"SmoothingLength", 1, -1, 1, 0, 0},
    {"Potential", -1, 0, 0, 0, 2},     {"Acceleration", -2, 1, -1, 0, 2},
};

void describe_field(PresetParts& parts, const SnapshotPreset& preset, const std::string& path,
                    const GadgetField& field) {
    const double velocity = preset.unit_length_cm / preset.unit_time_s;
    const double to_cgs = std::pow(preset.unit_length_cm, field.length) * std::pow(preset.unit_mass_g, field.mass) *
                          std::pow(velocity, field.velocity);
    parts.add(path, snapshot_scalar("a_scaling", preset.is_cosmological ? field.a : 0.0));
    parts.add(path, snapshot_scalar("h_scaling", preset.is_cosmological ? field.h : 0.0));
    parts.add(path, snapshot_scalar("length_scaling", field.length));
    parts.add(path, snapshot_scalar("mass_scaling", field.mass));
    parts.add(path, snapshot_scalar("velocity_scaling", field.velocity));
    parts.add(path, snapshot_scalar("to_cgs", to_cgs));
}

void add_header(PresetParts& parts, const SnapshotPreset& preset, const std::vector<ParticleGroup>& groups) {
    const std::vector<std::uint64_t> counts = particles_by_type(groups, kGadgetTypes);
    std::vector<double> masses(preset.mass_table.begin(), preset.mass_table.end());
    masses.resize(counts.size());
    const std::string header = "Header";
    parts.add(header, snapshot_array("NumPart_ThisFile", std::span<const std::uint64_t>(counts)));
    parts.add(header, snapshot_array("NumPart_Total", std::span<const std::uint64_t>(counts)));
    parts.add(header, snapshot_array("MassTable", std::span<const double>(masses)));
    parts.add(header, snapshot_scalar("Time", preset.is_cosmological ? preset.scale_factor : preset.time));
    parts.add(header, snapshot_scalar("Redshift", preset.is_cosmological ? 1 / preset.scale_factor - 1 : 0.0));
    parts.add(header, snapshot_scalar("BoxSize", preset.box_size[0]));
    parts.add(header, snapshot_scalar("NumFilesPerSnapshot", std::int32_t{1}));
    parts.add(header, snapshot_text("Git_commit", preset.code_version));
    parts.add(header, snapshot_text("Git_date", preset.date));
}

void add_parameters(PresetParts& parts, const SnapshotPreset& preset) {
    const std::string parameters = "Parameters";
    parts.add(parameters, snapshot_scalar("BoxSize", preset.box_size[0]));
    parts.add(parameters, snapshot_scalar("ComovingIntegrationOn", std::int32_t{preset.is_cosmological}));
    parts.add(parameters, snapshot_scalar("HubbleParam", preset.hubble_param));
    parts.add(parameters, snapshot_scalar("Omega0", preset.omega_matter));
    parts.add(parameters, snapshot_scalar("OmegaLambda", preset.omega_lambda));
    parts.add(parameters, snapshot_scalar("OmegaBaryon", preset.omega_baryon));
    parts.add(parameters, snapshot_scalar("UnitLength_in_cm", preset.unit_length_cm));
    parts.add(parameters, snapshot_scalar("UnitMass_in_g", preset.unit_mass_g));
    parts.add(parameters, snapshot_scalar("UnitVelocity_in_cm_per_s", preset.unit_length_cm / preset.unit_time_s));
}

}  // namespace

PresetParts gadget4_parts(const SnapshotPreset& preset, const std::vector<ParticleGroup>& groups) {
    PresetParts parts;
    parts.groups = {"Header", "Config", "Parameters"};
    add_header(parts, preset, groups);
    add_parameters(parts, preset);
    for (const ParticleGroup& group : groups)
        for (const std::string& name : group.fields)
            for (const GadgetField& field : kGadgetFields)
                if (name == field.name) describe_field(parts, preset, group_path(group) + "/" + name, field);
    return parts;
}

}  // namespace penstock::snapshot
