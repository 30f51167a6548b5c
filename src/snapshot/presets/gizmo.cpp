// The layout of GIZMO: the header of GADGET-2 with other names for what is cosmology and units. Parameters of its
// physics are the caller's.
#include <charconv>

#include "snapshot/presets/gadget_family.hpp"

namespace penstock::snapshot {
namespace {

// GIZMO's version is a number, as 2022. 0 where the text is none.
std::int32_t version_number(const std::string& text) {
    std::int32_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

PresetParts gizmo_parts(const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    const ParticleGroups& groups = subject.groups;
    constexpr std::int32_t kCubicSpline = 3;
    PresetParts parts;
    parts.groups = {"Header"};
    const std::string header = "Header";
    parts.add(header, snapshot_scalar("GIZMO_version", version_number(preset.code_version)));
    add_gadget2_header(parts, subject);
    parts.add(header, snapshot_scalar("ComovingIntegrationOn", std::int32_t{preset.is_cosmological}));
    if (preset.is_cosmological) {
        parts.add(header, snapshot_scalar("Omega_Matter", preset.omega_matter));
        parts.add(header, snapshot_scalar("Omega_Lambda", preset.omega_lambda));
        parts.add(header, snapshot_scalar("Omega_Baryon", preset.omega_baryon));
        parts.add(header, snapshot_scalar("Omega_Radiation", 0.0));
    }
    parts.add(header, snapshot_scalar("UnitMass_In_CGS", preset.unit_mass_g));
    parts.add(header, snapshot_scalar("UnitVelocity_In_CGS", preset.unit_length_cm / preset.unit_time_s));
    parts.add(header, snapshot_scalar("UnitLength_In_CGS", preset.unit_length_cm));
    parts.add(header, snapshot_scalar("Gravitational_Constant_In_Code_Inits", gravity_in(preset)));
    add_gadget2_flags(parts, groups);
    parts.add(header, snapshot_scalar("Flag_IC_Info", std::int32_t{0}));
    parts.add(header, snapshot_scalar("Kernel_Function_ID", kCubicSpline));
    return parts;
}

}  // namespace penstock::snapshot
