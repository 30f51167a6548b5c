// See presets.hpp. The list of presets is here.
#include "snapshot/presets/presets.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::snapshot {
namespace {

struct KnownPreset {
    const char* name;
    std::uint32_t most_types;
    PresetParts (*parts)(const SnapshotPreset&, const std::vector<ParticleGroup>&);
};
constexpr KnownPreset kPresets[] = {{"gadget4", 10, gadget4_parts}, {"swift", 7, swift_parts}};

Error refused_preset(std::string cause, std::string advice) {
    return {ErrorCode::invalid_argument, "use preset", std::move(cause), std::move(advice)};
}

void check_numbers(const SnapshotPreset& preset) {
    const std::pair<const char*, double> positive[] = {{"scale_factor", preset.scale_factor},
                                                       {"hubble_param", preset.hubble_param},
                                                       {"unit_length_cm", preset.unit_length_cm},
                                                       {"unit_mass_g", preset.unit_mass_g},
                                                       {"unit_time_s", preset.unit_time_s}};
    for (const auto& one : positive) {
        if (std::isfinite(one.second) && one.second > 0) continue;
        throw refused_preset(std::string(one.first) + " is " + std::to_string(one.second), "give a number above 0");
    }
    if (!std::isfinite(preset.time)) throw refused_preset("the time is no number", "give a finite time");
}

}  // namespace

std::string group_path(const ParticleGroup& group) { return "PartType" + std::to_string(group.type); }

std::vector<std::uint64_t> particles_by_type(const std::vector<ParticleGroup>& groups, std::size_t types) {
    std::vector<std::uint64_t> counts(types);
    for (const ParticleGroup& group : groups) {
        counts.resize(std::max<std::size_t>(counts.size(), group.type + 1));
        counts[group.type] = group.particles;
    }
    return counts;
}

PresetParts preset_parts(const SnapshotPreset& preset, const std::vector<ParticleGroup>& groups) {
    std::string known;
    for (const KnownPreset& one : kPresets) {
        known += (known.empty() ? "" : ", ") + std::string(one.name);
        if (preset.layout != one.name) continue;
        check_numbers(preset);
        for (const ParticleGroup& group : groups) {
            if (group.type >= one.most_types) {
                throw refused_preset(std::string(one.name) + " has no " + group_path(group),
                                     "its types go from 0 to " + std::to_string(one.most_types - 1));
            }
        }
        return one.parts(preset, groups);
    }
    throw refused_preset("there is no layout " + formats::shown(preset.layout), "use one of " + known);
}

}  // namespace penstock::snapshot
