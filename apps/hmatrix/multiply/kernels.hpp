// The loops of a product with a leaf: many dot products with one vector, and then one sum of many vectors.
//
// Columns hold signed bytes (digits, see codec/digits.hpp) or doubles. The loops are compiled once for each kind of
// processor that matters, and the best one this machine has is chosen when it is asked for.
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

// Loops in single precision take up to this many rows at a time: bytes behind a column are read, and x and y are read
// and y written (with what it holds) up to this many values behind the leaf's.
constexpr int kRowsTogether = 16;

// A leaf in tiers (codec/tiers.hpp): its first `tiers` tiers. Arrays, not containers, for the loops' sake: see
// kernels_of_one_kind.cpp.
struct TieredBytes {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool low_rank = false;
    int tiers = 0;                           // at least 1
    const std::uint16_t* counts = nullptr;   // [tier][digit]
    const std::byte* const* bytes = nullptr; // of each tier
};

// `count` vectors, each `stride` values behind the one before.
template <class Value>
struct Vectors {
    Value* values = nullptr;
    std::int64_t stride = 0;
};

// One digit of one vector pair.
struct DigitColumn {
    const std::int8_t* v = nullptr;
    const std::int8_t* u = nullptr;
    std::int64_t vector = 0;
    float weight = 0;  // of the digit
    float factor = 0;  // of u in the sum
};

// Memory the loops need for a leaf: for each vector pair, and for each column of digits, up to the next four.
struct TierScratch {
    float* scales = nullptr;
    float* t = nullptr;
    DigitColumn* columns = nullptr;
};

struct Kernels {
    const char* name = "";
    // y += leaf * x for `count` pairs, in single precision.
    void (*tiers)(const TieredBytes& leaf, Vectors<const float> x, Vectors<double> y, std::int64_t count,
                  const TierScratch& scratch) = nullptr;
    // t[j] += weight * (column j . x)
    void (*dots_digits)(const Columns<std::int8_t>& columns, const double* x, double weight, double* t) = nullptr;
    void (*dots)(const Columns<double>& columns, const double* x, double weight, double* t) = nullptr;
    // y += sum over j of weight * t[j] * column j
    void (*sum_digits)(const Columns<std::int8_t>& columns, const double* t, double weight, double* y) = nullptr;
    void (*sum)(const Columns<double>& columns, const double* t, double weight, double* y) = nullptr;
};

Kernels best_kernels() noexcept;

// Of one kind, for tests and comparisons: "plain", "avx2", "avx512". False where this machine or build has it not.
bool kernels_of(const char* kind, Kernels& found) noexcept;

}  // namespace penstock::hmatrix
