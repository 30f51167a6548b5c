// See product_log.hpp.
#include "hmatrix/solve/continued/product_log.hpp"

#include <algorithm>
#include <cmath>

#include "hmatrix/scramble.hpp"

namespace penstock::hmatrix {
namespace {

void mark(std::span<const double> column, std::span<double> marks) {
    double squares = 0;
    std::fill(marks.begin(), marks.end(), 0.0);
    for (std::size_t i = 0; i < column.size(); ++i) {
        const std::uint64_t signs = scrambled(i);
        squares += column[i] * column[i];
        for (std::size_t m = 1; m < marks.size(); ++m) marks[m] += (signs >> m & 1) != 0 ? column[i] : -column[i];
    }
    marks[0] = std::sqrt(squares);
}

}  // namespace

ProductKey key_of(std::span<const double> operand, std::int64_t columns, double accuracy) {
    ProductKey key{.columns = columns, .accuracy = accuracy, .marks = std::vector<double>(columns * kMarks)};
    const std::size_t size = operand.size() / static_cast<std::size_t>(columns);
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
        mark(operand.subspan(c * size, size), std::span(key.marks).subspan(c * kMarks, kMarks));
    }
    return key;
}

bool same(const ProductKey& a, const ProductKey& b, double part) {
    if (a.columns != b.columns || a.marks.size() != b.marks.size()) return false;
    if (!(std::abs(a.accuracy - b.accuracy) <= part * std::abs(a.accuracy))) return false;
    for (std::size_t i = 0; i < a.marks.size(); ++i) {
        const double norm = a.marks[i / kMarks * kMarks];
        if (!(std::abs(a.marks[i] - b.marks[i]) <= part * norm)) return false;
    }
    return true;
}

void LoggedOperator::download(const double* from, std::int64_t count, std::vector<double>& to) {
    const auto size = static_cast<std::size_t>(space_.size());
    to.resize(size * static_cast<std::size_t>(count));
    for (std::size_t c = 0; c < static_cast<std::size_t>(count); ++c) {
        space_.download(from + c * size, std::span(to).subspan(c * size, size));
    }
}

void LoggedOperator::apply(const double* x, double* y, std::int64_t count, double accuracy) {
    download(x, count, operand_);
    const ProductKey key = key_of(operand_, count, accuracy);
    if (!log_.recalling()) {
        matrix_.apply(x, y, count, accuracy);
        download(y, count, image_);
        log_.keep(key, with_operands_ ? std::span<const double>(operand_) : std::span<const double>(), image_);
        return;
    }
    image_.resize(operand_.size());
    log_.recall(key, space_.repeatable() ? kSameOnHost : kSameOnGpu, image_);
    const auto size = static_cast<std::size_t>(space_.size());
    for (std::size_t c = 0; c < static_cast<std::size_t>(count); ++c) {
        space_.upload(std::span(image_).subspan(c * size, size), y + c * size);
    }
}

}  // namespace penstock::hmatrix
