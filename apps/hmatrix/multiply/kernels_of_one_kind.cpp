// The loops of kernels.hpp, compiled for one kind of processor: PENSTOCK_KERNELS names the function that returns them.
//
// Nothing here may be inline or a template of another header: the linker would keep one copy for all kinds, perhaps the
// one with instructions this machine lacks.
#include <cstdint>
#include <cstring>

#include "hmatrix/multiply/kernels.hpp"

namespace penstock::hmatrix {

Kernels PENSTOCK_KERNELS() noexcept;

namespace {

constexpr std::int64_t kTogether = 4;  // columns that share each load of x or y

template <class Value, class Real>
void dots_of(const Columns<Value>& columns, const Real* __restrict x, Real weight, Real* __restrict t) {
    const std::int64_t rows = columns.rows;
    std::int64_t j = 0;
    for (; j + kTogether <= columns.count; j += kTogether) {
        const Value* __restrict a = columns.values + j * columns.stride;
        const Value* __restrict b = a + columns.stride;
        const Value* __restrict c = b + columns.stride;
        const Value* __restrict d = c + columns.stride;
        Real ta = 0, tb = 0, tc = 0, td = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            ta += static_cast<Real>(a[i]) * x[i];
            tb += static_cast<Real>(b[i]) * x[i];
            tc += static_cast<Real>(c[i]) * x[i];
            td += static_cast<Real>(d[i]) * x[i];
        }
        t[j] += weight * ta;
        t[j + 1] += weight * tb;
        t[j + 2] += weight * tc;
        t[j + 3] += weight * td;
    }
    for (; j < columns.count; ++j) {
        const Value* __restrict a = columns.values + j * columns.stride;
        Real ta = 0;
        for (std::int64_t i = 0; i < rows; ++i) ta += static_cast<Real>(a[i]) * x[i];
        t[j] += weight * ta;
    }
}

template <class Value, class Real>
void sum_of(const Columns<Value>& columns, const Real* __restrict t, Real weight, Real* __restrict y) {
    const std::int64_t rows = columns.rows;
    std::int64_t j = 0;
    for (; j + kTogether <= columns.count; j += kTogether) {
        const Value* __restrict a = columns.values + j * columns.stride;
        const Value* __restrict b = a + columns.stride;
        const Value* __restrict c = b + columns.stride;
        const Value* __restrict d = c + columns.stride;
        const Real ta = weight * t[j], tb = weight * t[j + 1], tc = weight * t[j + 2], td = weight * t[j + 3];
        for (std::int64_t i = 0; i < rows; ++i) {
            y[i] += static_cast<Real>(a[i]) * ta + static_cast<Real>(b[i]) * tb + static_cast<Real>(c[i]) * tc +
                    static_cast<Real>(d[i]) * td;
        }
    }
    for (; j < columns.count; ++j) {
        const Value* __restrict a = columns.values + j * columns.stride;
        const Real ta = weight * t[j];
        for (std::int64_t i = 0; i < rows; ++i) y[i] += static_cast<Real>(a[i]) * ta;
    }
}

// Sixteen rows at a time, past the end of a column if need be: what is read there meets a zero of x, or adds to rows of
// y that nobody looks at (see kRowsTogether). No loop has a remainder, and most blocks are small enough for one turn.
typedef float Singles __attribute__((vector_size(kRowsTogether * sizeof(float))));
typedef std::int8_t Digits __attribute__((vector_size(kRowsTogether)));
typedef std::int16_t Words __attribute__((vector_size(kRowsTogether * sizeof(std::int16_t))));
typedef std::int32_t Integers __attribute__((vector_size(kRowsTogether * sizeof(std::int32_t))));

Singles digits_at(const std::int8_t* from) {
    Digits digits;
    std::memcpy(&digits, from, sizeof digits);
    // Step by step: compilers have an instruction for each, and take elements one by one for all at once.
    return __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(digits, Words), Integers), Singles);
}

Singles singles_at(const float* from) {
    Singles values;
    std::memcpy(&values, from, sizeof values);
    return values;
}

float total(const Singles& values) {
    float sum[8], quarter[4];
    for (int i = 0; i < 8; ++i) sum[i] = values[i] + values[i + 8];
    for (int i = 0; i < 4; ++i) quarter[i] = sum[i] + sum[i + 4];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

void dots_of_digits(const Columns<std::int8_t>& columns, const float* x, float weight, float* t) {
    const std::int8_t* at = columns.values;
    std::int64_t j = 0;
    for (; j + kTogether <= columns.count; j += kTogether, at += kTogether * columns.stride) {
        Singles sums[kTogether] = {};
        for (std::int64_t i = 0; i < columns.rows; i += kRowsTogether) {
            const Singles part = singles_at(x + i);
            for (int k = 0; k < kTogether; ++k) sums[k] += digits_at(at + k * columns.stride + i) * part;
        }
        for (int k = 0; k < kTogether; ++k) t[j + k] += weight * total(sums[k]);
    }
    for (; j < columns.count; ++j, at += columns.stride) {
        Singles sum = {};
        for (std::int64_t i = 0; i < columns.rows; i += kRowsTogether) sum += digits_at(at + i) * singles_at(x + i);
        t[j] += weight * total(sum);
    }
}

void sum_of_digits(const Columns<std::int8_t>& columns, const float* t, float weight, float* y) {
    for (std::int64_t i = 0; i < columns.rows; i += kRowsTogether) {
        Singles sum = {};
        const std::int8_t* at = columns.values + i;
        for (std::int64_t j = 0; j < columns.count; ++j, at += columns.stride) sum += digits_at(at) * t[j];
        const Singles made = singles_at(y + i) + sum * weight;
        std::memcpy(y + i, &made, sizeof made);
    }
}

}  // namespace

Kernels PENSTOCK_KERNELS() noexcept {
    return {PENSTOCK_KERNELS_NAME,
            dots_of_digits,
            dots_of<std::int8_t, double>,
            dots_of<double, double>,
            sum_of_digits,
            sum_of<std::int8_t, double>,
            sum_of<double, double>};
}

}  // namespace penstock::hmatrix
