// A table of numbers from Python: a two-dimensional, C-contiguous array of int64, read through the buffer protocol so
// that NumPy is not needed. It is copied, because the checks of its rows must stay valid while they are used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core.hpp"

namespace penstock::python {

class IntTable {
  public:
    IntTable(nb::handle object, const char* operation);  // throws Error{invalid_argument}
    std::size_t rows() const noexcept { return rows_; }
    std::size_t columns() const noexcept { return columns_; }
    std::span<const std::int64_t> row(std::size_t index) const noexcept {
        return {numbers_.data() + index * columns_, columns_};
    }
    // Throws Error{invalid_argument} that names the row.
    [[noreturn]] void refuse(std::size_t row, const std::string& cause, const std::string& advice = {}) const;
    // Returns number `column` of a row. Throws if it is negative.
    std::uint64_t count(std::size_t row, std::size_t column, const char* name) const;

  private:
    const char* operation_;
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;
    std::vector<std::int64_t> numbers_;
};

}  // namespace penstock::python
