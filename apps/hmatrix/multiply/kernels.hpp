// The loops of a product with a leaf: many dot products with one vector, and one sum of many vectors.
//
// Columns hold signed bytes (digits, see codec/digits.hpp) or doubles. The build compiles the loops once for each kind
// of processor, and best_kernels() picks the best kind that this machine can run.
#pragma once

#include <cstddef>
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

// Loops in single precision process up to this many rows at once. They read up to this many bytes after a column. They
// also read x and y, and write back the values of y, up to this many values after the leaf's rows or columns.
constexpr int kRowsTogether = 16;

// The first `tiers` tiers of a leaf (codec/tiers.hpp). It holds plain arrays instead of containers;
// kernels_of_one_kind.cpp says why.
struct TieredBytes {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool low_rank = false;
    int tiers = 0;                            // at least 1
    const std::uint16_t* counts = nullptr;    // [tier][digit]
    const std::byte* const* bytes = nullptr;  // one pointer for each tier
};

// Several vectors. Each begins `stride` values after the one before.
template <class Value>
struct Vectors {
    Value* values = nullptr;
    std::int64_t stride = 0;
};

// `count` pairs of vectors for y += leaf * x.
template <class Real>
struct VectorPairs {
    Vectors<const Real> x;
    Vectors<double> y;
    std::int64_t count = 0;
};

// One digit of one vector pair.
struct ListedColumn {
    const std::int8_t* v = nullptr;
    const std::int8_t* u = nullptr;
    std::int64_t vector = 0;
    float weight = 0;  // of this digit
    float factor = 0;  // multiplies u in the sum
};

// Memory that the loops need for a leaf. `scales` and `t` have one element for each vector pair. `columns` has one for
// each column of digits, rounded up to a multiple of four.
struct TierScratch {
    float* scales = nullptr;
    float* t = nullptr;
    ListedColumn* columns = nullptr;
};

struct Kernels {
    const char* name = "";
    // y += leaf * x for all pairs, in single precision.
    void (*tiers)(const TieredBytes& leaf, const VectorPairs<float>& pairs, const TierScratch& scratch) = nullptr;
    // t[j] += weight * (column j . x)
    void (*dots_digits)(const Columns<std::int8_t>& columns, const double* x, double weight, double* t) = nullptr;
    void (*dots)(const Columns<double>& columns, const double* x, double weight, double* t) = nullptr;
    // y += sum over j of weight * t[j] * column j
    void (*sum_digits)(const Columns<std::int8_t>& columns, const double* t, double weight, double* y) = nullptr;
    void (*sum)(const Columns<double>& columns, const double* t, double weight, double* y) = nullptr;
};

Kernels best_kernels() noexcept;

// The loops of one kind: "plain", "avx2" or "avx512". Returns false if this machine or build does not have them. For
// tests and comparisons.
bool kernels_of(const char* kind, Kernels& found) noexcept;

}  // namespace penstock::hmatrix
