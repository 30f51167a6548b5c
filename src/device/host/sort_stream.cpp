// What a stream of the emulated device sorts into cells and gathers: see host_stream.hpp and sort_host.hpp.
#include "device/host/host_stream.hpp"
#include "device/host/sort_host.hpp"

namespace penstock::device {

CellsFound HostStream::sort_cells(const CellSort& sort) {
    const std::uint64_t bytes = 3 * sort.particles * (sort.is_double ? sizeof(double) : sizeof(float));
    CellsFound found;
    submit(bytes, {[&, this] {
                       std::shared_ptr<const HostRegion> from, to;  // of no particles, memory may lie anywhere
                       if (bytes != 0) from = require("sort_cells", sort.positions, bytes);
                       if (bytes != 0 && sort.order != nullptr) {
                           to = require("sort_cells", sort.order, sort.particles * sizeof(std::uint32_t));
                       }
                       found = sort_cells_on_host(sort);
                   },
                   nullptr});
    synchronize();
    return found;
}

void HostStream::gather(const RowGather& gather) {
    const std::uint64_t bytes = gather.rows * gather.row_bytes;
    if (bytes == 0) return raise_failure();
    const auto issued = cost_.throttled() ? Clock::now() : Clock::time_point{};
    submit(bytes, {[=, this] {
                       move(bytes, issued, [&] {
                           const auto to = require("gather", gather.destination, bytes);
                           const auto from = require("gather", gather.source, gather.source_rows * gather.row_bytes);
                           const auto by = require("gather", gather.order, gather.rows * sizeof(std::uint32_t));
                           gather_on_host(gather);
                       });
                   },
                   nullptr});
}

}  // namespace penstock::device
