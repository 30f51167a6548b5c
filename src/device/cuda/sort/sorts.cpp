// Sorts into cells on a GPU. The host waits twice: for what is wrong with the particles, and for the cells. One
// allocation holds all that a sort needs besides the order, and is freed before the call returns.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "device/cuda/sort/sort_kernels.hpp"
#include "device/cuda/stream.hpp"
#include "device/sort/cell_plan.hpp"

namespace penstock::device {
namespace {

// Parts of one allocation, in the order in which they are asked for.
class SortMemory {
  public:
    explicit SortMemory(std::byte* first) : next_(first) {}
    template <class Item>
    Item* take(std::uint64_t count) {
        auto* part = reinterpret_cast<Item*>(next_);
        next_ += align_up(count * sizeof(Item), kPartAlignment);
        return part;
    }
    static constexpr std::uint64_t kPartAlignment = 256;

  private:
    std::byte* next_;
};

struct SortParts {
    CellLaunch launch{};
    PairSort pairs{};
    std::unique_ptr<std::byte, CudaFree> memory;
};

std::uint64_t bytes_of(const CellSort& sort, std::uint64_t cells, const PairSort& pairs) {
    std::uint64_t bytes = sizeof(CellFaults) + cells * sizeof(OpenRun) + sort.particles * sizeof(std::uint32_t);
    if (sort.order != nullptr) bytes += pairs.scratch_bytes + 2 * sort.particles * sizeof(std::uint32_t);
    return bytes + 6 * SortMemory::kPartAlignment;
}

std::byte* allocate_for(const CellSort& sort, std::uint64_t bytes) {
    void* memory = nullptr;
    const cudaError_t code = cudaMalloc(&memory, bytes);
    if (code == cudaSuccess) return static_cast<std::byte*>(memory);
    static_cast<void>(cudaGetLastError());
    ErrorInfo info = cuda_error(code, "sort into cells", "release buffers, or give fewer cells").info();
    info.cause = std::to_string(bytes) + " bytes of device memory to sort " + std::to_string(sort.particles) +
                 " particles: " + info.cause;
    throw Error(std::move(info));
}

SortParts parts_of(const CellSort& sort, cudaStream_t stream) {
    SortParts parts;
    CellLaunch& launch = parts.launch;
    PairSort& pairs = parts.pairs;
    launch.grid = lanes_of(sort);
    launch.cells = count_of(launch.grid);
    pairs.bits = std::max(1, static_cast<int>(std::bit_width(launch.cells - 1)));
    if (sort.order != nullptr) {
        pairs.count = static_cast<std::uint32_t>(sort.particles);
        cuda_check(sort_pairs(pairs, stream), "size of a sort");
    }
    const std::uint64_t bytes = bytes_of(sort, launch.cells, pairs);
    parts.memory.reset(allocate_for(sort, bytes));
    SortMemory memory(parts.memory.get());
    launch.positions = sort.positions;
    launch.is_double = sort.is_double;
    launch.particles = sort.particles;
    launch.order = sort.order;
    launch.faults = memory.take<CellFaults>(1);
    launch.runs = memory.take<OpenRun>(launch.cells);
    pairs.keys = launch.keys = memory.take<std::uint32_t>(sort.particles);
    if (sort.order == nullptr) return parts;
    pairs.values = sort.order;
    pairs.other_keys = memory.take<std::uint32_t>(sort.particles);
    pairs.other_values = memory.take<std::uint32_t>(sort.particles);
    pairs.scratch = memory.take<std::byte>(pairs.scratch_bytes);
    return parts;
}

}  // namespace

// Waits, so that the caller may use what it has read.
void CudaStream::read_now(void* to, const void* from, std::uint64_t bytes) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    synchronize();
}

// Whether there is any. Of two, the one with the lower number counts.
bool CudaStream::find_faults(const CellLaunch& launch, CellsFound& found) {
    CellFaults faults{};
    read_now(&faults, launch.faults, sizeof faults);
    if (faults.bad <= faults.unsorted && faults.bad != CellsFound::kNone) {
        found.first_bad = faults.bad;
        const std::size_t bytes = 3 * (launch.is_double ? sizeof(double) : sizeof(float));
        double numbers[3];
        float narrow[3];
        void* to = launch.is_double ? static_cast<void*>(numbers) : narrow;
        read_now(to, static_cast<const std::byte*>(launch.positions) + faults.bad * bytes, bytes);
        if (!launch.is_double) std::copy_n(narrow, 3, numbers);
        std::copy_n(numbers, 3, found.bad_position);
        return true;
    }
    if (faults.unsorted == CellsFound::kNone) return false;
    found.first_unsorted = faults.unsorted;
    std::uint32_t cells[2];
    read_now(cells, launch.keys + faults.unsorted - 1, sizeof cells);
    found.cell_before = cells[0];
    found.cell = cells[1];
    return true;
}

CellsFound CudaStream::sort_cells(const CellSort& sort) {
    const ScopedCudaDevice scope(facts_.index);
    SortParts parts = parts_of(sort, stream_);
    CellLaunch& launch = parts.launch;
    CellsFound found;
    if (sort.particles != 0) {
        cuda_check(cudaMemsetAsync(launch.faults, 0xFF, sizeof(CellFaults), stream_), "cudaMemsetAsync");
        cuda_check(launch_keys(launch, facts_.processors, stream_), "launch of a search for cells");
        if (find_faults(launch, found)) return found;
    }
    if (sort.particles != 0 && sort.order != nullptr) {
        cuda_check(sort_pairs(parts.pairs, stream_), "launch of a sort");
        launch.keys = parts.pairs.keys;
        if (parts.pairs.values != sort.order) {
            cuda_check(cudaMemcpyAsync(sort.order, parts.pairs.values, sort.particles * sizeof(std::uint32_t),
                                       cudaMemcpyDeviceToDevice, stream_),
                       "cudaMemcpyAsync");
        }
    }
    cuda_check(launch_runs(launch, facts_.processors, stream_), "launch of a count of cells");
    std::vector<OpenRun> runs(launch.cells);
    read_now(runs.data(), launch.runs, runs.size() * sizeof(OpenRun));
    found.runs = closed(runs);
    return found;
}

void CudaStream::gather(const RowGather& gather) {
    if (gather.rows == 0 || gather.row_bytes == 0) return;
    const ScopedCudaDevice scope(facts_.index);
    cuda_check(launch_gather(gather, facts_.processors, stream_), "launch of a gather");
}

}  // namespace penstock::device
