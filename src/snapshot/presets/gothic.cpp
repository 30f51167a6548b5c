// The layout of GOTHIC: one kind of particles in the group snp; every number is an array of one value, and factors lead
// to the units of astronomers. Links with the names of GADGET, and its header, let other readers open the file.
#include <cmath>

#include "snapshot/presets/gadget_family.hpp"

namespace penstock::snapshot {
namespace {

constexpr double kKiloparsec = 3.0856775814913673e21, kSolarMass = 1.98841e33, kMyr = 3.15576e13;  // cm, g, s
constexpr std::uint32_t kGothicTextBytes = 16;

constexpr const char* kGadgetNames[][2] = {{"Coordinates", "position"}, {"Velocities", "velocity"},
                                           {"Masses", "mass"},          {"ParticleIDs", "index"},
                                           {"Potential", "potential"},  {"Acceleration", "acceleration"}};

struct AstroUnit {
    const char* quantity;
    const char* label;
    double mass, length, time;  // powers
};
constexpr AstroUnit kAstroUnits[] = {{"length", "kpc", 0, 1, 0},
                                     {"time", "Myr", 0, 0, 1},
                                     {"mass", "Msun", 1, 0, 0},
                                     {"density", "Msun/kpc^3", 1, -3, 0},
                                     {"col_density", "Msun/kpc^2", 1, -2, 0},
                                     {"energy", "Msun kpc^2/Myr^2", 1, 2, -2},
                                     {"senergy", "kpc^2/Myr^2", 0, 2, -2},
                                     {"velocity", "kpc/Myr", 0, 1, -1},
                                     {"accel", "kpc/Myr^2", 0, 1, -2}};

template <typename Number>
SnapshotAttribute array_of_one(std::string name, Number value) {
    return snapshot_array(std::move(name), {value});
}

void add_units(PresetParts& parts, const SnapshotPreset& preset, bool is_double) {
    const std::string units = "unit_system";
    const double newton = gravity_in(preset);
    parts.add(units, array_of_one("unit", std::int32_t{0}));
    parts.add(units, is_double ? array_of_one("newton", newton) : array_of_one("newton", static_cast<float>(newton)));
    for (const AstroUnit& one : kAstroUnits) {
        const double factor = std::pow(preset.unit_mass_g / kSolarMass, one.mass) *
                              std::pow(preset.unit_length_cm / kKiloparsec, one.length) *
                              std::pow(preset.unit_time_s / kMyr, one.time);
        parts.add(units + "/conversion factors", array_of_one(std::string(one.quantity) + "2astro", factor));
        SnapshotAttribute label = snapshot_text(std::string(one.quantity) + "_astro_unit_name", one.label);
        label.shape = {1};
        label.text_bytes = kGothicTextBytes;
        parts.add(units + "/axis labels", std::move(label));
    }
}

}  // namespace

PresetParts gothic_parts(const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    const ParticleGroups& groups = subject.groups;
    PresetParts parts;
    parts.groups = {"snp", "unit_system/conversion factors", "unit_system/axis labels", "Header", "PartType1"};
    const std::string snp = "snp";
    const ParticleGroup none{.path = snp, .type = 1};
    const ParticleGroup& group = groups.empty() ? none : groups[0];
    parts.add(snp, array_of_one("time", preset.time));
    parts.add(snp, array_of_one("steps", std::uint64_t{0}));
    parts.add(snp, array_of_one("number", group.particles));
    parts.add(snp, array_of_one("useDP", std::int32_t{group.has_doubles}));
    add_units(parts, preset, group.has_doubles);
    SnapshotPreset with_masses = preset;  // a mass in the header would be that of all particles
    with_masses.mass_table = {};
    add_gadget2_header(parts, {with_masses, groups, subject.files, subject.file});
    parts.add("Header", snapshot_scalar("Omega0", preset.omega_matter));
    parts.add("Header", snapshot_scalar("OmegaLambda", preset.omega_lambda));
    add_gadget2_flags(parts, groups);
    for (const auto& [gadget, own] : kGadgetNames)
        for (const std::string& name : group.fields)
            if (name == own) parts.links.push_back({std::string("PartType1/") + gadget, "/snp/" + name, true});
    return parts;
}

}  // namespace penstock::snapshot
