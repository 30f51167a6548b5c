// See sum_outcomes.hpp.
#include "formats/move/sum_outcomes.hpp"

#include <algorithm>
#include <tuple>

namespace penstock::formats {
namespace {

constexpr std::size_t kMostTexts = 20;  // notes, or plans, of one sum

void add_text(std::vector<std::string>& texts, const std::string& one) {
    if (texts.size() < kMostTexts && std::find(texts.begin(), texts.end(), one) == texts.end()) texts.push_back(one);
}

void add_share(std::vector<PathShare>& paths, const PathShare& one) {
    const auto key = [](const PathShare& share) {
        return std::tuple(share.path, share.from_pinned_mapping, share.past_page_cache);
    };
    const auto same =
        std::find_if(paths.begin(), paths.end(), [&](const PathShare& other) { return key(other) == key(one); });
    if (same == paths.end()) {
        paths.push_back(one);
        return;
    }
    same->bytes += one.bytes;
    same->operations += one.operations;
    same->host_copies_bytes += one.host_copies_bytes;
}

void add_fallback(std::vector<Fallback>& fallbacks, const Fallback& one) {
    const auto same = std::find_if(fallbacks.begin(), fallbacks.end(), [&](const Fallback& other) {
        return std::tie(other.wanted, other.took, other.cause) == std::tie(one.wanted, one.took, one.cause);
    });
    if (same == fallbacks.end())
        fallbacks.push_back(one);
    else
        same->bytes += one.bytes;
}

}  // namespace

void add_outcome(Outcome& sum, const Outcome& part) {
    Evidence& all = sum.evidence;
    const Evidence& one = part.evidence;
    if (all.plan.empty()) {
        all = one;
        return;
    }
    all.before = all.after = std::nullopt;
    all.process_io = std::nullopt;
    all.cufile = std::nullopt;
    all.cpu_user_s = all.cpu_system_s = all.predicted_seconds = 0;
    all.pinned_peak_bytes = std::max(all.pinned_peak_bytes, one.pinned_peak_bytes);
    for (const PathShare& share : one.paths) add_share(all.paths, share);
    for (const Fallback& fallback : one.fallbacks) add_fallback(all.fallbacks, fallback);
    for (const std::string& note : one.notes) add_text(all.notes, note);
    if (one.plan != all.plan) add_text(all.notes, "a part moved otherwise: " + one.plan);
    std::stable_sort(all.paths.begin(), all.paths.end(),
                     [](const PathShare& a, const PathShare& b) { return a.bytes > b.bytes; });
}

}  // namespace penstock::formats
