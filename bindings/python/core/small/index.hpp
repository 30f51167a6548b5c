// What an index of Python asks of a dataset, where that is a box: integers, slices with steps from 1 on, and "...".
#pragma once

#include <array>
#include <cstdint>

#include "data/layout/layout.hpp"
#include "python/core/core.hpp"

namespace penstock::python {

// Dimensions are those of the file. Where it has them the other way round, the first of the caller is its last.
struct Asked {
    data::ElementBox box;
    std::array<bool, data::kMostDimensions> dropped{};  // by an integer
    std::uint64_t elements = 1;
};

// False: an index that needs more than a box, selects nothing, or is wrong. Requires: the GIL.
bool ask(nb::handle index, const data::Layout& layout, bool backwards, Asked& asked);

// A tuple of one number for each dimension that is left, in the caller's order.
nb::object tuple_of(const std::array<std::int64_t, data::kMostDimensions>& numbers, const Asked& asked,
                    std::size_t dimensions, bool backwards);

// Memory of the host in C order, while this lives, which may be written unless `flags` ask for less. Requires: the GIL,
// at both ends.
class HostOut {
  public:
    explicit HostOut(nb::handle out, int flags = PyBUF_CONTIG);
    ~HostOut();
    HostOut(const HostOut&) = delete;
    HostOut& operator=(const HostOut&) = delete;

    // Whether there is such memory, and it has the shape of what was asked.
    bool fits(const data::Layout& layout, const Asked& asked) const noexcept;
    // Requires: it fits.
    MemoryView view() const noexcept {
        return {exported_.buf, static_cast<std::uint64_t>(exported_.len), MemoryKind::system};
    }

  private:
    Py_buffer exported_{};
    bool there_;
};

// As HostOut::fits, of memory of a GPU: its __cuda_array_interface__, or None.
bool has_device_shape(const nb::object& description, const data::Layout& layout, const Asked& asked);

}  // namespace penstock::python
