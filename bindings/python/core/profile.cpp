// Machine profiles in Python: the head of a new profile, explanations of plans, and requests timed one after the other,
// which profiles are made of.
#include "core.hpp"
#include "python/shared/question.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

// Returns the head of a profile of this machine, this device and the file system of `path`. The rows follow it.
std::string profile_head(const Context& context, nb::handle path, const std::string& measured) {
    const std::string name = file_name(path, "identify");
    const GilReleased release;
    Profile profile = context.identity(name);
    profile.measured = measured;
    return profile_text(profile);
}

nb::object shown_options(const std::string& options) { return text(public_mount_options(options)); }

nb::dict part_fields(const Explanation::Part& part) {
    nb::list choices;
    for (const Explanation::Option& one : part.options) {
        nb::dict fields;
        fields["path"] = to_string(one.path);
        fields["seconds"] = one.seconds > 0 ? nb::object(nb::float_(one.seconds)) : nb::object(nb::none());
        fields["refusal"] = one.refusal;
        choices.append(fields);
    }
    nb::dict fields;
    fields["bytes"] = part.bytes;
    fields["in_page_cache"] =
        part.residency_known ? nb::object(nb::bool_(part.in_page_cache)) : nb::object(nb::none());
    fields["options"] = choices;
    return fields;
}

nb::dict explain(const PythonFile& file, const nb::dict& asked, const nb::kwargs& keywords) {
    const Question question = question_of(file, asked);
    const TransferOptions options = transfer_options(keywords);
    Explanation found;
    {
        const GilReleased release;
        found = file.context.explain(question.direction, {&question.range, 1}, question.kind, options);
    }
    nb::list parts;
    for (const Explanation::Part& part : found.parts) parts.append(part_fields(part));
    nb::dict fields;
    fields["plan"] = found.plan.describe();
    fields["reason"] = found.plan.reason();
    const double seconds = found.plan.predicted_seconds();
    fields["predicted_seconds"] = seconds > 0 ? nb::object(nb::float_(seconds)) : nb::object(nb::none());
    fields["parts"] = parts;
    fields["profile"] = text(found.profile);
    fields["profile_refused"] = text(found.refusal);
    return fields;
}

// Equal requests of one file.
struct Series {
    const File& file;
    MemoryView memory;
    std::uint64_t bytes;  // of each
    bool writes;
};

// Appends the seconds of each request. Returns the path that all took, or "mixed".
std::string timed(const Series& series, const std::vector<std::uint64_t>& offsets, const TransferOptions& options,
                  std::vector<double>& seconds) {
    std::string took;
    seconds.reserve(offsets.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        const MemoryView part = series.memory.slice(i * series.bytes, series.bytes);
        const auto start = Clock::now();
        const Outcome outcome = series.writes ? series.file.write(part, offsets[i], options)
                                              : series.file.read(part, offsets[i], options);
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        outcome.or_throw();
        if (outcome.bytes != series.bytes) {
            throw Error(ErrorCode::end_of_file, "time requests", "the file ended before the request did", "");
        }
        const std::string path = outcome.evidence.path_name();
        took = took.empty() || took == path ? path : "mixed";
    }
    return took;
}

// Requests to time. Request i moves an equal share of the memory, between offsets[i] of the file and share i of the
// memory.
struct TimedRequests {
    const PythonFile& file;
    nb::handle memory;
    bool writes;
    const std::vector<std::uint64_t>& offsets;
};

// Times requests one after the other, each by a waiting caller. Returns the seconds of each and the path that they
// took.
nb::tuple time_requests(const TimedRequests& asked, const nb::kwargs& keywords) {
    const BorrowedMemory borrowed(asked.file.context, asked.memory, asked.writes ? Use::read_from : Use::write_into);
    const TransferOptions options = transfer_options(keywords);
    const std::size_t count = asked.offsets.size();
    const std::uint64_t bytes = count == 0 ? 0 : borrowed.view().bytes / count;
    if (bytes == 0) throw Error(ErrorCode::invalid_argument, "time requests", "no bytes for each request", "");
    std::vector<double> seconds;
    std::string took;
    {
        const GilReleased release;
        took = timed({asked.file.file, borrowed.view().slice(0, bytes * count), bytes, asked.writes}, asked.offsets,
                     options, seconds);
    }
    return nb::make_tuple(seconds, took);
}

}  // namespace

void bind_profile(nb::module_& module) {
    using nb::arg;
    module.def("profile_head", &profile_head, arg("context"), any("path"), arg("measured"));
    module.def("public_mount_options", &shown_options, arg("options"));
    module.def("explain", &explain, arg("file"), arg("asked"), arg("options"));
    module.def(
        "time_requests",
        [](const PythonFile& file, nb::handle memory, const std::string& direction,
           const std::vector<std::uint64_t>& offsets, const nb::kwargs& options) {
            return time_requests({file, memory, direction == "write", offsets}, options);
        },
        arg("file"), any("memory"), arg("direction"), arg("offsets"), arg("options"));
}

}  // namespace penstock::python
