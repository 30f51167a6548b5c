// What the processes of one history agree on before it begins: that they define the same file, of which blocks a store
// is made, and that their boxes have each element once. Each gives numbers, the caller makes those of all of them (see
// penstock_mpi.h), and begin() looks at these.
#include <utility>

#include "data/selection/coverage.hpp"
#include "formats/faults.hpp"
#include "history/history_state.hpp"

namespace penstock::history {

// With may_have_gaps, which decides whether coverage() is asked for.
std::uint64_t HistoryState::digest() {
    constexpr std::uint64_t kWithGaps = 0x9e3779b97f4a7c15;
    const formats::FileSchema schema = plan_history(definitions_, options_, false).schema;
    if (!draft_) draft_ = make_draft(name_, options_.format, schema);
    const std::uint64_t of_file = draft_ ? draft_->digest() : digest_of_store(options_.format, schema);
    return options_.may_have_gaps ? of_file ^ kWithGaps : of_file;
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

}  // namespace penstock::history
