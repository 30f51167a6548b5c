// Vectors in host memory. The order of summation depends on nothing but their length.
//
// A vector is cut into pieces of kPiece numbers. A piece is summed in kLanes lanes, which the compiler turns into
// vector instructions, and the pieces are added in order. Threads take whole pieces only, so a result has the same bits
// on every run and for every number of threads. Within a piece, all columns of a basis use a block of the vector before
// the next block begins. A block fits the nearest cache, so the basis and the vector each come from memory once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "hmatrix/solve/add_columns.hpp"
#include "hmatrix/solve/vectors.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kBlock = 4096;  // 32 KiB: a block stays in a near cache while all columns use it
constexpr std::int64_t kPiece = 8 * kBlock;
constexpr std::int64_t kAlone = 4 * kPiece;  // for shorter vectors, waking a thread is not worth it
constexpr int kLanes = 4;

double sum_of_products(const double* x, const double* y, std::int64_t count) noexcept {
    double lane[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (int l = 0; l < kLanes; ++l) lane[l] += x[i + l] * y[i + l];
    }
    for (int l = 0; i < count; ++i, ++l) lane[l] += x[i] * y[i];
    for (int half = kLanes / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    }
    return lane[0];
}

// Adds the same sums for four columns to sums[0] to sums[3]. One pass over x serves four streams from memory.
void sums_of_four(const FourColumns& of, const double* x, std::int64_t count, double* sums) noexcept {
    const double* const columns = of.first;
    const std::int64_t stride = of.stride;
    double lane[4][kLanes] = {};
    const std::int64_t whole = count - count % kLanes;
    for (std::int64_t i = 0; i < whole; i += kLanes) {
        for (int l = 0; l < kLanes; ++l) {
            const double value = x[i + l];
            lane[0][l] += columns[i + l] * value;
            lane[1][l] += columns[stride + i + l] * value;
            lane[2][l] += columns[2 * stride + i + l] * value;
            lane[3][l] += columns[3 * stride + i + l] * value;
        }
    }
    for (int c = 0; c < 4; ++c) {
        for (std::int64_t i = whole; i < count; ++i) lane[c][i - whole] += columns[c * stride + i] * x[i];
        sums[c] += (lane[c][0] + lane[c][2]) + (lane[c][1] + lane[c][3]);
    }
}

class HostVectors final : public VectorSpace {
  public:
    HostVectors(std::int64_t size, Workers* workers) : size_(size), workers_(workers, size >= kAlone) {}

    bool repeatable() const noexcept override { return true; }
    std::int64_t size() const noexcept override { return size_; }

    std::shared_ptr<double> allocate(std::int64_t count) override {
        try {
            if (count > std::numeric_limits<std::int64_t>::max() / 8 / size_) throw std::bad_alloc();
            const auto owner = std::make_shared<std::vector<double>>(static_cast<std::size_t>(count * size_));
            return {owner, owner->data()};
        } catch (const std::bad_alloc&) {
            throw Error(ErrorCode::out_of_memory, "allocate vectors",
                        "no memory for " + std::to_string(count) + " vectors of " + std::to_string(size_) + " doubles",
                        "restart sooner (option restart), or solve for fewer right-hand sides at once");
        }
    }
    void upload(std::span<const double> host, double* to) override {
        std::copy_n(host.data(), std::min<std::int64_t>(size_, static_cast<std::int64_t>(host.size())), to);
    }
    void download(const double* from, std::span<double> host) override {
        std::copy_n(from, std::min<std::int64_t>(size_, static_cast<std::int64_t>(host.size())), host.data());
    }
    void copy(const double* from, double* to) override {
        for_pieces([=](std::int64_t first, std::int64_t count) { std::copy_n(from + first, count, to + first); });
    }
    void scale(double factor, double* x) override {
        for_pieces([=](std::int64_t first, std::int64_t count) {
            for (std::int64_t i = first; i < first + count; ++i) x[i] *= factor;
        });
    }
    void add(double factor, const double* x, double* y) override {
        for_pieces([=](std::int64_t first, std::int64_t count) { add_one(factor, x + first, y + first, count); });
    }
    double dot(const double* x, const double* y) override {
        double result = 0;
        dots(x, y, std::span(&result, 1));
        return result;
    }
    void dots(const double* basis, const double* x, std::span<double> result) override;
    void combine(const double* basis, std::span<const double> factors, double* y) override;

  private:
    std::int64_t pieces() const noexcept { return (size_ + kPiece - 1) / kPiece; }
    template <class Work>
    void for_pieces(const Work& work) {
        workers_.for_each(pieces(), [&](int, std::int64_t piece) {
            work(piece * kPiece, std::min(kPiece, size_ - piece * kPiece));
        });
    }

    std::int64_t size_;
    LentWorkers workers_;
    std::vector<double> sums_;  // sums of each piece, one for each column
};

void HostVectors::dots(const double* basis, const double* x, std::span<double> result) {
    const auto columns = static_cast<std::int64_t>(result.size());
    sums_.assign(static_cast<std::size_t>(pieces() * columns), 0.0);
    for_pieces([&](std::int64_t first, std::int64_t count) {
        double* sums = sums_.data() + first / kPiece * columns;
        for (std::int64_t at = first; at < first + count; at += kBlock) {
            const std::int64_t length = std::min(kBlock, first + count - at);
            std::int64_t c = 0;
            for (; c + 4 <= columns; c += 4) sums_of_four({basis + c * size_ + at, size_}, x + at, length, sums + c);
            for (; c < columns; ++c) {
                sums[c] += sum_of_products(basis + c * size_ + at, x + at, length);
            }
        }
    });
    std::fill(result.begin(), result.end(), 0.0);
    for (std::int64_t piece = 0; piece < pieces(); ++piece) {
        for (std::int64_t c = 0; c < columns; ++c) result[c] += sums_[piece * columns + c];
    }
}

void HostVectors::combine(const double* basis, std::span<const double> factors, double* y) {
    const auto columns = static_cast<std::int64_t>(factors.size());
    for_pieces([&](std::int64_t first, std::int64_t count) {
        for (std::int64_t at = first; at < first + count; at += kBlock) {
            const std::int64_t length = std::min(kBlock, first + count - at);
            std::int64_t c = 0;
            for (; c + 4 <= columns; c += 4) {
                add_four({factors[c], factors[c + 1], factors[c + 2], factors[c + 3]}, {basis + c * size_ + at, size_},
                         y + at, length);
            }
            for (; c < columns; ++c) add_one(factors[c], basis + c * size_ + at, y + at, length);
        }
    });
}

}  // namespace

std::unique_ptr<VectorSpace> make_host_vectors(std::int64_t size, Workers* workers) {
    if (size < 1) {
        throw Error(ErrorCode::invalid_argument, "make vectors",
                    "a vector of " + std::to_string(size) + " numbers is not possible", "give at least one unknown");
    }
    return std::make_unique<HostVectors>(size, workers);
}

}  // namespace penstock::hmatrix
