// A log of products in a file beside a checkpoint, which names how much of it belongs to it.
//
// Layout (little-endian): a header of 64 bytes (fields in product_file.cpp), the first guess, then entries, each with a
// checksum of its own. Entries are added and settled on stable storage before a checkpoint names them; what lies behind
// those is of a process that was killed, and is written over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hmatrix/solve/continued/checkpoint.hpp"
#include "hmatrix/solve/continued/product_log.hpp"

namespace penstock::hmatrix {

// Where a repeated solve begins.
struct FirstGuess {
    std::int64_t iterations = 0;  // made before it, and not repeated
    std::int64_t sweeps = 0;
    std::vector<double> x;  // column-major
};

class ProductFile final : public ProductLog {
  public:
    // A new one; the file is made at the first settle(), in place of an older log. Throws Error if another file has its
    // name.
    ProductFile(const Context& context, std::string file, const Problem& problem, FirstGuess first);
    // The log that a checkpoint names, from its beginning. Throws Error: not_found; invalid_argument where it is not
    // that log, not of this problem, or too short.
    ProductFile(const Context& context, std::string file, const Problem& problem, const ProductsMark& mark);

    const FirstGuess& first() const noexcept { return first_; }
    // All that was kept is on stable storage when this returns; for the checkpoint that is made next.
    ProductsMark settle();

    bool recalling() const noexcept override { return next_ < settled_; }
    void recall(const ProductKey& key, double part, std::span<double> image) override;
    std::span<const double> operand() const noexcept override { return operand_; }
    void keep(const ProductKey& key, std::span<const double> operand, std::span<const double> image) override;

  private:
    void make();
    std::uint32_t read_header(const ProductsMark& mark);
    std::vector<std::byte> entry_at(std::uint64_t offset, std::size_t bytes) const;

    const Context& context_;
    std::string file_;
    Problem problem_;
    FirstGuess first_;
    std::uint64_t id_ = 0;
    std::uint64_t settled_ = 0;  // bytes of the file that count; 0: it is not made yet
    std::uint64_t next_ = 0;     // where the entry lies that is recalled next
    std::vector<std::byte> pending_;
    std::vector<double> operand_;  // of the product that was recalled last
    std::optional<File> open_;
};

}  // namespace penstock::hmatrix
