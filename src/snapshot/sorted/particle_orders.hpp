// The order of cells of each type of particles, from the sort until the snapshot is written. Orders lie where the
// fields lie: in memory of the device, or of the host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "penstock/context.hpp"
#include "penstock/sort/cell_sort.hpp"

namespace penstock::snapshot {

struct ParticleOrder {
    std::optional<Buffer> memory{};  // none of no particles
    std::uint64_t particles = 0;

    const std::uint32_t* first() const { return memory ? static_cast<const std::uint32_t*>(memory->data()) : nullptr; }
};

using ParticleOrders = std::map<std::uint32_t, ParticleOrder>;  // by the number of PartTypeN

// Of particles that lie sorted. Positions of a snapshot whose fields lie on the device may lie on the host.
CellsFound count_where_they_lie(const Context& context, MemoryKind memory, const CellSort& sort);

// Makes room for the order, and fills it. Positions lie in `memory`.
CellsFound sort_particles(const Context& context, MemoryKind memory, CellSort sort, ParticleOrder& order);

}  // namespace penstock::snapshot
