// A small matrix in a file, for tests of products: the host's own product with it, and access to one batch at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "hmatrix/assemble/assemble.hpp"
#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/multiply/host_product.hpp"
#include "hmatrix/multiply/source/cached_source.hpp"
#include "hmatrix/multiply/stored_matrix.hpp"
#include "support/sanitized.hpp"

namespace penstock::hmatrix::test {

class StoredSphere {
  public:
    static constexpr std::int64_t kTriangles = penstock::test::kSanitized ? 720 : 1280;

    explicit StoredSphere(Encoding encoding) : context_(on_host()), workers_(2) {
        const LaplaceProblem problem(sphere(kTriangles));
        const FunctorEntries entries(problem.collocation());
        AssembleOptions options;
        options.encoding = encoding;
        options.eps = 1e-5;
        options.batches = 3;
        const std::string path = directory_.file("matrix.hmat");
        assemble(context_, workers_, {problem.centroids(), &entries}, path, options);
        file_.emplace(MatrixFile::open(context_, workers_, path));
        source_ = std::make_unique<CachedSource>(context_, workers_, *file_, CacheOptions{});
        std::mt19937 draw(7);
        std::normal_distribution<double> normal;
        for (double& value : x_) value = normal(draw);
    }

    const MatrixFile& file() const { return *file_; }
    const std::vector<double>& x() const { return x_; }

    std::vector<double> product_by_the_host(int tiers) {
        HostProduct product(*file_, workers_);
        StoredMatrix matrix(*file_, *source_, product, StoredOptions{tiers, false});
        std::vector<double> y(kTriangles);
        matrix.apply(x_.data(), y.data(), 1, 0);
        return y;
    }

    // Calls visit(number, view) for each batch.
    template <class Visit>
    void each_batch(int tiers, const Visit& visit) {
        std::vector<std::int64_t> order(file_->head().batches);
        std::iota(order.begin(), order.end(), 0);
        source_->begin({order, {}, tiers});
        for (const std::int64_t batch : order) {
            visit(batch, source_->take(batch));
            source_->give_back(batch);
        }
    }

  private:
    static ContextOptions on_host() {
        ContextOptions options;
        options.device = "host";
        return options;
    }

    penstock::test::TempDirectory directory_;
    Context context_;
    Workers workers_;
    std::optional<MatrixFile> file_;
    std::unique_ptr<CachedSource> source_;
    std::vector<double> x_ = std::vector<double>(kTriangles);
};

// The relative error in the Euclidean norm.
inline double difference(const std::vector<double>& one, const std::vector<double>& other) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        apart += (one[i] - other[i]) * (one[i] - other[i]);
        size += other[i] * other[i];
    }
    return std::sqrt(apart / size);
}

}  // namespace penstock::hmatrix::test
