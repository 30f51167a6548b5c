// What the processes of one history agree on. Before it begins: that they define the same file, of which blocks a store
// is made, and that their boxes have each element once. Each gives numbers, the caller makes those of all of them (see
// penstock_mpi.h), and begin() looks at these. Then: which steps there are, and how many of them readers see.
#include <utility>

#include "data/selection/coverage.hpp"
#include "formats/faults.hpp"
#include "history/history_state.hpp"

namespace penstock::history {

// With what decides how many numbers cuts() and coverage() have: may_have_gaps, and which variables all ranks share.
std::uint64_t HistoryState::digest() {
    constexpr std::uint64_t kWithGaps = 0x9e3779b97f4a7c15, kPrime = 0x100000001b3;
    const formats::FileSchema schema = plan_history(definitions_, options_, false).schema;
    if (!draft_) draft_ = make_draft(name_, options_.format, schema);
    std::uint64_t sum = draft_ ? draft_->digest() : digest_of_store(options_.format, schema);
    for (const HistoryVariable& one : definitions_.variables) {
        sum = (sum ^ (one.global_shape.empty() ? 0 : 1)) * kPrime;
    }
    return options_.may_have_gaps ? sum ^ kWithGaps : sum;
}

void HistoryState::check_cuts(const HistoryLayout& layout) const {
    if (layout.cuts.empty() || definitions_.cuts) return;
    throw refused("begin", "the processes have not agreed on the blocks of the store",
                  "give the greatest common divisors of the cuts() of all; penstock_mpi.h does it");
}

std::span<std::uint64_t> HistoryState::cuts() {
    check_open("cut");
    if (writer_) throw refused("cut", "the history has begun", "ask before that");
    if (!definitions_.cuts) {
        const bool divides = has_blocks(options_.format);
        definitions_.cuts = divides ? plan_history(definitions_, options_, false).cuts : std::vector<std::uint64_t>{};
    }
    return *definitions_.cuts;
}

// What each process adds is the number of its box; process 0 takes off that of the whole.
std::span<std::uint64_t> HistoryState::coverage() {
    check_open("cover");
    if (writer_) throw refused("cover", "the history has begun", "ask before that");
    if (definitions_.coverage) return *definitions_.coverage;
    std::vector<std::uint64_t>& made = definitions_.coverage.emplace();
    for (const HistoryVariable& one : definitions_.variables) {
        if (one.global_shape.empty() || options_.may_have_gaps || options_.processes == 1) continue;
        const std::vector<std::uint64_t> none(one.global_shape.size());
        made.push_back(data::coverage_of(one.start, one.shape));
        if (options_.process == 0) made.back() -= data::coverage_of(none, one.global_shape);
    }
    return made;
}

void HistoryState::check_coverage() const {
    if (!definitions_.coverage) return;
    auto sum = definitions_.coverage->begin();
    for (const HistoryVariable& one : definitions_.variables) {
        if (one.global_shape.empty() || sum == definitions_.coverage->end() || *sum++ == 0) continue;
        throw refused("begin",
                      "the boxes that the processes have of " + formats::shown(one.name) + " leave gaps, or overlap",
                      "let each element of global_shape be in one box; may_have_gaps allows elements that are in none");
    }
}

// What is packed already stays in the slot, where the next step comes over it, on the same stream.
void HistoryState::drop_step() {
    check_open("drop step");
    slot_.reset();
    checked_.reset();
    for (RunningField& field : fields_) field.puts = 0;
}

// Steps before one that failed may be seen where all have them.
void HistoryState::publish(std::uint64_t steps) {
    check_process();
    if (options_.processes == 1) throw refused("publish", "one process writes the file", "its steps are published");
    if (!writer_ || is_closed_) throw refused("publish", "the history is not open", "begin first");
    writer_->publish(steps);
    writer_->check();
}

}  // namespace penstock::history
