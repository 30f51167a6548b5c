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
    PresetParts (*parts)(const PresetSubject&);
};
constexpr KnownPreset kPresets[] = {{"gadget4", 10, gadget4_parts},
                                    {"swift", 7, swift_parts},
                                    {"arepo", 6, arepo_parts},
                                    {"gizmo", 6, gizmo_parts},
                                    {"gothic", 6, gothic_parts}};

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
    for (const double length : preset.box_size) {
        if (std::isfinite(length) && length >= 0) continue;
        throw refused_preset("the box has a length of " + std::to_string(length), "give numbers that are not below 0");
    }
    if (!std::isfinite(preset.time)) throw refused_preset("the time is no number", "give a finite time");
}

}  // namespace

ParticleCounts particles_by_type(const ParticleGroups& groups, std::size_t types) {
    for (const ParticleGroup& group : groups) types = std::max<std::size_t>(types, group.type + 1);
    ParticleCounts counts{std::vector<std::uint64_t>(types), std::vector<std::uint64_t>(types)};
    for (const ParticleGroup& group : groups) {
        counts.here[group.type] = group.particles;
        counts.all[group.type] = group.all_particles;
    }
    return counts;
}

PresetParts preset_parts(const PresetSubject& subject) {
    const std::string& layout = subject.preset.layout;
    std::string known;
    for (const KnownPreset& one : kPresets) {
        known += (known.empty() ? "" : ", ") + std::string(one.name);
        if (layout != one.name) continue;
        check_numbers(subject.preset);
        PresetSubject its_own = subject;
        its_own.groups.clear();
        for (const ParticleGroup& group : subject.groups) {
            if ((group.path == "snp") != (layout == "gothic")) continue;
            if (group.type >= one.most_types) {
                throw refused_preset(std::string(one.name) + " has no " + group.path,
                                     "its types go from 0 to " + std::to_string(one.most_types - 1));
            }
            its_own.groups.push_back(group);
        }
        return one.parts(its_own);
    }
    throw refused_preset("there is no layout " + formats::shown(layout), "use one of " + known);
}

}  // namespace penstock::snapshot
