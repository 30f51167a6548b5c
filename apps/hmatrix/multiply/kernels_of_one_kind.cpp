// The loops of kernels.hpp, compiled for one kind of processor. PENSTOCK_KERNELS names the function that returns them.
//
// This file must not use inline functions or templates of other headers. The linker would keep one copy of them for all
// kinds, perhaps one with instructions that this machine lacks.
#if defined(__SSE2__)
#include <immintrin.h>
#endif

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

// A step takes as many rows as a vector register of this processor holds, and may read past the end of a column. The
// loops mask what they read there (see kRowsTogether). No loop therefore needs a remainder, and most blocks need only a
// few steps.
#if defined(__AVX512F__)
constexpr int kStep = 16;
#elif defined(__AVX2__)
constexpr int kStep = 8;
#else
constexpr int kStep = 4;
#endif
static_assert(kStep <= kRowsTogether);
typedef float Singles __attribute__((vector_size(kStep * sizeof(float))));
typedef std::int32_t Integers __attribute__((vector_size(kStep * sizeof(std::int32_t))));

constexpr int kDigitsOfOne = 4;
constexpr float kWeights[kDigitsOfOne] = {1.0f, 1.0f / 256, 1.0f / 65536, 1.0f / 16777216};
constexpr std::int32_t kMask[2 * kRowsTogether] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

std::int64_t up_to_four(std::int64_t bytes) { return (bytes + 3) / 4 * 4; }

// Converts kStep signed bytes to float. Intrinsics, because compilers convert element by element or miss the widening
// instruction.
Singles digits_at(const std::int8_t* from) {
#if defined(__AVX512F__)
    const __m128i digits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return reinterpret_cast<Singles>(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(digits)));
#elif defined(__AVX2__)
    const __m128i digits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return reinterpret_cast<Singles>(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(digits)));
#elif defined(__SSE2__)
    std::int32_t four;
    std::memcpy(&four, from, sizeof four);
    const __m128i bytes = _mm_cvtsi32_si128(four), words = _mm_unpacklo_epi8(bytes, bytes);
    return reinterpret_cast<Singles>(_mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(words, words), 24)));
#else
    return Singles{static_cast<float>(from[0]), static_cast<float>(from[1]), static_cast<float>(from[2]),
                   static_cast<float>(from[3])};
#endif
}

Singles singles_at(const float* from) {
    Singles values;
    std::memcpy(&values, from, sizeof values);
    return values;
}

// Keeps the first `left` values (1 to kStep) and sets the others to zero.
Singles first_of(const Singles& values, std::int64_t left) {
    Integers bits, mask;
    std::memcpy(&bits, &values, sizeof bits);
    std::memcpy(&mask, kMask + kRowsTogether - left, sizeof mask);
    bits &= mask;
    Singles made;
    std::memcpy(&made, &bits, sizeof made);
    return made;
}

void add_first(const Singles& values, std::int64_t left, double* y) {
    typedef float HalfSingles __attribute__((vector_size(sizeof values / 2)));
    typedef double HalfDoubles __attribute__((vector_size(sizeof values)));
    const Singles kept = left < kStep ? first_of(values, left) : values;
    HalfSingles halves[2];
    std::memcpy(halves, &kept, sizeof kept);
    for (int half = 0; half < 2; ++half, y += kStep / 2) {
        HalfDoubles sum;
        std::memcpy(&sum, y, sizeof sum);
        sum += __builtin_convertvector(halves[half], HalfDoubles);
        std::memcpy(y, &sum, sizeof sum);
    }
}

float total(const Singles& values) {
    typedef float Four __attribute__((vector_size(4 * sizeof(float))));
    Four parts[kStep / 4];
    std::memcpy(parts, &values, sizeof values);
    for (int half = kStep / 8; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) parts[i] += parts[i + half];
    }
    return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
}

// Lists the columns of a low-rank leaf, of all tiers and digits. Returns their number, rounded up to a multiple of
// four.
std::int64_t list_columns(const TieredBytes& leaf, const TierScratch& to) {
    const std::int64_t v_stride = up_to_four(leaf.columns), u_stride = up_to_four(leaf.rows);
    constexpr std::uint16_t kNone[kDigitsOfOne] = {};
    const std::uint16_t* before = kNone;
    ListedColumn* next = to.columns;
    for (int tier = 0; tier < leaf.tiers; ++tier) {
        const std::uint16_t* now = leaf.counts + tier * kDigitsOfOne;
        const auto* at = reinterpret_cast<const std::int8_t*>(leaf.bytes[tier]);
        for (std::int64_t i = before[0]; i < now[0]; ++i, at += sizeof(float)) {
            std::memcpy(to.scales + i, at, sizeof(float));
        }
        for (int d = 0; d < kDigitsOfOne; ++d) {
            const std::int8_t* u = at + (now[d] - before[d]) * v_stride;
            for (std::int64_t i = before[d]; i < now[d]; ++i, at += v_stride, u += u_stride) {
                *next++ = {at, u, i, kWeights[d], 0};
            }
            at = u;
        }
        before = now;
    }
    while ((next - to.columns) % kTogether != 0) *next++ = {to.columns->v, to.columns->u, 0, 0, 0};
    return next - to.columns;
}

void dots_of_list(const TierScratch& list, std::int64_t listed, std::int64_t rows, const float* x) {
    const std::int64_t last = (rows - 1) / kStep * kStep;
    const Singles end = first_of(singles_at(x + last), rows - last);
    for (const ListedColumn* column = list.columns; column < list.columns + listed; column += kTogether) {
        Singles sums[kTogether];
        for (int k = 0; k < kTogether; ++k) sums[k] = digits_at(column[k].v + last) * end;
        for (std::int64_t i = 0; i < last; i += kStep) {
            const Singles part = singles_at(x + i);
            for (int k = 0; k < kTogether; ++k) sums[k] += digits_at(column[k].v + i) * part;
        }
        for (int k = 0; k < kTogether; ++k) list.t[column[k].vector] += column[k].weight * total(sums[k]);
    }
}

void sum_of_list(const TierScratch& list, std::int64_t listed, std::int64_t rows, double* y) {
    for (std::int64_t i = 0; i < rows; i += kStep) {
        Singles sums[kTogether] = {};
        for (const ListedColumn* column = list.columns; column < list.columns + listed; column += kTogether) {
            for (int k = 0; k < kTogether; ++k) sums[k] += digits_at(column[k].u + i) * column[k].factor;
        }
        add_first((sums[0] + sums[1]) + (sums[2] + sums[3]), rows - i, y + i);
    }
}

void low_rank(const TieredBytes& leaf, const VectorPairs<float>& pairs, const TierScratch& scratch) {
    const auto& [x, y, count] = pairs;
    const std::int64_t vectors = leaf.counts[(leaf.tiers - 1) * kDigitsOfOne];
    if (vectors == 0) return;
    const std::int64_t listed = list_columns(leaf, scratch);
    for (std::int64_t c = 0; c < count; ++c) {
        for (std::int64_t i = 0; i < vectors; ++i) scratch.t[i] = 0;
        dots_of_list(scratch, listed, leaf.columns, x.values + c * x.stride);
        for (std::int64_t i = 0; i < vectors; ++i) scratch.t[i] *= scratch.scales[i];
        for (ListedColumn* column = scratch.columns; column < scratch.columns + listed; ++column) {
            column->factor = column->weight * scratch.t[column->vector];
        }
        sum_of_list(scratch, listed, leaf.rows, y.values + c * y.stride);
    }
}

struct DenseDigits {
    const std::int8_t* digits[kDigitsOfOne];  // the block's bytes of each digit
    float scale;
};

template <int kCount>
void dense_of(const TieredBytes& leaf, const DenseDigits& block, const float* x, double* y) {
    const std::int64_t stride = up_to_four(leaf.rows);
    for (std::int64_t i = 0; i < leaf.rows; i += kStep) {
        Singles sums[kCount] = {};
        for (std::int64_t j = 0; j < leaf.columns; ++j) {
            for (int d = 0; d < kCount; ++d) sums[d] += digits_at(block.digits[d] + j * stride + i) * x[j];
        }
        Singles sum = sums[0];
        for (int d = 1; d < kCount; ++d) sum += sums[d] * kWeights[d];
        add_first(sum * block.scale, leaf.rows - i, y + i);
    }
}

void dense(const TieredBytes& leaf, const VectorPairs<float>& pairs) {
    DenseDigits block{};
    const std::int64_t bytes = leaf.columns * up_to_four(leaf.rows);
    int found = 0;
    for (int tier = 0; tier < leaf.tiers; ++tier) {
        if (leaf.bytes[tier] == nullptr) continue;  // this tier holds nothing of the block
        const auto* at = reinterpret_cast<const std::int8_t*>(leaf.bytes[tier]) + (tier == 0 ? sizeof(float) : 0);
        for (int d = found; d < kDigitsOfOne && leaf.counts[tier * kDigitsOfOne + d] != 0; ++d, at += bytes) {
            block.digits[found++] = at;
        }
    }
    if (found == 0) return;
    // Tier 0 of a dense block holds its scale and at least one digit.
    std::memcpy(&block.scale, leaf.bytes[0], sizeof block.scale);
    for (std::int64_t c = 0; c < pairs.count; ++c) {
        const float* from = pairs.x.values + c * pairs.x.stride;
        double* to = pairs.y.values + c * pairs.y.stride;
        if (found == 1) dense_of<1>(leaf, block, from, to);
        if (found == 2) dense_of<2>(leaf, block, from, to);
        if (found == 3) dense_of<3>(leaf, block, from, to);
        if (found == 4) dense_of<4>(leaf, block, from, to);
    }
}

void tiers_of(const TieredBytes& leaf, const VectorPairs<float>& pairs, const TierScratch& scratch) {
    return leaf.low_rank ? low_rank(leaf, pairs, scratch) : dense(leaf, pairs);
}

}  // namespace

Kernels PENSTOCK_KERNELS() noexcept {
    return {PENSTOCK_KERNELS_NAME,
            tiers_of,
            dots_of<std::int8_t, double>,
            dots_of<double, double>,
            sum_of<std::int8_t, double>,
            sum_of<double, double>};
}

}  // namespace penstock::hmatrix
