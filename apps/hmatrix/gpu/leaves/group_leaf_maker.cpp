// Makes leaves group by group on a device, while the host's workers encode the previous group.
//
// Two groups are under way, each with its own memory and stream. When one is done, its ranks are known. Its numbers are
// then gathered into page-locked memory, and the next group takes over its device memory. The host makes the leaves
// that the device could not. An entry that is not finite therefore gives the same error as on the host, and every block
// meets the same accuracy.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include "hmatrix/gpu/functor_on_gpu.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr int kSlots = 2;

// Ranks grow with the number of digits. Most leaves of smooth kernels need less than half of this.
std::int64_t usual_room(double eps) { return 32 + static_cast<std::int64_t>(std::ceil(-4 * std::log10(eps))); }

int threads_of(const Leaf& leaf) {
    const std::int64_t sides = leaf.rows + leaf.columns;
    return sides > kBlockSides ? kWideThreads : sides > kWarpSides ? kBlockOfLeafThreads : 32;
}

// Leaves [first, first + count) of all leaves, and the numbers and marks that they have room for.
struct GroupPlan {
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int64_t values = 0;
    std::int64_t marks = 0;
};

// Finished leaves: their indices and results.
struct Done {
    std::vector<std::int64_t> leaves;
    std::vector<LeafResult> results;
    std::vector<std::int64_t> at;  // index of each leaf's first number in page-locked memory: U, then V
};

struct GroupSlot {
    DeviceArray<double> values;
    DeviceArray<unsigned char> marks;
    // Tasks, results and fetched are page-locked; kernels access tasks and results in place.
    DeviceArray<LeafTask> tasks;
    DeviceArray<LeafResult> results;
    DeviceArray<double> fetched;
    std::vector<std::int64_t> leaves;    // index of each task's leaf
    std::vector<std::int64_t> for_host;  // leaves too large for the slot
    std::unique_ptr<Event> done;
    std::unique_ptr<Stream> stream;  // last member: its destructor waits for its work before the memory is freed
};

class GroupLeafMaker final : public LeafMaker {
  public:
    GroupLeafMaker(const Context& context, Workers& workers, const LeafWork& work, Bound bound)
        : context_(context),
          workers_(workers),
          work_(work),
          bound_(std::move(bound)),
          usual_room_(usual_room(work.aca.eps)) {
        Device& device = context_.device();
        device.enter_thread();
        const auto free = static_cast<std::int64_t>(device.info().free_bytes / 2);
        constexpr std::int64_t kShare = kSlots * sizeof(double);
        most_values_ = std::max<std::int64_t>(std::min(work_.gpu_bytes, free) / kShare, 1);
        cut();
        for (GroupSlot& slot : slots_) {
            slot.done = device.make_event();
            slot.stream = device.make_stream();
        }
        order_ = DeviceArray<std::int64_t>(device, *slots_[0].stream, {work_.order.begin(), work_.order.end()});
    }

    void make(std::int64_t batch, const Take& take) override {
        for (; ready_ < group_end_[batch]; ++ready_) {
            while (begun_ < std::min<std::int64_t>(ready_ + kSlots, static_cast<std::int64_t>(groups_.size()))) {
                begin(groups_[begun_], slots_[begun_ % kSlots]);
                ++begun_;
            }
            GroupSlot& slot = slots_[ready_ % kSlots];
            const Done done = fetch(slot);
            if (begun_ == ready_ + kSlots && begun_ < static_cast<std::int64_t>(groups_.size())) {
                begin(groups_[begun_++], slot);
            }
            hand_over(done, slot.fetched.data(), take);
        }
    }

    std::int64_t left_to_host() const noexcept override { return left_to_host_; }

  private:
    // The rank that a leaf has room for. 0 means no room for rank 1, or more rows than a team can count.
    std::int64_t room(const Leaf& leaf) const {
        if (std::max(leaf.rows, leaf.columns) > std::numeric_limits<std::int32_t>::max()) return 0;
        const std::int64_t full = std::min(leaf.rows, leaf.columns);
        return std::min({full, usual_room_, most_values_ / (leaf.rows + leaf.columns)});
    }

    // The numbers that a leaf takes on the device. 0 means that the host makes it.
    std::int64_t values(const Leaf& leaf) const {
        if (leaf.low_rank) return room(leaf) * (leaf.rows + leaf.columns);
        return leaf.entries() <= most_values_ ? leaf.entries() : 0;
    }

    void cut() {
        for (std::size_t batch = 0; batch + 1 < work_.batches.size(); ++batch) {
            GroupPlan range{static_cast<std::int64_t>(work_.batches[batch])};
            for (std::size_t i = work_.batches[batch]; i < work_.batches[batch + 1]; ++i) {
                const Leaf& leaf = work_.leaves[i];
                const std::int64_t more = values(leaf);
                if (range.count > 0 && range.values + more > most_values_) {
                    groups_.push_back(range);
                    range = {static_cast<std::int64_t>(i)};
                }
                ++range.count;
                range.values += more;
                range.marks += leaf.low_rank && more > 0 ? leaf.rows + leaf.columns : 0;
            }
            if (range.count > 0) groups_.push_back(range);
            group_end_.push_back(static_cast<std::int64_t>(groups_.size()));
        }
    }

    template <class Value>
    void want(DeviceArray<Value>& array, std::int64_t count, MemoryKind kind) {
        if (array.size() >= count) return;
        array = {};
        array = DeviceArray<Value>(context_.device(), count + count / 4, kind);
    }

    // Allocates for the largest group at once, because a kernel of the previous group may still use the memory.
    void make_room(GroupSlot& slot) {
        if (slot.tasks.size() > 0) return;
        GroupPlan most;
        for (const GroupPlan& range : groups_) {
            most.count = std::max(most.count, range.count);
            most.values = std::max(most.values, range.values);
            most.marks = std::max(most.marks, range.marks);
        }
        Device& device = context_.device();
        slot.values = DeviceArray<double>(device, most.values);
        slot.marks = DeviceArray<unsigned char>(device, most.marks);
        slot.tasks = DeviceArray<LeafTask>(device, most.count, MemoryKind::pinned);
        slot.results = DeviceArray<LeafResult>(device, most.count, MemoryKind::pinned);
    }

    void begin(const GroupPlan& range, GroupSlot& slot) {
        make_room(slot);
        slot.leaves.clear();
        slot.for_host.clear();
        for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
            (values(work_.leaves[i]) > 0 ? slot.leaves : slot.for_host).push_back(i);
        }
        const auto& all = work_.leaves;
        // The most expensive leaves first.
        std::sort(slot.leaves.begin(), slot.leaves.end(), [&](std::int64_t a, std::int64_t b) {
            const int more = threads_of(all[a]), less = threads_of(all[b]);
            return more != less ? more > less : values(all[a]) > values(all[b]);
        });
        Group group{order_.data(), slot.tasks.data(), slot.results.data(), slot.values.data(), slot.marks.data(),
                    work_.aca.eps, work_.aca.zero, work_.aca.told_eps,
                    static_cast<std::int32_t>(work_.aca.check_entries), 0, 0, 0};
        LeafTask next{};
        for (std::size_t i = 0; i < slot.leaves.size(); ++i) {
            const Leaf& leaf = all[slot.leaves[i]];
            const int threads = threads_of(leaf);
            ++(threads == kWideThreads ? group.wide : threads == 32 ? group.warps : group.blocks);
            slot.tasks.data()[i] = task(leaf, next);
            next.values += values(leaf);
            next.used += leaf.low_rank ? leaf.rows + leaf.columns : 0;
        }
        if (slot.leaves.empty()) return;
        const char* const wrong = bound_.launch(bound_.functor.get(), group, slot.stream->native_handle());
        if (wrong != nullptr) throw Error(ErrorCode::device_error, "make leaves on a GPU", wrong);
        slot.stream->record(*slot.done);
    }

    LeafTask task(const Leaf& leaf, LeafTask places) const {
        places.row = leaf.row;
        places.column = leaf.column;
        places.rows = static_cast<std::int32_t>(leaf.rows);
        places.columns = static_cast<std::int32_t>(leaf.columns);
        places.low_rank = leaf.low_rank ? 1 : 0;
        places.room = leaf.low_rank ? static_cast<std::int32_t>(room(leaf)) : 0;
        places.from_last_row = from_last_row(leaf) ? 1 : 0;
        return places;
    }

    // Waits for a group, and copies its numbers to page-locked memory.
    Done fetch(GroupSlot& slot) {
        slot.done->wait(Deadline::never());
        Done done{slot.leaves, {slot.results.data(), slot.results.data() + slot.leaves.size()}, {}};
        std::vector<CopyPiece> pieces;
        std::int64_t values = 0;
        const auto piece = [&](std::int64_t from, std::int64_t count) {
            if (count == 0) return;
            // `destination` stays null until the total size is known.
            pieces.push_back({nullptr, slot.values.data() + from, static_cast<std::uint64_t>(count) * sizeof(double)});
            values += count;
        };
        for (std::size_t i = 0; i < done.leaves.size(); ++i) {
            const LeafTask& made = slot.tasks.data()[i];
            const LeafResult& result = done.results[i];
            done.at.push_back(values);
            if (left(result)) continue;
            const std::int64_t rank = result.rank, rows = made.rows, columns = made.columns;
            piece(made.values, made.low_rank != 0 ? rank * rows : rows * columns);
            if (made.low_rank != 0) piece(made.values + rows * made.room, rank * columns);
        }
        want(slot.fetched, values, MemoryKind::pinned);
        auto* to = slot.fetched.data();
        for (CopyPiece& one : pieces) {
            one.destination = to;
            to += one.bytes / sizeof(double);
        }
        if (!pieces.empty()) {
            slot.stream->copy_batch(CopyDirection::to_host, pieces);
            slot.stream->record(*slot.done);
            slot.done->wait(Deadline::never());
        }
        for (const std::int64_t leaf : slot.for_host) {
            done.leaves.push_back(leaf);
            done.results.push_back({0, 0, 0, 0, Ending::given_up});
            done.at.push_back(0);
        }
        return done;
    }

    static bool left(const LeafResult& result) {
        return result.ending == Ending::given_up || result.ending == Ending::not_finite;
    }

    void hand_over(const Done& done, const double* values, const Take& take) {
        // Workers take eight leaves at once, because small leaves take microseconds.
        constexpr std::int64_t kAtOnce = 8;
        const auto many = static_cast<std::int64_t>(done.leaves.size());
        workers_.for_each((many + kAtOnce - 1) / kAtOnce, [&](int worker, std::int64_t part) {
            for (std::int64_t i = part * kAtOnce; i < std::min(many, (part + 1) * kAtOnce); ++i) {
                const Leaf& leaf = work_.leaves[done.leaves[i]];
                const bool host = left(done.results[i]) || !finite(leaf, values + done.at[i]);
                if (host) ++left_to_host_;
                take(worker, done.leaves[i],
                     host ? make_leaf(work_, leaf) : numbers(leaf, done.results[i], values + done.at[i]));
            }
        });
    }

    // Checks a dense leaf. The team has already checked a low-rank leaf.
    static bool finite(const Leaf& leaf, const double* values) {
        return leaf.low_rank || std::all_of(values, values + leaf.entries(), [](double x) { return std::isfinite(x); });
    }

    static AcaResult numbers(const Leaf& leaf, const LeafResult& result, const double* from) {
        AcaResult made;
        made.factors = {leaf.rows, leaf.columns, result.rank, leaf.low_rank, {}, {}};
        const std::int64_t u = leaf.low_rank ? result.rank * leaf.rows : leaf.entries();
        made.factors.u.assign(from, from + u);
        if (leaf.low_rank) made.factors.v.assign(from + u, from + u + result.rank * leaf.columns);
        made.told_rank = result.told_rank;
        made.evaluated = result.evaluated;
        made.repairs = result.repairs;
        made.converged = result.ending == Ending::converged;
        return made;
    }

    Context context_;
    Workers& workers_;
    LeafWork work_;
    Bound bound_;
    std::int64_t usual_room_;
    std::int64_t most_values_ = 1;  // numbers that a slot can hold
    std::vector<GroupPlan> groups_;
    std::vector<std::int64_t> group_end_;  // for each batch the end of its groups
    std::int64_t begun_ = 0;
    std::int64_t ready_ = 0;
    std::atomic<std::int64_t> left_to_host_{0};
    DeviceArray<std::int64_t> order_;
    std::array<GroupSlot, kSlots> slots_;  // after all members that their streams use
};

}  // namespace

std::unique_ptr<LeafMaker> make_group_leaf_maker(const Context& context, Workers& workers, const LeafWork& work,
                                                 const Bound& bound) {
    if (bound.launch == nullptr) {
        throw Error(ErrorCode::unsupported, "assemble a matrix on a GPU", "this build has no CUDA",
                    "assemble on the host");
    }
    return std::make_unique<GroupLeafMaker>(context, workers, work, bound);
}

}  // namespace penstock::hmatrix::gpu
