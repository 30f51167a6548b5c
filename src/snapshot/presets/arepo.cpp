// The layout of AREPO: the header of GADGET-2 with units in it, and each dataset of a known quantity tells how its unit
// is made.
#include "snapshot/presets/gadget_family.hpp"

namespace penstock::snapshot {
namespace {

constexpr ScaledField kArepoFields[] = {
    {"Coordinates", 1, -1, 1, 0, 0},
    {"Velocities", 0.5, 0, 0, 0, 1},
    {"ParticleIDs", 0, 0, 0, 0, 0, false},
    {"Masses", 0, -1, 0, 1, 0},
    {"Potential", -1, 0, 0, 0, 2},
    {"InternalEnergy", 0, 0, 0, 0, 2},
    {"Density", -3, 2, -3, 1, 0},
    {"Pressure", -3, 2, -3, 1, 2},
    {"SoundSpeed", 0, 0, 0, 0, 1},
    {"Volume", 3, -3, 3, 0, 0},
    {"CenterOfMass", 1, -1, 1, 0, 0},
    {"Acceleration", -1, 1, -1, 0, 2},
    {"Softenings", 1, -1, 1, 0, 0},
    {"TimeStep", 0, -1, 1, 0, -1},
    {"ElectronAbundance", 0, 0, 0, 0, 0, false},
    {"NeutralHydrogenAbundance", 0, 0, 0, 0, 0, false},
};

}  // namespace

PresetParts arepo_parts(const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    const ParticleGroups& groups = subject.groups;
    PresetParts parts;
    parts.groups = {"Header", "Config", "Parameters"};
    add_gadget2_header(parts, subject);
    add_gadget2_flags(parts, groups);
    const std::string header = "Header";
    parts.add(header, snapshot_scalar("Omega0", preset.omega_matter));
    parts.add(header, snapshot_scalar("OmegaLambda", preset.omega_lambda));
    parts.add(header, snapshot_scalar("OmegaBaryon", preset.omega_baryon));
    parts.add(header, snapshot_scalar("Composition_vector_length", std::int32_t{0}));
    parts.add(header, snapshot_text("Git_commit", preset.code_version));
    parts.add(header, snapshot_text("Git_date", preset.date));
    parts.add(header, snapshot_scalar("UnitLength_in_cm", preset.unit_length_cm));
    parts.add(header, snapshot_scalar("UnitMass_in_g", preset.unit_mass_g));
    parts.add(header, snapshot_scalar("UnitVelocity_in_cm_per_s", preset.unit_length_cm / preset.unit_time_s));
    parts.add("Parameters", snapshot_scalar("ComovingIntegrationOn", std::int32_t{preset.is_cosmological}));
    parts.add("Config", snapshot_text("VORONOI", ""));  // an option of the code, by which yt knows its files
    describe_scaled(parts, subject, kArepoFields);
    return parts;
}

}  // namespace penstock::snapshot
