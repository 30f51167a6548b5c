// The two loops of every product with a leaf: many dot products with one vector, and one sum of many vectors.
//
// Columns hold signed bytes (digits, see codec/digits.hpp) or doubles. The loops are compiled once for each kind of
// processor that matters, and the best one this machine has is chosen when it is asked for.
#pragma once

#include <cstdint>

namespace penstock::hmatrix {

// `count` columns of `rows` values, `stride` values apart.
template <class Value>
struct Columns {
    const Value* values = nullptr;
    std::int64_t rows = 0;
    std::int64_t count = 0;
    std::int64_t stride = 0;
};

// The loops over digits in single precision take this many rows at a time: columns must be readable, x readable and
// zero, and y writable, up to the next multiple of it.
constexpr int kRowsTogether = 16;

struct Kernels {
    const char* name = "";
    // t[j] += weight * (column j . x)
    void (*dots_digits)(const Columns<std::int8_t>& columns, const float* x, float weight, float* t) = nullptr;
    void (*dots_digits_exact)(const Columns<std::int8_t>& columns, const double* x, double weight, double* t) = nullptr;
    void (*dots)(const Columns<double>& columns, const double* x, double weight, double* t) = nullptr;
    // y += sum over j of weight * t[j] * column j
    void (*sum_digits)(const Columns<std::int8_t>& columns, const float* t, float weight, float* y) = nullptr;
    void (*sum_digits_exact)(const Columns<std::int8_t>& columns, const double* t, double weight, double* y) = nullptr;
    void (*sum)(const Columns<double>& columns, const double* t, double weight, double* y) = nullptr;
};

Kernels best_kernels() noexcept;

// Of one kind, for tests and comparisons: "plain", "avx2", "avx512". False where this machine or build has it not.
bool kernels_of(const char* kind, Kernels& found) noexcept;

}  // namespace penstock::hmatrix
