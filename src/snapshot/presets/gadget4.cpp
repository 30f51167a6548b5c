// The layout of GADGET-4: numbers are scalars, counts have 64 bits, and each dataset of a known quantity tells how its
// unit is made.
#include <span>

#include "snapshot/presets/gadget_family.hpp"

namespace penstock::snapshot {
namespace {

constexpr std::size_t kGadgetTypes = 6;

constexpr ScaledField kGadgetFields[] = {
    {"Coordinates", 1, -1, 1, 0, 0},   {"Velocities", 0.5, 0, 0, 0, 1},   {"Masses", 0, -1, 0, 1, 0},
    {"InternalEnergy", 0, 0, 0, 0, 2}, {"Density", -3, 2, -3, 1, 0},      {"SmoothingLength", 1, -1, 1, 0, 0},
    {"Potential", -1, 0, 0, 0, 2},     {"Acceleration", -2, 1, -1, 0, 2},
};

void add_header(PresetParts& parts, const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    const ParticleCounts counts = particles_by_type(subject.groups, kGadgetTypes);
    std::vector<double> masses(preset.mass_table.begin(), preset.mass_table.end());
    masses.resize(counts.here.size());
    const std::string header = "Header";
    parts.add(header, snapshot_array("NumPart_ThisFile", std::span<const std::uint64_t>(counts.here)));
    parts.add(header, snapshot_array("NumPart_Total", std::span<const std::uint64_t>(counts.all)));
    parts.add(header, snapshot_array("MassTable", std::span<const double>(masses)));
    parts.add(header, snapshot_scalar("Time", preset.is_cosmological ? preset.scale_factor : preset.time));
    parts.add(header, snapshot_scalar("Redshift", preset.is_cosmological ? 1 / preset.scale_factor - 1 : 0.0));
    parts.add(header, snapshot_scalar("BoxSize", preset.box_size[0]));
    parts.add(header, snapshot_scalar("NumFilesPerSnapshot", static_cast<std::int32_t>(subject.files)));
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

PresetParts gadget4_parts(const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    PresetParts parts;
    parts.groups = {"Header", "Config", "Parameters"};
    add_header(parts, subject);
    add_parameters(parts, preset);
    describe_scaled(parts, subject, kGadgetFields);
    return parts;
}

}  // namespace penstock::snapshot
