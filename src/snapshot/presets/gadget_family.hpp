// What the layouts of GADGET's family share: the header of GADGET-2, and units of datasets as powers.
#pragma once

#include <span>

#include "snapshot/presets/presets.hpp"

namespace penstock::snapshot {

// Powers of the scale factor and of h in a stored value, and of the units of length, mass and velocity in its unit.
struct ScaledField {
    const char* name;
    double a, h, length, mass, velocity;
    bool has_unit = true;  // false: to_cgs is 0, as AREPO has it
};
// Attributes of each dataset whose name is among the fields.
void describe_scaled(PresetParts& parts, const PresetSubject& subject, std::span<const ScaledField> fields);

// Numbers of particles, masses, time and box: 32 bits a count, and the high words of totals. Throws Error of a file
// with more particles of a type than that.
void add_gadget2_header(PresetParts& parts, const PresetSubject& subject);
// What the code was built with: zeros, but for that of double precision.
void add_gadget2_flags(PresetParts& parts, const ParticleGroups& groups);

// The constant of gravity in the units of the snapshot.
double gravity_in(const SnapshotPreset& preset);

}  // namespace penstock::snapshot
