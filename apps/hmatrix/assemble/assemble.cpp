// The assembly loop. All workers approximate and encode a batch of leaves, and the writer takes it.
#include "hmatrix/assemble/assemble.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "hmatrix/assemble/sample.hpp"
#include "hmatrix/file/writer.hpp"
#include "hmatrix/text.hpp"
#include "hmatrix/tree/blocks.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

// The errors of the cross approximation and of the digits add up as squares, so both together stay below eps.
constexpr double kApproximateTo = 0.5;
constexpr double kEncodeTo = 0.6;

[[noreturn]] void refuse(const std::string& cause, const std::string& advice = {}) {
    throw Error(ErrorCode::invalid_argument, "assemble a matrix", cause, advice);
}

void check(const MatrixProblem& problem, const AssembleOptions& options) {
    if (!(options.eps >= 1e-12 && options.eps <= 0.5)) {
        refuse("eps " + text_of(options.eps) + " is not between 1e-12 and 0.5");
    }
    if (problem.points.empty() || problem.entries == nullptr) refuse("there are no points, or no entries");
    if (options.batch_bytes < 1) refuse("a batch of " + std::to_string(options.batch_bytes) + " bytes holds nothing");
    if (options.gpu_bytes < 1) refuse(std::to_string(options.gpu_bytes) + " bytes of a GPU's memory hold nothing");
    if (options.check_rows < -1) refuse(std::to_string(options.check_rows) + " rows to check", "-1: as many as usual");
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

AcaOptions aca_options(const AssembleOptions& options) {
    AcaOptions aca;
    aca.eps = options.encoding == Encoding::tiers ? kApproximateTo * options.eps : options.eps;
    aca.told_eps = options.eps;
    aca.plus = options.aca_plus;
    return aca;
}

// Whether the context's GPU makes the leaves.
bool chosen_gpu(const Context& context, const MatrixProblem& problem, const AssembleOptions& options) {
    const bool emulated = context.device().info().emulated;
    if (options.on == AssembleOn::automatic) return !emulated && problem.on_gpu != nullptr && !options.aca_plus;
    if (options.on == AssembleOn::host) return false;
    constexpr const char* kAdvice = "assemble on the host, which is what auto does here";
    const auto refuse_gpu = [](const std::string& why) {
        throw Error(ErrorCode::unsupported, "assemble a matrix on a GPU", why, kAdvice);
    };
    if (emulated) refuse_gpu("the device '" + context.device().name() + "' is not a GPU");
    if (problem.on_gpu == nullptr) refuse_gpu("these entries are a function of the host; a GPU needs a C++ functor");
    if (options.aca_plus) refuse_gpu("ACA+ runs on the host only");
    return true;
}

// What one worker counts about its leaves. joined() adds the workers' counts.
struct LeafCounts {
    std::int64_t evaluated = 0;
    std::int64_t repairs = 0;
    std::int64_t full_rank = 0;
    std::int64_t rank_sum = 0;
    std::int64_t fp64_bytes = 0;
    double largest_dense = 0;  // largest entry of a dense leaf

    void add(const LeafCounts& other) {
        evaluated += other.evaluated;
        repairs += other.repairs;
        full_rank += other.full_rank;
        rank_sum += other.rank_sum;
        fp64_bytes += other.fp64_bytes;
        largest_dense = std::max(largest_dense, other.largest_dense);
    }
};

std::int64_t rows_to_check(const MatrixProblem& problem, const AssembleOptions& options) {
    constexpr std::int64_t kEntries = std::int64_t{1} << 22, kFewest = 128;
    if (options.check_rows >= 0) return options.check_rows;
    return std::max(kFewest, kEntries / std::max<std::int64_t>(1, static_cast<std::int64_t>(problem.points.size())));
}

class Assembly {
  public:
    Assembly(Workers& workers, const MatrixProblem& problem, const AssembleOptions& options, bool on_gpu)
        : workers_(workers),
          problem_(problem),
          options_(options),
          accuracies_(options.accuracies.empty() ? default_accuracies(options.eps) : options.accuracies),
          aca_(aca_options(options)),
          tree_(build_cluster_tree(problem.points, options.leaf_size)),
          leaves_(partition(tree_, {options.eta, options.leaf_size})),
          sample_(static_cast<std::int64_t>(problem.points.size()), rows_to_check(problem, options)),
          counts_(workers.count()),
          on_gpu_(on_gpu) {}

    Assembled run(const Context& context, const std::string& path) {
        Assembled made;
        MatrixWriter writer(context, workers_, path, first_head(problem_, options_, accuracies_));
        prepare(context);
        for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
            const auto places = std::span<const Leaf>(leaves_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
            const std::vector<TieredLeaf> leaves = build(static_cast<std::int64_t>(i));
            const auto wait_begin = Clock::now();
            writer.add(places, leaves);
            made.write_s += seconds_since(wait_begin);
            tell(begins_[i + 1], writer.bytes());
        }
        finish(writer, made);
        made.on = on_gpu_ ? context.device().name() : "host";
        made.left_to_host = maker_->left_to_host();
        made.assemble_s = seconds_since(begun_) - made.write_s;
        return made;
    }

  private:
    // The average rank of some low-rank leaves, spread evenly. It predicts the bytes of a batch.
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
            values[i] = make_leaf({{}, {}, tree_.order, problem_.entries, aca_, 0}, leaf).factors.values();
            sides[i] = leaf.rows + leaf.columns;
        });
        const auto sum = [](const std::vector<std::int64_t>& of) {
            return static_cast<double>(std::accumulate(of.begin(), of.end(), std::int64_t{0}));
        };
        return some == 0 ? 0 : sum(values) / sum(sides);
    }

    // The first leaf of each batch, and the end. Batches have about equal bytes.
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

    void prepare(const Context& context) {
        begins_ = cut();
        const LeafWork work{leaves_, begins_, tree_.order, problem_.entries, aca_, options_.gpu_bytes};
        maker_ = on_gpu_ ? problem_.on_gpu->leaf_maker(context, workers_, work) : make_host_leaf_maker(workers_, work);
    }

    std::vector<TieredLeaf> build(std::int64_t batch) {
        const std::size_t first = begins_[batch];
        std::vector<TieredLeaf> leaves(begins_[batch + 1] - first);
        maker_->make(batch, [&](int worker, std::int64_t leaf, AcaResult made) {
            leaves[leaf - first] = encoded(leaves_[leaf], std::move(made), counts_[worker]);
        });
        return leaves;
    }

    TieredLeaf encoded(const Leaf& place, AcaResult made, LeafCounts& counts) {
        count(made, place, counts);
        const bool tiers = options_.encoding == Encoding::tiers;
        Factors& factors = made.factors;
        TieredLeaf leaf = tiers ? encode(std::move(factors), accuracies_) : encode_doubles(std::move(factors));
        sample_.take(place, leaf, options_.encoding);
        return leaf;
    }

    static void count(const AcaResult& found, const Leaf& place, LeafCounts& counts) {
        counts.evaluated += found.evaluated;
        if (!place.low_rank) {
            counts.fp64_bytes += 8 * place.entries();
            for (const double value : found.factors.u) {
                counts.largest_dense = std::max(counts.largest_dense, std::abs(value));
            }
            return;
        }
        counts.repairs += found.repairs;
        counts.full_rank += found.converged ? 0 : 1;
        counts.rank_sum += found.factors.rank;
        counts.fp64_bytes += 8 * found.told_rank * (place.rows + place.columns);
    }

    void tell(std::size_t done, std::int64_t bytes) const {
        if (!options_.progress) return;
        const auto all = static_cast<std::int64_t>(leaves_.size());
        if (options_.progress({static_cast<std::int64_t>(done), all, bytes})) return;
        throw Error(ErrorCode::cancelled, "assemble a matrix", "the caller's progress function asked to stop");
    }

    LeafCounts joined() const {
        LeafCounts all;
        for (const LeafCounts& one : counts_) all.add(one);
        return all;
    }

    void finish(MatrixWriter& writer, Assembled& made) {
        const LeafCounts all = joined();
        const bool small = all.largest_dense > 0 && all.largest_dense < kSmallestMatrix;
        if (options_.encoding == Encoding::tiers && small) {
            refuse("no entry near the diagonal is above " + text_of(all.largest_dense) +
                       ": too small for tiers, which hold single precision",
                   "take other units, or store the matrix as fp64");
        }
        const double error = sample_.error(workers_, *problem_.entries, tree_.order);
        if (!(error <= options_.refuse_error * options_.eps)) {  // also true if the error is NaN
            refuse("the error of the matrix on sampled rows is " + text_of(error) + ", eps is " + text_of(options_.eps),
                   "use ACA+, which thin bodies need, or lower eta, or look at the function that gives entries: it may "
                   "jump where blocks are approximated");
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

    // The first member, so that the time includes building the cluster tree.
    const Clock::time_point begun_ = Clock::now();
    Workers& workers_;
    const MatrixProblem& problem_;
    const AssembleOptions& options_;
    std::vector<double> accuracies_;
    AcaOptions aca_;
    ClusterTree tree_;
    std::vector<Leaf> leaves_;
    RowSample sample_;
    std::vector<LeafCounts> counts_;
    bool on_gpu_;
    std::vector<std::size_t> begins_;
    std::unique_ptr<LeafMaker> maker_;
};

}  // namespace

Assembled assemble(const Context& context, Workers& workers, const MatrixProblem& problem, const std::string& path,
                   const AssembleOptions& options) {
    check(problem, options);
    return Assembly(workers, problem, options, chosen_gpu(context, problem, options)).run(context, path);
}

}  // namespace penstock::hmatrix
