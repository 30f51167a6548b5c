// A log of products in a file beside a checkpoint. The checkpoint names how many bytes of the log belong to it.
//
// Layout (little-endian): a header of 64 bytes (product_file.cpp lists the fields), the first guess, then entries, each
// with its own checksum. Entries are made durable before a checkpoint names them. Bytes after those that a checkpoint
// names come from a process that was killed; the next entries overwrite them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hmatrix/solve/continued/checkpoint.hpp"
#include "hmatrix/solve/continued/product_log.hpp"

namespace penstock::hmatrix {

// The state in which a repeated solve begins.
struct FirstGuess {
    std::int64_t iterations = 0;  // iterations made before it, which are not repeated
    std::int64_t sweeps = 0;
    std::vector<double> x;  // column-major
};

class ProductFile final : public ProductLog {
  public:
    // Starts a new log. The first settle() makes the file and replaces an older log. Throws Error if the name belongs
    // to a file that is not a log.
    ProductFile(const Context& context, std::string file, const Problem& problem, FirstGuess first);
    // Opens the log that a checkpoint names, from its beginning. Throws Error{not_found}, and Error{invalid_argument}
    // if the file is not that log, belongs to another problem, or is too short.
    ProductFile(const Context& context, std::string file, const Problem& problem, const ProductsMark& mark);

    const FirstGuess& first() const noexcept { return first_; }
    // Makes all entries durable. Returns the mark for the checkpoint that the caller writes next.
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
    std::uint64_t settled_ = 0;  // bytes of the file that are valid; 0: the file does not exist yet
    std::uint64_t next_ = 0;     // offset of the next entry to recall
    std::vector<std::byte> pending_;
    std::vector<double> operand_;  // operand of the product that was recalled last
    std::optional<File> open_;
};

}  // namespace penstock::hmatrix
