// See block_jacobi.hpp.
//
// LU with partial pivoting works panel by panel. It factors a panel column by column, then updates the rest of the
// block with four columns of L at a time. The rest thus passes through the caches once for each panel. Workers share
// the blocks; one worker factors a whole block.
#include "hmatrix/solve/block_jacobi.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "hmatrix/solve/add_columns.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kPanel = 32;
constexpr double kSingular = 2.2e-16;     // relative to its column, times the rows: a smaller pivot is rounding
constexpr std::int64_t kAlone = 1 << 16;  // with fewer numbers in all factors, waking a thread is not worth it

[[noreturn]] void refuse(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "factor diagonal blocks", cause, advice);
}

std::string name_of(std::size_t block, std::int64_t offset, std::int64_t size) {
    return "block " + std::to_string(block) + ", rows " + std::to_string(offset) + " to " +
           std::to_string(offset + size - 1) + ",";
}

void check_tiling(std::int64_t unknowns, const std::vector<DiagonalBlock>& blocks) {
    std::int64_t next = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const DiagonalBlock& block = blocks[i];
        const std::string name = name_of(i, block.offset, block.size);
        if (block.size < 1 || block.size > kLargestBlock) {
            refuse("block " + std::to_string(i) + " has " + std::to_string(block.size) + " rows",
                   "give 1 to " + std::to_string(kLargestBlock));
        }
        if (block.offset != next) {
            refuse(name + " does not begin at row " + std::to_string(next),
                   "blocks must follow each other without gaps or overlap");
        }
        if (static_cast<std::int64_t>(block.values.size()) != block.size * block.size) {
            refuse(name + " holds " + std::to_string(block.values.size()) + " numbers", "give size * size");
        }
        if (!std::all_of(block.values.begin(), block.values.end(), [](double value) { return std::isfinite(value); })) {
            refuse(name + " holds a number that is not finite", "check the entries of the matrix");
        }
        next += block.size;
    }
    if (next != unknowns) {
        refuse("the blocks end at row " + std::to_string(next) + " of " + std::to_string(unknowns),
               "give blocks for all rows");
    }
}

double size_of(const double* x, std::int64_t count) {
    double largest = 0;
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
    return largest;
}

struct Lu {
    std::int64_t n;
    double* a;
    std::int32_t* pivots;
    std::vector<double> sizes{};  // largest magnitude of each column of A

    double* column(std::int64_t j) const noexcept { return a + j * n; }
    bool factor();  // returns false if the block is singular
    bool factor_panel(std::int64_t first, std::int64_t last) const noexcept;
    void update(std::int64_t first, std::int64_t last) const noexcept;
    void swap_rows(std::int64_t row, std::int64_t from, std::int64_t to) const noexcept;
};

void Lu::swap_rows(std::int64_t row, std::int64_t from, std::int64_t to) const noexcept {
    const std::int64_t other = pivots[row];
    if (other == row) return;
    for (std::int64_t j = from; j < to; ++j) std::swap(column(j)[row], column(j)[other]);
}

bool Lu::factor_panel(std::int64_t first, std::int64_t last) const noexcept {
    for (std::int64_t k = first; k < last; ++k) {
        double* const own = column(k);
        const double* const largest =
            std::max_element(own + k, own + n, [](double x, double y) { return std::abs(x) < std::abs(y); });
        pivots[k] = static_cast<std::int32_t>(largest - own);
        if (!(std::abs(*largest) > kSingular * static_cast<double>(n) * sizes[k])) return false;
        swap_rows(k, first, last);
        const double inverse = 1 / own[k];
        for (std::int64_t i = k + 1; i < n; ++i) own[i] *= inverse;
        for (std::int64_t j = k + 1; j < last; ++j) {
            add_one(-column(j)[k], own + k + 1, column(j) + k + 1, n - k - 1);
        }
    }
    return true;
}

// Applies a factored panel to the other columns: swaps their rows, and updates the columns to its right.
void Lu::update(std::int64_t first, std::int64_t last) const noexcept {
    for (std::int64_t k = first; k < last; ++k) {
        swap_rows(k, 0, first);
        swap_rows(k, last, n);
    }
    for (std::int64_t j = last; j < n; ++j) {
        double* const own = column(j);
        for (std::int64_t k = first; k < last; ++k) {
            add_one(-own[k], column(k) + k + 1, own + k + 1, last - k - 1);
        }
        std::int64_t k = first;
        for (; k + 4 <= last; k += 4) {
            add_four({-own[k], -own[k + 1], -own[k + 2], -own[k + 3]}, {column(k) + last, n}, own + last, n - last);
        }
        for (; k < last; ++k) add_one(-own[k], column(k) + last, own + last, n - last);
    }
}

bool Lu::factor() {
    for (std::int64_t j = 0; j < n; ++j) sizes.push_back(size_of(column(j), n));
    for (std::int64_t first = 0; first < n; first += kPanel) {
        const std::int64_t last = std::min(first + kPanel, n);
        if (!factor_panel(first, last)) return false;
        update(first, last);
    }
    return true;
}

void solve_block(std::int64_t n, const double* factors, const std::int32_t* pivots, double* y) noexcept {
    for (std::int64_t k = 0; k < n; ++k) std::swap(y[k], y[pivots[k]]);
    for (std::int64_t k = 0; k < n; ++k) add_one(-y[k], factors + k * n + k + 1, y + k + 1, n - k - 1);
    for (std::int64_t k = n; k-- > 0;) {
        y[k] /= factors[k * n + k];
        add_one(-y[k], factors + k * n, y, k);
    }
}

class HostBlockJacobi final : public LinearOperator {
  public:
    HostBlockJacobi(FactoredBlocks blocks, Workers* workers)
        : blocks_(std::move(blocks)), workers_(workers, blocks_.places.back() >= kAlone) {}

    void apply(const double* x, double* y, std::int64_t count, double) override {
        workers_.for_each(blocks_.count(), [&](int, std::int64_t i) {
            const std::int64_t offset = blocks_.offsets[i];
            const std::int64_t size = blocks_.offsets[i + 1] - offset;
            for (std::int64_t c = 0; c < count; ++c) {
                const std::int64_t at = c * blocks_.unknowns + offset;
                std::copy_n(x + at, size, y + at);
                solve_block(size, &blocks_.factors[blocks_.places[i]], &blocks_.pivots[offset], y + at);
            }
        });
    }

  private:
    FactoredBlocks blocks_;
    LentWorkers workers_;
};

}  // namespace

FactoredBlocks factor_blocks(std::int64_t unknowns, const std::vector<DiagonalBlock>& blocks, Workers* workers) {
    check_tiling(unknowns, blocks);
    FactoredBlocks made{.unknowns = unknowns, .offsets = {0}, .places = {0}, .factors = {}, .pivots = {}};
    for (const DiagonalBlock& block : blocks) {
        made.offsets.push_back(block.offset + block.size);
        made.places.push_back(made.places.back() + block.size * block.size);
    }
    made.factors.resize(static_cast<std::size_t>(made.places.back()));
    made.pivots.resize(static_cast<std::size_t>(unknowns));
    std::vector<char> regular(blocks.size());
    LentWorkers(workers, made.places.back() >= kAlone).for_each(made.count(), [&](int, std::int64_t i) {
        const DiagonalBlock& block = blocks[i];
        double* const place = &made.factors[made.places[i]];
        std::copy(block.values.begin(), block.values.end(), place);
        regular[i] = Lu{block.size, place, &made.pivots[block.offset]}.factor();
    });
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (regular[i]) continue;
        refuse(name_of(i, blocks[i].offset, blocks[i].size) + " is singular",
               "look for duplicate triangles, or take other blocks");
    }
    return made;
}

std::unique_ptr<LinearOperator> make_host_block_jacobi(FactoredBlocks blocks, Workers* workers) {
    return std::make_unique<HostBlockJacobi>(std::move(blocks), workers);
}

}  // namespace penstock::hmatrix
