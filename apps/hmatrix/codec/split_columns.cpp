// See split_columns.hpp. The planes are filled with zeros first, so the padding is zero.
#include "hmatrix/codec/split_columns.hpp"

#include "hmatrix/codec/tiers.hpp"

namespace penstock::hmatrix {

SplitColumns::SplitColumns(const std::vector<double>& values, std::int64_t rows)
    : values_(values.data()), rows_(rows), stride_(padded(rows)) {
    const auto columns = rows == 0 ? 0 : static_cast<std::int64_t>(values.size()) / rows;
    for (auto& plane : planes_) plane.resize(columns * stride_);
}

std::array<double, kDigits> SplitColumns::split(std::int64_t column, double scale) {
    static_assert(kDigits == 4);
    std::int8_t* out[kDigits];
    for (int d = 0; d < kDigits; ++d) out[d] = planes_[d].data() + column * stride_;
    const double* values = values_ + column * rows_;
    split_digits(values, rows_, scale, {out[0], out[1], out[2], out[3]});
    return squares_left(values, rows_, scale, {out[0], out[1], out[2], out[3]});
}

void SplitColumns::append(int digit, std::int64_t begin, std::int64_t end, std::vector<std::byte>& to) const {
    const auto* bytes = reinterpret_cast<const std::byte*>(planes_[digit].data());
    to.insert(to.end(), bytes + begin * stride_, bytes + end * stride_);
}

}  // namespace penstock::hmatrix
