// Transfer and Outcome as Python classes, and plans as dicts.
#include "core.hpp"

namespace penstock::python {
namespace {

bool wait(const PythonTransfer& self, nb::handle timeout, nb::handle progress) {
    return self.wait(deadline_after("timeout", timeout), progress);
}

nb::object error_of(const Outcome& outcome) {
    return outcome.ok() ? nb::object(nb::none()) : nb::object(error_to_dict(outcome.error));
}

// (path, bytes, operations, host_copies_bytes) of what one path moved. None where evidence has more to tell.
nb::object only_share(const Outcome& outcome) {
    const Evidence& told = outcome.evidence;
    if (told.paths.size() != 1 || !told.fallbacks.empty() || !told.notes.empty()) return nb::none();
    const PathShare& share = told.paths.front();
    return nb::make_tuple(to_string(share.path), share.bytes, share.operations, share.host_copies_bytes);
}

nb::dict step_to_dict(const Step& step) {
    nb::dict fields;
    fields["path"] = to_string(step.shape.path);
    fields["direction"] = to_string(step.shape.direction);
    fields["staged"] = step.shape.staged;
    fields["run_inline"] = step.shape.run_inline;
    fields["chunk_bytes"] = step.shape.chunk_bytes;
    fields["workers"] = step.shape.workers;
    fields["depth"] = step.shape.depth;
    fields["reason"] = step.reason;
    std::uint64_t bytes = 0;
    for (const PlanPiece& piece : step.pieces) bytes += piece.bytes;
    fields["bytes"] = bytes;
    return fields;
}

}  // namespace

nb::dict plan_to_dict(const Plan& plan) {
    nb::list steps;
    for (const Step& step : plan.steps) steps.append(step_to_dict(step));
    nb::dict fields;
    fields["text"] = plan.describe();
    fields["pinned_bytes"] = plan.pinned_bytes;
    fields["steps"] = steps;
    return fields;
}

void bind_transfer(nb::module_& module) {
    nb::class_<Outcome>(module, "Outcome")
        .def_ro("bytes", &Outcome::bytes)
        .def_ro("seconds", &Outcome::seconds)
        .def_ro("reached_end", &Outcome::reached_end)
        .def_prop_ro("ok", &Outcome::ok)
        .def_prop_ro("error", &error_of)
        .def("or_throw", [](const Outcome& self) { self.or_throw(); })
        .def_prop_ro("path", [](const Outcome& self) { return self.evidence.path_name(); })
        .def_prop_ro("only_share", &only_share)
        .def_prop_ro("evidence_json", [](const Outcome& self) { return text(self.evidence.to_json()); });
    nb::class_<PythonTransfer>(module, "Transfer")
        .def_prop_ro("done", [](const PythonTransfer& self) { return self.transfer().done(); })
        .def("wait", &wait, any("timeout"), any("progress"))
        .def("settle", [](const PythonTransfer& self,
                          nb::handle timeout) { return self.settle(deadline_after("timeout", timeout)); },
             any("timeout"))
        .def("result", &PythonTransfer::result)
        .def("cancel", &PythonTransfer::cancel, nb::call_guard<GilReleased>())
        .def_prop_ro("bytes_done", [](const PythonTransfer& self) { return self.transfer().bytes_done(); })
        .def_prop_ro("bytes_total", [](const PythonTransfer& self) { return self.transfer().bytes_total(); })
        .def_prop_ro("plan", [](const PythonTransfer& self) { return plan_to_dict(self.transfer().plan()); });
}

}  // namespace penstock::python
