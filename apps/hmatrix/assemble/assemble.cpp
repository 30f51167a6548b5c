// The assembly loop: a batch of leaves is approximated and encoded by all workers, then handed to the writer.
#include "hmatrix/assemble/assemble.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "hmatrix/assemble/sample.hpp"
#include "hmatrix/build/aca.hpp"
#include "hmatrix/file/writer.hpp"
#include "hmatrix/text.hpp"
#include "hmatrix/tree/blocks.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

// Tiers leave room for both errors, that of the cross approximation and that of the digits, below eps.
constexpr double kApproximateTo = 0.5;
constexpr double kEncodeTo = 0.6;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

[[noreturn]] void refuse(const std::string& cause, const std::string& advice = {}) {
    throw Error(ErrorCode::invalid_argument, "assemble a matrix", cause, advice);
}

void check(const MatrixProblem& problem, const AssembleOptions& options) {
    if (!(options.eps >= 1e-12 && options.eps <= 0.5)) {
        refuse("eps " + text_of(options.eps) + " is not between 1e-12 and 0.5");
    }
    if (problem.points.empty() || problem.entries == nullptr) refuse("there are no points, or no entries");
    if (options.batch_bytes < 1) refuse("a batch of " + std::to_string(options.batch_bytes) + " bytes holds nothing");
    if (options.batches < 0) refuse(std::to_string(options.batches) + " batches");
    if (options.accuracies.size() > kMaxTiers) refuse("more than " + std::to_string(kMaxTiers) + " tiers");
    for (std::size_t i = 0; i < options.accuracies.size(); ++i) {
        const double before = i == 0 ? 1 : options.accuracies[i - 1];
        if (!(options.accuracies[i] > 0 && options.accuracies[i] < before)) {
            refuse("accuracies of tiers must fall, and lie between 0 and 1");
        }
    }
}

std::vector<double> default_accuracies(double eps) {
    std::vector<double> steps;
    const double last = kEncodeTo * eps;
    for (double step = 0.1; step > 1.5 * eps && steps.size() + 1 < kMaxTiers; step /= 10) steps.push_back(step);
    steps.push_back(last);
    return steps;
}

FileHeader first_head(const MatrixProblem& problem, const AssembleOptions& options,
                      const std::vector<double>& accuracies) {
    FileHeader head{};
    head.encoding = static_cast<std::uint32_t>(options.encoding);
    head.tiers = options.encoding == Encoding::tiers ? static_cast<std::uint32_t>(accuracies.size()) : 1;
    head.unknowns = static_cast<std::int64_t>(problem.points.size());
    head.eps = options.eps;
    head.eta = options.eta;
    head.leaf_size = options.leaf_size;
    head.accuracies[0] = options.eps;
    if (options.encoding == Encoding::tiers) std::copy(accuracies.begin(), accuracies.end(), head.accuracies);
    return head;
}

// What a worker counts of the leaves it made; joined at the end.
struct Counts {
    std::int64_t evaluated = 0;
    std::int64_t repairs = 0;
    std::int64_t full_rank = 0;
    std::int64_t rank_sum = 0;
    std::int64_t fp64_bytes = 0;
    double largest_dense = 0;  // entry of a dense leaf

    void add(const Counts& other) {
        evaluated += other.evaluated;
        repairs += other.repairs;
        full_rank += other.full_rank;
        rank_sum += other.rank_sum;
        fp64_bytes += other.fp64_bytes;
        largest_dense = std::max(largest_dense, other.largest_dense);
    }
};

class Assembly {
  public:
    Assembly(Workers& workers, const MatrixProblem& problem, const AssembleOptions& options)
        : workers_(workers),
          problem_(problem),
          options_(options),
          accuracies_(options.accuracies.empty() ? default_accuracies(options.eps) : options.accuracies),
          tree_(build_cluster_tree(problem.points, options.leaf_size)),
          leaves_(partition(tree_, {options.eta, options.leaf_size})),
          sample_(static_cast<std::int64_t>(problem.points.size()), options.check_rows),
          counts_(workers.count()) {}

    Assembled run(const Context& context, const std::string& path) {
        const auto begin = Clock::now();
        Assembled made;
        MatrixWriter writer(context, workers_, path, first_head(problem_, options_, accuracies_));
        const std::vector<std::size_t> begins = cut();
        for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
            const auto places = std::span<const Leaf>(leaves_).subspan(begins[i], begins[i + 1] - begins[i]);
            const std::vector<TieredLeaf> leaves = build(places);
            const auto wait_begin = Clock::now();
            writer.add(places, leaves);
            made.write_s += seconds_since(wait_begin);
            tell(begins[i + 1], writer.bytes());
        }
        finish(writer, made);
        made.assemble_s = seconds_since(begin) - made.write_s;
        return made;
    }

  private:
    // Rank of a low-rank leaf, as met in some of them, spread evenly: what a batch's bytes are expected by.
    double pilot_rank() {
        constexpr std::int64_t kSome = 256;
        std::vector<const Leaf*> low_rank;
        for (const Leaf& leaf : leaves_) {
            if (leaf.low_rank) low_rank.push_back(&leaf);
        }
        const std::int64_t some = std::min<std::int64_t>(kSome, static_cast<std::int64_t>(low_rank.size()));
        std::vector<std::int64_t> values(some), sides(some);
        workers_.for_each(some, [&](int, std::int64_t i) {
            const Leaf& leaf = *low_rank[i * low_rank.size() / some];
            const std::span<const std::int64_t> order(tree_.order);
            values[i] = approximate(*problem_.entries, order.subspan(leaf.row, leaf.rows),
                                    order.subspan(leaf.column, leaf.columns), aca_options(leaf)).factors.values();
            sides[i] = leaf.rows + leaf.columns;
        });
        const auto sum = [](const std::vector<std::int64_t>& of) {
            return static_cast<double>(std::accumulate(of.begin(), of.end(), std::int64_t{0}));
        };
        return some == 0 ? 0 : sum(values) / sum(sides);
    }

    // Where batches begin, of about equal bytes each; and the end.
    std::vector<std::size_t> cut() {
        const double rank = pilot_rank();
        double total = 0;
        for (const Leaf& leaf : leaves_) total += expected_bytes(leaf, rank);
        const auto most = static_cast<double>(leaves_.size());
        const double wanted = options_.batches > 0 ? static_cast<double>(options_.batches)
                                                   : std::ceil(total / static_cast<double>(options_.batch_bytes));
        const double batches = std::clamp(wanted, 1.0, most);
        std::vector<std::size_t> begins{0};
        double passed = 0;
        for (std::size_t i = 0; i < leaves_.size(); ++i) {
            const auto made = static_cast<double>(begins.size());
            const bool one_each = static_cast<double>(leaves_.size() - i) <= batches - made;
            const bool due = passed >= total * made / batches || one_each;
            if (made < batches && i > begins.back() && due) begins.push_back(i);
            passed += expected_bytes(leaves_[i], rank);
        }
        begins.push_back(leaves_.size());
        return begins;
    }

    static double expected_bytes(const Leaf& leaf, double rank) {
        const double values = leaf.low_rank ? rank * static_cast<double>(leaf.rows + leaf.columns)
                                            : static_cast<double>(leaf.entries());
        return 8 * values;
    }

    std::vector<TieredLeaf> build(std::span<const Leaf> places) {
        std::vector<TieredLeaf> leaves(places.size());
        std::vector<std::int64_t> order(places.size());
        std::iota(order.begin(), order.end(), std::int64_t{0});
        std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {  // the dear ones first
            return expected_bytes(places[a], 8) > expected_bytes(places[b], 8);
        });
        constexpr std::int64_t kAtOnce = 8;  // small leaves take microseconds
        const auto many = static_cast<std::int64_t>(order.size());
        workers_.for_each((many + kAtOnce - 1) / kAtOnce, [&](int worker, std::int64_t group) {
            for (std::int64_t i = group * kAtOnce; i < std::min(many, (group + 1) * kAtOnce); ++i) {
                leaves[order[i]] = build_one(places[order[i]], counts_[worker]);
            }
        });
        return leaves;
    }

    TieredLeaf build_one(const Leaf& place, Counts& counts) {
        const std::span<const std::int64_t> order(tree_.order);
        const auto rows = order.subspan(place.row, place.rows), columns = order.subspan(place.column, place.columns);
        Factors factors{place.rows, place.columns, 0, place.low_rank, {}, {}};
        if (place.low_rank) {
            AcaResult found = approximate(*problem_.entries, rows, columns, aca_options(place));
            count(found, place, counts);
            factors = std::move(found.factors);
        } else {
            factors.u.resize(place.entries());
            for (std::int64_t j = 0; j < place.columns; ++j) {
                problem_.entries->column(rows, columns[j], factors.u.data() + j * place.rows);
            }
            check_finite(factors, rows, columns);
            counts.evaluated += place.entries();
            counts.fp64_bytes += 8 * place.entries();
            for (const double value : factors.u) counts.largest_dense = std::max(counts.largest_dense, std::abs(value));
        }
        const bool tiers = options_.encoding == Encoding::tiers;
        TieredLeaf leaf = tiers ? encode(std::move(factors), accuracies_) : encode_doubles(std::move(factors));
        sample_.take(place, leaf, options_.encoding);
        return leaf;
    }

    AcaOptions aca_options(const Leaf& place) const {
        AcaOptions aca;
        aca.eps = options_.encoding == Encoding::tiers ? kApproximateTo * options_.eps : options_.eps;
        aca.told_eps = options_.eps;
        aca.plus = options_.aca_plus;
        aca.from_last_row = place.row <= place.column;  // as HACApK: from the side that faces the other cluster
        return aca;
    }

    static void count(const AcaResult& found, const Leaf& place, Counts& counts) {
        counts.evaluated += found.evaluated;
        counts.repairs += found.repairs;
        counts.full_rank += found.converged ? 0 : 1;
        counts.rank_sum += found.factors.rank;
        counts.fp64_bytes += 8 * found.told_rank * (place.rows + place.columns);
    }

    static void check_finite(const Factors& block, std::span<const std::int64_t> rows,
                             std::span<const std::int64_t> columns) {
        for (std::size_t i = 0; i < block.u.size(); ++i) {
            if (std::isfinite(block.u[i])) continue;
            refuse("the entry in row " + std::to_string(rows[i % rows.size()]) + ", column " +
                       std::to_string(columns[i / rows.size()]) + " is not a finite number",
                   "look for triangles that coincide, or mend the function that gives entries");
        }
    }

    void tell(std::size_t done, std::int64_t bytes) const {
        if (!options_.progress) return;
        const auto all = static_cast<std::int64_t>(leaves_.size());
        if (options_.progress({static_cast<std::int64_t>(done), all, bytes})) return;
        throw Error(ErrorCode::cancelled, "assemble a matrix", "the caller's progress function said so");
    }

    Counts joined() const {
        Counts all;
        for (const Counts& one : counts_) all.add(one);
        return all;
    }

    void finish(MatrixWriter& writer, Assembled& made) {
        const Counts all = joined();
        const bool small = all.largest_dense > 0 && all.largest_dense < kSmallestMatrix;
        if (options_.encoding == Encoding::tiers && small) {
            refuse("no entry near the diagonal is above " + text_of(all.largest_dense) +
                       ": too small for tiers, which hold single precision",
                   "take other units, or store the matrix as fp64");
        }
        const double error = sample_.error(workers_, *problem_.entries, tree_.order);
        if (!(error <= options_.refuse_error * options_.eps)) {  // neither above nor no number at all
            refuse("the matrix is off by " + text_of(error) + " on sampled rows, and eps is " + text_of(options_.eps),
                   "lower eta, or look at the function that gives entries: it may jump where blocks are approximated");
        }
        writer.head().fp64_bytes = all.fp64_bytes;
        writer.head().rank_sum = all.rank_sum;
        const auto wait_begin = Clock::now();
        writer.head().sampled_error = error;
        made.head = writer.finish(tree_.order, options_.about);
        made.write_s += seconds_since(wait_begin);
        made.evaluated = all.evaluated;
        made.repairs = all.repairs;
        made.full_rank = all.full_rank;
    }

    Workers& workers_;
    const MatrixProblem& problem_;
    const AssembleOptions& options_;
    std::vector<double> accuracies_;
    ClusterTree tree_;
    std::vector<Leaf> leaves_;
    RowSample sample_;
    std::vector<Counts> counts_;
};

}  // namespace

Assembled assemble(const Context& context, Workers& workers, const MatrixProblem& problem, const std::string& path,
                   const AssembleOptions& options) {
    check(problem, options);
    return Assembly(workers, problem, options).run(context, path);
}

}  // namespace penstock::hmatrix
