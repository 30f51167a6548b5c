// See gadget_family.hpp.
#include "snapshot/presets/gadget_family.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "penstock/error.hpp"

namespace penstock::snapshot {
namespace {

constexpr std::size_t kClassicTypes = 6;

void describe_one(PresetParts& parts, const SnapshotPreset& preset, const std::string& path, const ScaledField& field) {
    const double velocity = preset.unit_length_cm / preset.unit_time_s;
    const double to_cgs = std::pow(preset.unit_length_cm, field.length) * std::pow(preset.unit_mass_g, field.mass) *
                          std::pow(velocity, field.velocity);
    parts.add(path, snapshot_scalar("a_scaling", preset.is_cosmological ? field.a : 0.0));
    parts.add(path, snapshot_scalar("h_scaling", preset.is_cosmological ? field.h : 0.0));
    parts.add(path, snapshot_scalar("length_scaling", field.length));
    parts.add(path, snapshot_scalar("mass_scaling", field.mass));
    parts.add(path, snapshot_scalar("velocity_scaling", field.velocity));
    parts.add(path, snapshot_scalar("to_cgs", field.has_unit ? to_cgs : 0.0));
}

}  // namespace

void describe_scaled(PresetParts& parts, const PresetSubject& subject, std::span<const ScaledField> fields) {
    for (const ParticleGroup& group : subject.groups)
        for (const std::string& name : group.fields)
            for (const ScaledField& field : fields)
                if (name == field.name) describe_one(parts, subject.preset, group.path + "/" + name, field);
}

void add_gadget2_header(PresetParts& parts, const PresetSubject& subject) {
    const SnapshotPreset& preset = subject.preset;
    const ParticleCounts counts = particles_by_type(subject.groups, kClassicTypes);
    std::vector<std::int32_t> here;
    std::vector<std::uint32_t> low, high;
    for (const std::uint64_t count : counts.here) {
        if (count > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::unsupported, "use preset",
                        "a file of " + preset.layout + " holds 2147483647 particles of a type, and there are " +
                            std::to_string(count),
                        "write several files");
        }
        here.push_back(static_cast<std::int32_t>(count));
    }
    for (const std::uint64_t count : counts.all) {
        low.push_back(static_cast<std::uint32_t>(count));
        high.push_back(static_cast<std::uint32_t>(count >> 32));
    }
    const std::string header = "Header";
    parts.add(header, snapshot_array("NumPart_ThisFile", std::span<const std::int32_t>(here)));
    parts.add(header, snapshot_array("NumPart_Total", std::span<const std::uint32_t>(low)));
    parts.add(header, snapshot_array("NumPart_Total_HighWord", std::span<const std::uint32_t>(high)));
    parts.add(header, snapshot_array("MassTable", std::span(preset.mass_table).first(kClassicTypes)));
    parts.add(header, snapshot_scalar("Time", preset.is_cosmological ? preset.scale_factor : preset.time));
    parts.add(header, snapshot_scalar("Redshift", preset.is_cosmological ? 1 / preset.scale_factor - 1 : 0.0));
    parts.add(header, snapshot_scalar("BoxSize", preset.box_size[0]));
    parts.add(header, snapshot_scalar("NumFilesPerSnapshot", static_cast<std::int32_t>(subject.files)));
    parts.add(header, snapshot_scalar("HubbleParam", preset.hubble_param));
}

void add_gadget2_flags(PresetParts& parts, const ParticleGroups& groups) {
    for (const char* flag : {"Flag_Sfr", "Flag_Cooling", "Flag_StellarAge", "Flag_Metals", "Flag_Feedback"})
        parts.add("Header", snapshot_scalar(flag, std::int32_t{0}));
    const bool is_double =
        std::any_of(groups.begin(), groups.end(), [](const ParticleGroup& one) { return one.has_doubles; });
    parts.add("Header", snapshot_scalar("Flag_DoublePrecision", std::int32_t{is_double}));
}

double gravity_in(const SnapshotPreset& preset) {
    constexpr double kGravityCgs = 6.6743e-8;  // cm^3/g/s^2
    return kGravityCgs * preset.unit_mass_g * preset.unit_time_s * preset.unit_time_s /
           std::pow(preset.unit_length_cm, 3);
}

}  // namespace penstock::snapshot
