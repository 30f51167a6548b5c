// See particle_orders.hpp.
#include "snapshot/sorted/particle_orders.hpp"

#include "penstock/error.hpp"

namespace penstock::snapshot {
namespace {

MemoryView positions_of(const Context& context, MemoryKind memory, const CellSort& sort) {
    const std::uint64_t bytes = 3 * sort.particles * (sort.is_double ? sizeof(double) : sizeof(float));
    return context.wrap(const_cast<void*>(sort.positions), bytes, memory);
}

bool lie_on_device(const Context& context, const CellSort& sort) {
    try {
        static_cast<void>(positions_of(context, MemoryKind::device, sort));
        return true;
    } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid_argument) throw;
        return false;
    }
}

}  // namespace

CellsFound count_where_they_lie(const Context& context, MemoryKind memory, const CellSort& sort) {
    const bool asks_device = memory == MemoryKind::device && sort.particles != 0 && lie_on_device(context, sort);
    return context.sort_cells(sort, asks_device ? MemoryKind::device : MemoryKind::system);
}

CellsFound sort_particles(const Context& context, MemoryKind memory, CellSort sort, ParticleOrder& order) {
    order = {std::nullopt, sort.particles};
    if (sort.particles == 0) return context.sort_cells(sort, MemoryKind::system);
    static_cast<void>(positions_of(context, memory, sort));
    order.memory = context.allocate(sort.particles * sizeof(std::uint32_t), memory);
    sort.order = static_cast<std::uint32_t*>(order.memory->data());
    return context.sort_cells(sort, memory);
}

}  // namespace penstock::snapshot
