// The products of a solve with its matrix, one after another: a solve that was killed is repeated without sweeps.
//
// Between products a method does the same to the same numbers. Repeated from its first guess, with the products that
// were kept in place of sweeps, it is where it was after the last of them: basis, directions, counts and history, with
// no word of any method's own state. On the host all bits are the same. A product is only given for the operand that it
// was made of: each is told by its norm and sums with random signs, so that rounding passes and another operand does
// not. A GPU adds in any order, and an inner solve makes more of that than rounding: there operands are kept too, and a
// flexible method goes on with the one that was kept, whose image is exact.
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
// Of the operand's norm: what rounding may grow to in an inner solve, and far below what another method or option
// changes. The first of vectors that are the same bits on every run, the second of a GPU's.
constexpr double kSameOnHost = 1e-9, kSameOnGpu = 1e-3;

// The same columns, and accuracies and operands that differ by no more than this part of them.
bool same(const ProductKey& a, const ProductKey& b, double part);

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
    // While recalling(): the next product. Throws ReplayDiverged when it was made of something else: see same().
    virtual void recall(const ProductKey& key, double part, std::span<double> image) = 0;
    // What the last recalled product was made of, column-major; empty where it was not kept.
    virtual std::span<const double> operand() const noexcept = 0;
    // `operand` may be empty.
    virtual void keep(const ProductKey& key, std::span<const double> operand, std::span<const double> image) = 0;
};

// A x from the log while that has it, else from the matrix and into the log.
class LoggedOperator final : public LinearOperator {
  public:
    // with_operands: what products are made of is kept with them.
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
