// The layout of SWIFT: every number is an array, of length 1 where it is one value; text has a fixed length; groups of
// particles have a second name; each dataset tells its unit in powers, as a factor and in words.
#include <array>
#include <cmath>
#include <cstdio>

#include "snapshot/presets/presets.hpp"

namespace penstock::snapshot {
namespace {

constexpr std::size_t kSwiftTypes = 7;
constexpr const char* kTypeNames[kSwiftTypes] = {"Gas", "DM", "DMBackground", "Sink", "Stars", "BH", "Neutrino"};

// Powers of the units in the unit of a quantity, and of the scale factor in a stored value.
struct SwiftField {
    const char* name;
    const char* description;
    float mass, length, time, current, temperature, a;
};
constexpr SwiftField kSwiftFields[] = {
    {"Coordinates", "Co-moving positions of the particles", 0, 1, 0, 0, 0, 1},
    {"Velocities", "Peculiar velocities of the particles", 0, 1, -1, 0, 0, 0},
    {"Masses", "Masses of the particles", 1, 0, 0, 0, 0, 0},
    {"ParticleIDs", "Unique IDs of the particles", 0, 0, 0, 0, 0, 0},
    {"SmoothingLengths", "Co-moving smoothing lengths of the particles", 0, 1, 0, 0, 0, 1},
    {"Softenings", "Co-moving gravitational softening lengths of the particles", 0, 1, 0, 0, 0, 1},
    {"InternalEnergies", "Co-moving thermal energies per unit mass of the particles", 0, 2, -2, 0, 0, -2},
    {"Densities", "Co-moving mass densities of the particles", 1, -3, 0, 0, 0, -3},
    {"Entropies", "Co-moving entropies per unit mass of the particles", -2.0F / 3, 4, -2, 0, 0, 0},
    {"Pressures", "Co-moving pressures of the particles", 1, -1, -2, 0, 0, -5},
    {"Potentials", "Co-moving gravitational potential at position of the particles", 0, 2, -2, 0, 0, -1},
    {"Temperatures", "Temperatures of the gas particles", 0, 0, 0, 0, 1, 0},
    {"FOFGroupIDs", "Friends-Of-Friends ID of the group each particle belongs to", 0, 0, 0, 0, 0, 0},
};

template <typename Number>
SnapshotAttribute one(const char* name, Number value) {
    return snapshot_array(name, {value});
}

std::string power(const char* unit, float exponent) {
    if (exponent == 0) return {};
    char text[48];
    std::snprintf(text, sizeof(text), exponent == 1 ? "%s " : "%s^%.4g ", unit, static_cast<double>(exponent));
    return text;
}

// As "a^-3 U_M U_L^-3  [ g cm^-3 ]".
std::string expression(const SwiftField& field) {
    const std::string internal = power("U_M", field.mass) + power("U_L", field.length) + power("U_t", field.time) +
                                 power("U_I", field.current) + power("U_T", field.temperature);
    const std::string cgs = power("g", field.mass) + power("cm", field.length) + power("s", field.time) +
                            power("A", field.current) + power("K", field.temperature);
    return power("a", field.a) + internal + " [ " + (cgs.empty() ? "- " : cgs) + "]";
}

void describe_field(PresetParts& parts, const SnapshotPreset& preset, const std::string& path,
                    const SwiftField& field) {
    const double factor = std::pow(preset.unit_mass_g, field.mass) * std::pow(preset.unit_length_cm, field.length) *
                          std::pow(preset.unit_time_s, field.time);
    parts.add(path, one("U_M exponent", field.mass));
    parts.add(path, one("U_L exponent", field.length));
    parts.add(path, one("U_t exponent", field.time));
    parts.add(path, one("U_I exponent", field.current));
    parts.add(path, one("U_T exponent", field.temperature));
    parts.add(path, one("h-scale exponent", 0.0F));
    parts.add(path, one("a-scale exponent", field.a));
    parts.add(path, snapshot_text("Expression for physical CGS units", expression(field)));
    parts.add(path, snapshot_text("Lossy compression filter", "None"));
    parts.add(path, one("Value stored as physical", std::int32_t{0}));
    parts.add(path, one("Property can be converted to comoving", std::int32_t{1}));
    parts.add(path, one("Conversion factor to CGS (not including cosmological corrections)", factor));
    parts.add(path, one("Conversion factor to physical CGS (including cosmological corrections)",
                        factor * std::pow(preset.scale_factor, static_cast<double>(field.a))));
    parts.add(path, snapshot_text("Description", field.description));
}

void add_counts(PresetParts& parts, const PresetSubject& subject) {
    const ParticleCounts particles = particles_by_type(subject.groups, kSwiftTypes);
    const std::vector<std::int64_t> here(particles.here.begin(), particles.here.end());
    const std::vector<std::int64_t> all(particles.all.begin(), particles.all.end());
    std::vector<std::uint32_t> low, high;
    for (const std::uint64_t count : particles.all) {
        low.push_back(static_cast<std::uint32_t>(count));
        high.push_back(static_cast<std::uint32_t>(count >> 32));
    }
    std::array<std::int32_t, kSwiftTypes> is_there{};
    for (const ParticleGroup& group : subject.groups) is_there.at(group.type) = 1;
    const std::array<double, kSwiftTypes> no_masses{};
    const std::array<std::uint32_t, kSwiftTypes> no_flags{};
    const std::string header = "Header";
    parts.add(header, snapshot_array("NumPart_ThisFile", std::span<const std::int64_t>(here)));
    parts.add(header, snapshot_array("NumPart_Total", std::span<const std::uint32_t>(low)));
    parts.add(header, snapshot_array("NumPart_Total_HighWord", std::span<const std::uint32_t>(high)));
    parts.add(header, snapshot_array("TotalNumberOfParticles", std::span<const std::int64_t>(all)));
    parts.add(header, snapshot_array("MassTable", std::span<const double>(no_masses)));
    parts.add(header, snapshot_array("InitialMassTable", std::span<const double>(subject.preset.mass_table)));
    parts.add(header, snapshot_array("Flag_Entropy_ICs", std::span<const std::uint32_t>(no_flags)));
    parts.add(header, snapshot_array("CanHaveTypes", std::span<const std::int32_t>(is_there)));
    parts.add(header, one("NumPartTypes", static_cast<std::int32_t>(kSwiftTypes)));
    SnapshotAttribute names;
    names.name = "PartTypeNames";
    names.shape = {kSwiftTypes};
    names.texts.assign(std::begin(kTypeNames), std::end(kTypeNames));
    parts.add(header, std::move(names));
}

void add_swift_header(PresetParts& parts, const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    const std::string header = "Header";
    const std::array<double, 3> no_shift{};
    parts.add(header, snapshot_array("BoxSize", std::span<const double>(preset.box_size)));
    parts.add(header, one("Time", preset.time));
    parts.add(header, one("Dimension", std::int32_t{3}));
    parts.add(header, one("Redshift", 1 / preset.scale_factor - 1));
    parts.add(header, one("Scale-factor", preset.scale_factor));
    parts.add(header, snapshot_text("Code", "SWIFT"));
    parts.add(header, snapshot_text("RunName", preset.run_name));
    parts.add(header, snapshot_text("System", preset.system));
    parts.add(header, snapshot_array("Shift", std::span<const double>(no_shift)));
    parts.add(header, one("TimeBase_dloga", 0.0));
    parts.add(header, one("TimeBase_dt", 0.0));
    parts.add(header, snapshot_text("SnapshotDate", preset.date));
    parts.add(header, one("NumFilesPerSnapshot", static_cast<std::int32_t>(subject.files)));
    parts.add(header, one("ThisFile", static_cast<std::int32_t>(subject.file)));
    parts.add(header, one("Virtual", std::int32_t{subject.is_virtual}));
    parts.add(header, snapshot_text("SelectOutput", "Default"));
    parts.add(header, snapshot_text("OutputType", "FullVolume"));
}

void add_units(PresetParts& parts, const SnapshotPreset& preset) {
    for (const char* path : {"Units", "InternalCodeUnits"}) {
        parts.add(path, one("Unit mass in cgs (U_M)", preset.unit_mass_g));
        parts.add(path, one("Unit length in cgs (U_L)", preset.unit_length_cm));
        parts.add(path, one("Unit time in cgs (U_t)", preset.unit_time_s));
        parts.add(path, one("Unit current in cgs (U_I)", 1.0));
        parts.add(path, one("Unit temperature in cgs (U_T)", 1.0));
    }
}

void add_cosmology(PresetParts& parts, const SnapshotPreset& preset) {
    constexpr double kHundredKmPerSecondAndMpc = 3.2407792894443648e-18;  // in 1/s
    const std::string cosmology = "Cosmology";
    const std::int32_t is_cosmological = preset.is_cosmological ? 1 : 0;
    parts.add(cosmology, one("Cosmological run", is_cosmological));
    parts.add("Policy", one("cosmological integration", is_cosmological));
    if (!preset.is_cosmological) return;
    parts.add(cosmology, one("Redshift", 1 / preset.scale_factor - 1));
    parts.add(cosmology, one("Scale-factor", preset.scale_factor));
    parts.add(cosmology, one("h", preset.hubble_param));
    parts.add(cosmology,
              one("H0 [internal units]", preset.hubble_param * kHundredKmPerSecondAndMpc * preset.unit_time_s));
    parts.add(cosmology, one("Omega_m", preset.omega_matter));
    parts.add(cosmology, one("Omega_lambda", preset.omega_lambda));
    parts.add(cosmology, one("Omega_b", preset.omega_baryon));
    parts.add(cosmology, one("Omega_cdm", preset.omega_matter - preset.omega_baryon));
    parts.add(cosmology, one("Omega_nu", 0.0));
    parts.add(cosmology, one("Omega_nu_0", 0.0));
    parts.add(cosmology, one("Omega_r", 0.0));
    parts.add(cosmology, one("Omega_k", 1 - preset.omega_matter - preset.omega_lambda));
    parts.add(cosmology, one("w_0", -1.0));
    parts.add(cosmology, one("w_a", 0.0));
}

}  // namespace

PresetParts swift_parts(const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    const ParticleGroups& groups = subject.groups;
    PresetParts parts;
    parts.groups = {"Header",
                    "Code",
                    "Cosmology",
                    "GravityScheme",
                    "HydroScheme",
                    "InternalCodeUnits",
                    "Parameters",
                    "Policy",
                    "RecordingTriggers",
                    "StarsScheme",
                    "SubgridScheme/NamedColumns",
                    "Units",
                    "UnusedParameters"};
    add_swift_header(parts, subject);
    add_counts(parts, subject);
    add_units(parts, preset);
    add_cosmology(parts, preset);
    parts.add("Parameters", snapshot_text("InitialConditions:periodic", preset.is_periodic ? "1" : "0"));
    for (const ParticleGroup& group : groups) {
        const std::string& path = group.path;
        parts.links.push_back({std::string(kTypeNames[group.type]) + "Particles", "/" + path});
        parts.add(path, one("NumberOfParticles", static_cast<std::int64_t>(group.particles)));
        parts.add(path, one("TotalNumberOfParticles", static_cast<std::int64_t>(group.all_particles)));
        parts.add(path, one("NumberOfFields", static_cast<std::int32_t>(group.fields.size())));
        for (const std::string& name : group.fields)
            for (const SwiftField& field : kSwiftFields)
                if (name == field.name) describe_field(parts, preset, path + "/" + name, field);
    }
    return parts;
}

}  // namespace penstock::snapshot
