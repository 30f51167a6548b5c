// Sweeps over a stored matrix: compared with its decoded numbers, by tiers, and for several vectors. Every source gives
// the same bits.
#include "hmatrix/multiply/host_product.hpp"
#include "hmatrix/multiply/stored_matrix.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hmatrix/multiply/source/cached_source.hpp"
#include "hmatrix/multiply/stored_rig.hpp"

namespace penstock::hmatrix {
namespace {

TEST(StoredMatrix, products_are_those_of_the_leaves_for_every_accuracy) {
    for (const double eps : {1e-4, 1e-8}) {  // the second is beyond single precision
        StoredRig rig(Encoding::tiers, 400, 5, eps);
        const MatrixFile file = rig.open();
        CachedSource source(rig.context, rig.workers, file, {});
        HostProduct matrix_product(file, rig.workers);
        StoredMatrix matrix(file, source, matrix_product, {});
        const std::vector<double> x = random_vector(400, 1);
        for (int tiers = 1; tiers <= file.tiers(); ++tiers) {
            std::vector<double> y(400);
            matrix.apply(x.data(), y.data(), 1, file.head().accuracies[tiers - 1]);
            const double left = difference(y, rig.product(file, x, tiers));
            EXPECT_LE(left, file.head().accuracies[tiers - 1] < 3e-7 ? 1e-13 : 1e-6) << tiers << " tiers";
        }
        EXPECT_EQ(matrix.sweeps(), file.tiers());
        std::vector<double> most(400), limited(400);
        matrix.apply(x.data(), most.data(), 1, 0);
        EXPECT_LE(difference(most, rig.product(file, x, file.tiers())), 1e-6) << "0: as exact as it is stored";
        HostProduct coarse_product(file, rig.workers);
        StoredMatrix coarse(file, source, coarse_product, {2, false});
        coarse.apply(x.data(), limited.data(), 1, 0);
        EXPECT_LE(difference(limited, rig.product(file, x, 2)), 1e-6) << "never more than two tiers";
    }
}

TEST(StoredMatrix, doubles_are_exact) {
    StoredRig rig(Encoding::fp64);
    const MatrixFile file = rig.open();
    CachedSource source(rig.context, rig.workers, file, {});
    HostProduct matrix_product(file, rig.workers);
    StoredMatrix matrix(file, source, matrix_product, {});
    const std::vector<double> x = random_vector(300, 2);
    std::vector<double> y(300);
    matrix.apply(x.data(), y.data(), 1, 0.1);
    EXPECT_LE(difference(y, rig.product(file, x, 1)), 1e-14);
}

TEST(StoredMatrix, several_vectors_are_several_products_of_one_sweep) {
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        StoredRig rig(encoding);
        const MatrixFile file = rig.open();
        CachedSource source(rig.context, rig.workers, file, {});
        HostProduct matrix_product(file, rig.workers);
        StoredMatrix matrix(file, source, matrix_product, {});
        for (const std::int64_t count : {1, 2, 3, 9}) {
            const std::vector<double> x = random_vector(300 * count, 3);
            std::vector<double> together(300 * count), alone(300);
            const std::int64_t sweeps = matrix.sweeps();
            matrix.apply(x.data(), together.data(), count, 0);
            EXPECT_EQ(matrix.sweeps(), sweeps + 1);
            for (std::int64_t c = 0; c < count; ++c) {
                matrix.apply(x.data() + c * 300, alone.data(), 1, 0);
                ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + c * 300)) << c << " of " << count;
            }
        }
    }
}

TEST(StoredMatrix, the_size_of_vectors_does_not_matter) {
    StoredRig rig(Encoding::tiers);
    const MatrixFile file = rig.open();
    CachedSource source(rig.context, rig.workers, file, {});
    HostProduct matrix_product(file, rig.workers);
    StoredMatrix matrix(file, source, matrix_product, {});
    const std::vector<double> x = random_vector(300, 4);
    std::vector<double> right(300);
    matrix.apply(x.data(), right.data(), 1, 0);
    std::vector<double> scaled(900), y(900);
    const int powers[] = {-900, -130, 900};  // one product with a different scale in each column
    for (int c = 0; c < 3; ++c) {
        for (int i = 0; i < 300; ++i) scaled[c * 300 + i] = std::ldexp(x[i], powers[c]);
    }
    matrix.apply(scaled.data(), y.data(), 3, 0);
    for (int c = 0; c < 3; ++c) {
        for (int i = 0; i < 300; ++i) ASSERT_EQ(y[c * 300 + i], std::ldexp(right[i], powers[c])) << c;
    }
    const std::vector<double> zeros(300);
    matrix.apply(zeros.data(), right.data(), 1, 0);
    EXPECT_EQ(right, zeros);
}

TEST(StoredMatrix, the_same_bits_from_memory_and_through_caches_of_any_size) {
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        StoredRig rig(encoding);
        const MatrixFile file = rig.open();
        CachedSource whole(rig.context, rig.workers, file, {});
        HostProduct in_memory_product(file, rig.workers);
        StoredMatrix in_memory(file, whole, in_memory_product, {});
        const std::vector<double> x = random_vector(600, 5);
        std::vector<double> right(600), y(600);
        in_memory.apply(x.data(), right.data(), 2, 0);
        const std::int64_t page = 4096, largest = (file.largest_batch() + page - 1) / page * page + page;
        for (const bool zig_zag : {false, true}) {
            for (const std::int64_t slots : {1, 2, 3, 5, 8}) {
                for (const std::int64_t pinned : {0, 3}) {
                    CacheOptions options;
                    options.pinned_batches = pinned;
                    options.cache_bytes = slots * largest + pinned * largest;
                    CachedSource source(rig.context, rig.workers, file, options);
                    HostProduct matrix_product(file, rig.workers);
                    StoredMatrix matrix(file, source, matrix_product, {0, zig_zag});
                    for (int sweep = 0; sweep < 4; ++sweep) {
                        matrix.apply(x.data(), y.data(), 2, 0);
                        // A backward sweep adds the parts of a result in another order.
                        if (zig_zag && sweep % 2 == 1) {
                            EXPECT_LE(difference(y, right), 1e-14);
                        } else {
                            ASSERT_EQ(y, right) << slots << " slots, sweep " << sweep;
                        }
                    }
                }
            }
        }
    }
}

// Another number of threads adds in another order, so the results agree up to rounding.
TEST(StoredMatrix, any_number_of_workers_gives_the_same_product) {
    StoredRig rig(Encoding::tiers, 200, 3);
    const MatrixFile file = rig.open();
    const std::vector<double> x = random_vector(200, 6);
    const std::vector<double> right = rig.product(file, x, file.tiers());
    for (const int threads : {1, 2, 3, 16}) {
        Workers workers(threads);
        CachedSource source(rig.context, workers, file, {});
        HostProduct matrix_product(file, workers);
        StoredMatrix matrix(file, source, matrix_product, {});
        std::vector<double> y(200), again(200);
        matrix.apply(x.data(), y.data(), 1, 0);
        matrix.apply(x.data(), again.data(), 1, 0);
        EXPECT_LE(difference(y, right), 1e-6) << threads;
        EXPECT_EQ(y, again) << "the same bits with as many workers";
    }
}

}  // namespace
}  // namespace penstock::hmatrix
