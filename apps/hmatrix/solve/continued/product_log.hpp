// A log of a solve's products with its matrix, in order. With it, a solve whose process was killed is repeated without
// sweeps.
//
// Between products a method is deterministic. If it starts from its first guess and receives the logged products
// instead of sweeps, it reaches the state after the last of them: basis, directions, counts and history. The log needs
// to know nothing of a method's state. On the host all bits are equal. The log returns a product only for the operand
// that made it. It identifies an operand by its norm and by sums with random signs, so that rounding passes and another
// operand does not. A GPU adds in any order, and an inner solve amplifies the difference beyond rounding. In this case
// the log keeps operands too, and a flexible method continues with the kept operand, whose image is exact.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

// Identifies the operand of a product.
struct ProductKey {
    std::int64_t columns = 0;
    double accuracy = 0;
    std::vector<double> marks;  // kMarks for each column: its norm, and sums of its numbers with random signs
};
constexpr std::int64_t kMarks = 5;

// The key of a column-major `operand` with `columns` columns.
ProductKey key_of(std::span<const double> operand, std::int64_t columns, double accuracy);
// Permitted difference between operands, relative to their norm. It covers what rounding may grow to in an inner solve,
// and is far below the effect of another method or option. kSameOnHost is for vectors with the same bits on every run,
// kSameOnGpu for a GPU's.
constexpr double kSameOnHost = 1e-9, kSameOnGpu = 1e-3;

// Whether the columns are equal, and the accuracies and operands differ by at most `part`, relative to a.
bool same(const ProductKey& a, const ProductKey& b, double part);

// Thrown if the repeated solve asks for another product than the logged one, or the log is damaged.
class ReplayDiverged : public std::exception {
  public:
    explicit ReplayDiverged(std::string cause) : cause_(std::move(cause)) {}
    const char* what() const noexcept override { return cause_.c_str(); }

  private:
    std::string cause_;
};

class ProductLog {
  public:
    virtual ~ProductLog() = default;
    // Whether logged products remain that recall() has not returned.
    virtual bool recalling() const noexcept = 0;
    // Reads the next product. Requires: recalling(). Throws ReplayDiverged if it belongs to another operand; see
    // same().
    virtual void recall(const ProductKey& key, double part, std::span<double> image) = 0;
    // The operand of the last recalled product, column-major. Empty if the log did not keep it.
    virtual std::span<const double> operand() const noexcept = 0;
    // Appends a product. `operand` may be empty.
    virtual void keep(const ProductKey& key, std::span<const double> operand, std::span<const double> image) = 0;
};

// Computes A x: takes it from the log while products remain, then uses the matrix and appends to the log.
class LoggedOperator final : public LinearOperator {
  public:
    // with_operands: the log keeps operands with their products.
    LoggedOperator(VectorSpace& space, LinearOperator& matrix, ProductLog& log, bool with_operands)
        : space_(space), matrix_(matrix), log_(log), with_operands_(with_operands) {}
    void apply(const double* x, double* y, std::int64_t count, double accuracy) override;

  private:
    void download(const double* from, std::int64_t count, std::vector<double>& to);

    VectorSpace& space_;
    LinearOperator& matrix_;
    ProductLog& log_;
    bool with_operands_;
    std::vector<double> operand_, image_;
};

}  // namespace penstock::hmatrix
