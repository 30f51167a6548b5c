// The products of a solve with its matrix, one after another: a solve that was killed is repeated without sweeps.
//
// Between products a method does the same to the same numbers. Repeated from its first guess, with the products that
// were kept in place of sweeps, it is where it was after the last of them: basis, directions, counts and history, with
// no word of any method's own state. On the host all bits are the same. A product is only given for the operand that it
// was made of: each is told by its norm and sums with random signs, so that rounding passes (devices add in any order)
// and another operand does not.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

// What a product was made of.
struct ProductKey {
    std::int64_t columns = 0;
    double accuracy = 0;
    std::vector<double> marks;  // kMarks of each column: its norm, and sums of its numbers with signs
};
constexpr std::int64_t kMarks = 5;

// Of column-major `operand` of `columns` columns.
ProductKey key_of(std::span<const double> operand, std::int64_t columns, double accuracy);
// The same columns and accuracy, and operands that differ by no more than rounding and what grows from it.
bool same(const ProductKey& a, const ProductKey& b);

// The solve that is repeated asks for another product than the one that was kept, or what was kept is damaged.
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
    // There are products that were kept and not yet given.
    virtual bool recalling() const noexcept = 0;
    // While recalling(): the next product. Throws ReplayDiverged when it was made of something else.
    virtual void recall(const ProductKey& key, std::span<double> image) = 0;
    virtual void keep(const ProductKey& key, std::span<const double> image) = 0;
};

// A x from the log while that has it, else from the matrix and into the log.
class LoggedOperator final : public LinearOperator {
  public:
    LoggedOperator(VectorSpace& space, LinearOperator& matrix, ProductLog& log)
        : space_(space), matrix_(matrix), log_(log) {}
    void apply(const double* x, double* y, std::int64_t count, double accuracy) override;

  private:
    void download(const double* from, std::int64_t count);

    VectorSpace& space_;
    LinearOperator& matrix_;
    ProductLog& log_;
    std::vector<double> host_;
};

}  // namespace penstock::hmatrix
