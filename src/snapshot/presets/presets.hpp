// Presets: what the snapshots of a known code have besides their data, as plain values: groups, links and attributes.
// Pure functions: they know neither a file nor the tree of one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/snapshot.hpp"

namespace penstock::snapshot {

// The datasets PartTypeN/NAME of a snapshot.
struct ParticleGroup {
    std::uint32_t type = 0;
    std::uint64_t particles = 0;
    std::vector<std::string> fields{};  // their names, without the group
};

struct PresetParts {
    struct Linked {
        std::string path, target;
    };
    struct Attributed {
        std::string path;
        SnapshotAttribute attribute;
    };
    std::vector<std::string> groups{};
    std::vector<Linked> links{};
    std::vector<Attributed> attributes{};

    void add(const std::string& path, SnapshotAttribute attribute) {
        attributes.push_back({path, std::move(attribute)});
    }
};

std::string group_path(const ParticleGroup& group);
// Particles of each type, from type 0 on: at least so many types.
std::vector<std::uint64_t> particles_by_type(const std::vector<ParticleGroup>& groups, std::size_t types);

PresetParts gadget4_parts(const SnapshotPreset& preset, const std::vector<ParticleGroup>& groups);
PresetParts swift_parts(const SnapshotPreset& preset, const std::vector<ParticleGroup>& groups);

// What the layout that the preset names has. Throws Error{invalid_argument} of numbers that make no sense, and of a
// layout that there is not; the caller names the file.
PresetParts preset_parts(const SnapshotPreset& preset, const std::vector<ParticleGroup>& groups);

}  // namespace penstock::snapshot
