// Vectors in host memory: sums compared with long double, the same bits on every run, and blocks compared with single
// columns.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "hmatrix/solve/vectors.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::vector<double> random_numbers(std::int64_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<double> made(static_cast<std::size_t>(count));
    for (double& value : made) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    return made;
}

double exact_dot(const double* x, const double* y, std::int64_t count) {
    long double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<long double>(x[i]) * y[i];
    return static_cast<double>(sum);
}

// Sizes around a lane, a block and a piece, and one long enough for several threads.
constexpr std::array<std::int64_t, 10> kSizes{1, 2, 7, 8, 9, 1023, 1025, 32767, 32769, 200003};

TEST(HostVectors, blocks_of_columns_agree_with_sums_of_more_digits) {
    for (const std::int64_t size : kSizes) {
        const auto space = make_host_vectors(size);
        for (const std::int64_t columns : {1, 3, 4, 6}) {
            const std::vector<double> basis = random_numbers(size * columns, 1);
            const std::vector<double> x = random_numbers(size, 2);
            std::vector<double> found(static_cast<std::size_t>(columns));
            space->dots(basis.data(), x.data(), found);
            std::vector<double> y = x, expected = x;
            space->combine(basis.data(), found, y.data());
            for (std::int64_t c = 0; c < columns; ++c) {
                const double* column = basis.data() + c * size;
                EXPECT_NEAR(found[c], exact_dot(column, x.data(), size), 1e-15 * static_cast<double>(size));
                EXPECT_EQ(space->dot(column, x.data()), found[c]);
                for (std::int64_t i = 0; i < size; ++i) expected[i] += found[c] * column[i];
            }
            for (std::int64_t i = 0; i < size; ++i) ASSERT_NEAR(y[i], expected[i], 1e-11) << size << " at " << i;
        }
    }
}

TEST(HostVectors, single_vector_operations_do_what_they_say) {
    for (const std::int64_t size : kSizes) {
        const auto space = make_host_vectors(size);
        const std::shared_ptr<double> block = space->allocate(2);
        double* first = block.get();
        double* second = first + size;
        EXPECT_EQ(space->dot(first, first), 0) << "vectors come zeroed";
        const std::vector<double> host = random_numbers(size, 3);
        space->upload(host, first);
        space->copy(first, second);
        space->scale(-2, second);
        space->add(3, first, second);
        std::vector<double> back(host.size());
        space->download(second, back);
        for (std::int64_t i = 0; i < size; ++i) ASSERT_DOUBLE_EQ(back[i], host[i]);
    }
}

TEST(HostVectors, sums_are_the_same_bits_on_every_run_and_for_every_number_of_threads) {
    const std::int64_t size = 1000003;
    const std::vector<double> x = random_numbers(size, 4), y = random_numbers(size, 5);
    const double once = make_host_vectors(size)->dot(x.data(), y.data());
    const auto space = make_host_vectors(size);
    for (int run = 0; run < 20; ++run) ASSERT_EQ(space->dot(x.data(), y.data()), once);
    for (const int threads : {1, 2, 3, 7}) {
        Workers workers(threads);
        ASSERT_EQ(make_host_vectors(size, &workers)->dot(x.data(), y.data()), once) << threads << " threads";
    }
}

TEST(HostVectors, what_cannot_be_is_refused) {
    EXPECT_THROW(make_host_vectors(0), Error);
    try {
        make_host_vectors(1 << 20)->allocate(std::int64_t{1} << 60);
        FAIL() << "memory that is not there was given";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    }
}

}  // namespace
}  // namespace penstock::hmatrix
