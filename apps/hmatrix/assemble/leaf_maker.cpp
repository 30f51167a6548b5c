// Makes leaves on the host.
#include "hmatrix/assemble/leaf_maker.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

void check_finite(const Factors& block, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns) {
    for (std::size_t i = 0; i < block.u.size(); ++i) {
        if (std::isfinite(block.u[i])) continue;
        throw Error(ErrorCode::invalid_argument, "assemble a matrix",
                    "the entry in row " + std::to_string(rows[i % rows.size()]) + ", column " +
                        std::to_string(columns[i / rows.size()]) + " is not a finite number",
                    "look for triangles that coincide, or mend the function that gives entries");
    }
}

// The approximate cost of a leaf, in entries.
std::int64_t cost(const Leaf& leaf) {
    constexpr std::int64_t kUsualRank = 8;
    return leaf.low_rank ? kUsualRank * (leaf.rows + leaf.columns) : leaf.entries();
}

class HostLeafMaker final : public LeafMaker {
  public:
    HostLeafMaker(Workers& workers, const LeafWork& work) : workers_(workers), work_(work) {}

    void make(std::int64_t batch, const Take& take) override {
        const auto first = static_cast<std::int64_t>(work_.batches[batch]);
        const auto many = static_cast<std::int64_t>(work_.batches[batch + 1]) - first;
        std::vector<std::int64_t> order(many);
        std::iota(order.begin(), order.end(), first);
        std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {  // the most expensive leaves first
            return cost(work_.leaves[a]) > cost(work_.leaves[b]);
        });
        // Workers take eight leaves at once, because small leaves take microseconds.
        constexpr std::int64_t kAtOnce = 8;
        workers_.for_each((many + kAtOnce - 1) / kAtOnce, [&](int worker, std::int64_t group) {
            for (std::int64_t i = group * kAtOnce; i < std::min(many, (group + 1) * kAtOnce); ++i) {
                take(worker, order[i], make_leaf(work_, work_.leaves[order[i]]));
            }
        });
    }

  private:
    Workers& workers_;
    LeafWork work_;
};

}  // namespace

AcaResult make_leaf(const LeafWork& work, const Leaf& leaf) {
    const auto rows = work.order.subspan(leaf.row, leaf.rows), columns = work.order.subspan(leaf.column, leaf.columns);
    if (leaf.low_rank) {
        AcaOptions options = work.aca;
        options.from_last_row = from_last_row(leaf);
        return approximate(*work.entries, rows, columns, options);
    }
    AcaResult made;
    made.factors = {leaf.rows, leaf.columns, 0, false, {}, {}};
    made.factors.u.resize(leaf.entries());
    for (std::int64_t j = 0; j < leaf.columns; ++j) {
        work.entries->column(rows, columns[j], made.factors.u.data() + j * leaf.rows);
    }
    check_finite(made.factors, rows, columns);
    made.evaluated = leaf.entries();
    made.converged = true;
    return made;
}

std::unique_ptr<LeafMaker> make_host_leaf_maker(Workers& workers, const LeafWork& work) {
    return std::make_unique<HostLeafMaker>(workers, work);
}

}  // namespace penstock::hmatrix
