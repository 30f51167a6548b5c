// What it costs to make a plan.
#include "measure.hpp"
#include "python/shared/question.hpp"

namespace penstock::python {
namespace {

// Returns the mean seconds of making the plan of a request, with its residency found each time.
double plan_seconds(const PythonFile& file, const nb::dict& asked, std::uint64_t count) {
    const Question question = question_of(file, asked);
    const GilReleased release;
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i) {
        static_cast<void>(file.context.plan(question.direction, {&question.range, 1}, question.kind));
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    return took.count() / static_cast<double>(std::max<std::uint64_t>(count, 1));
}

}  // namespace

void bind_planning(nb::module_& module) {
    using nb::arg;
    module.def("plan_seconds", &plan_seconds, arg("file"), arg("asked"), arg("count"));
}

}  // namespace penstock::python
