// Presets: what the snapshots of a known code have besides their data, as plain values: groups, links and attributes.
// Pure functions: they know neither a file nor the tree of one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/snapshot.hpp"

namespace penstock::snapshot {

// The datasets PartTypeN/NAME of a snapshot, or, with the names of GOTHIC, snp/NAME.
struct ParticleGroup {
    std::string path;
    std::uint32_t type = 0;
    std::uint64_t particles = 0;        // of this file
    std::uint64_t all_particles = 0;    // of all files
    std::vector<std::string> fields{};  // their names, without the group
    bool has_doubles = false;           // a field is float64
};
using ParticleGroups = std::vector<ParticleGroup>;

// The file that a preset describes.
struct PresetSubject {
    const SnapshotPreset& preset;
    ParticleGroups groups{};
    std::uint32_t files = 1;  // of the snapshot
    std::uint32_t file = 0;   // the number of this one
    bool is_virtual = false;  // it shows the others as one
};

struct PresetParts {
    struct Linked {
        std::string path, target;
        bool is_hard = false;  // a second name of the object, which readers cannot tell from the first
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

// Particles of each type, from type 0 on: at least so many types.
struct ParticleCounts {
    std::vector<std::uint64_t> here{}, all{};
};
ParticleCounts particles_by_type(const ParticleGroups& groups, std::size_t types);

PresetParts arepo_parts(const PresetSubject& subject);
PresetParts gadget4_parts(const PresetSubject& subject);
PresetParts gizmo_parts(const PresetSubject& subject);
PresetParts gothic_parts(const PresetSubject& subject);
PresetParts swift_parts(const PresetSubject& subject);

// What the layout that the preset names has. Throws Error{invalid_argument} of numbers that make no sense, and of a
// layout that there is not; the caller names the file.
PresetParts preset_parts(const PresetSubject& subject);

}  // namespace penstock::snapshot
