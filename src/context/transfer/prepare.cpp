// See prepare.hpp.
#include "context/transfer/prepare.hpp"

#include <memory>
#include <utility>

#include "base/path_traits.hpp"
#include "context/files/announced.hpp"
#include "context/transfer/launch.hpp"

namespace penstock::context {
namespace {

constexpr std::uint64_t kRegisterMin = 64 * kMiB;

std::uint64_t bytes_in_files(const std::vector<Extent>& extents) {
    std::uint64_t total = 0;
    for (const Extent& extent : extents) total += extent.bytes_in_file;
    return total;
}

// Explicit mmap has its mapping registered now. A file in memory that is read again by the automatic path has it done
// by the registrar, while no transfer runs.
void register_mapping(const Submission& submission, const std::vector<Extent>& extents) {
    ContextState& context = submission.context;
    const PathKind path = submission.path();
    if (path != PathKind::mmap && path != PathKind::automatic) return;
    const std::shared_ptr<OpenFile> file = file_to_register(submission, extents);
    if (!file) return;
    if (path == PathKind::mmap) {
        std::string why;  // remembered as the refusal of this file, which the facts tell
        context.mappings->register_all(file->handle(), why);
        return;
    }
    if (context.machine().emulated_device || bytes_in_files(extents) < kRegisterMin) return;
    const std::uint64_t size = file->size_bytes();
    if (file->bytes_read.load() >= size && context.mappings->refusal(file->handle()).empty() &&
        !context.mappings->registered(file->handle(), 0, size)) {
        context.registrar.start(file);
    }
}

// The policy knows no names of files: what it refuses is told of the first extent's file.
Plan make_plan(const Submission& submission, const Checked& checked, const Facts& facts) {
    try {
        return policy::make_plan(facts.request, submission.context.machine());
    } catch (const Error& error) {
        if (checked.extents.empty()) throw;
        ErrorInfo info = error.info();
        info.file = checked.extents.front().file->handle().name;
        throw Error(std::move(info));
    }
}

// Throws what a transfer by a path of cuFile would be refused with, which shows when the path is made.
void need_cufile(const Submission& submission) {
    if (!is_cufile(submission.path())) return;
    ContextState& context = submission.context;
    const std::unique_ptr<Stream> stream = context.device->make_stream();
    context.make_path(submission.path(), {.stream = stream.get()});
}

Preview preview_of(const Submission& submission, Checked checked) {
    Facts facts = gather(submission, checked);
    Plan plan = make_plan(submission, checked, facts);
    return {std::move(checked), std::move(facts), std::move(plan)};
}

}  // namespace

Preview preview(const Submission& submission, std::vector<Extent> extents) {
    submission.context.check_process();
    return preview_of(submission, check(submission, std::move(extents)));
}

Explanation explain(const Submission& submission, std::vector<Extent> extents) {
    need_cufile(submission);
    Preview found = preview(submission, std::move(extents));
    Explanation explanation;
    explanation.profile = found.facts.costs.profile();
    explanation.refusal = found.facts.costs.refusal();
    explanation.parts = explained_parts(found.facts.request, submission.context.machine());
    explanation.plan = std::move(found.plan);
    return explanation;
}

std::shared_ptr<StartedTransfer> prepare(const Submission& submission, std::vector<Extent> extents) {
    submission.context.check_process();
    Checked checked = check(submission, std::move(extents));
    Announced announced(checked.extents);
    register_mapping(submission, checked.extents);
    return launch(submission, preview_of(submission, std::move(checked)), announced);
}

}  // namespace penstock::context
