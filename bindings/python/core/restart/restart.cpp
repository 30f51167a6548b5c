// Restart in Python. Calls that move data release the GIL; a Restart is used by one thread at a time.
#include "penstock/restart.hpp"

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "python/core/core.hpp"

namespace penstock::python {
namespace {

// The memory of the fields is borrowed for one call, as arrays give it.
class PythonRestart {
  public:
    PythonRestart(const Context& owner, std::string name, const RestartOptions& options)
        : context(owner), restart_(owner, std::move(name), options) {}

    template <class Call>
    auto use(Call call) {
        const GilReleased release;
        const std::lock_guard lock(mutex_);
        return call(restart_);
    }

    Context context;

  private:
    std::mutex mutex_;  // guards restart_
    Restart restart_;
};

// (process, processes, memory, durable, path)
RestartOptions restart_options(const nb::tuple& given) {
    RestartOptions options;
    options.process = nb::cast<std::uint32_t>(given[0]);
    options.processes = nb::cast<std::uint32_t>(given[1]);
    options.memory = nb::cast<bool>(given[2]) ? MemoryKind::system : MemoryKind::device;
    options.durable = nb::cast<bool>(given[3]);
    options.transfer.path = path_kind(nb::cast<std::string>(given[4]));
    return options;
}

// Fields, as (name, type, shape, start, count, memory or None, bytes from the memory to the first element).
class BorrowedFields {
  public:
    BorrowedFields(PythonRestart& owner, const nb::list& fields, BorrowedMemory::Use use) {
        for (const nb::handle one : fields) {
            const auto given = nb::cast<nb::tuple>(one);
            RestartField field{nb::cast<std::string>(given[0]), nb::cast<std::string>(given[1]), lengths(given[2])};
            field.start = lengths(given[3]);
            field.count = lengths(given[4]);
            if (!given[5].is_none()) {
                memory_.push_back(std::make_unique<BorrowedMemory>(owner.context, given[5], use));
                field.data = static_cast<std::byte*>(memory_.back()->view().data) + nb::cast<std::uint64_t>(given[6]);
            }
            owner.use([&](Restart& restart) { restart.set_field(field); });
        }
    }

  private:
    static std::vector<std::uint64_t> lengths(nb::handle given) { return nb::cast<std::vector<std::uint64_t>>(given); }
    std::vector<std::unique_ptr<BorrowedMemory>> memory_;
};

// (type, shape, bytes of numbers or a list of texts); the type of text is empty.
SnapshotAttribute attribute_of(const std::string& name, const nb::tuple& given) {
    SnapshotAttribute attribute;
    attribute.name = name;
    attribute.dtype = nb::cast<std::string>(given[0]);
    attribute.shape = nb::cast<std::vector<std::uint64_t>>(given[1]);
    if (attribute.dtype.empty()) {
        attribute.texts = nb::cast<std::vector<std::string>>(given[2]);
        attribute.any_length = true;
        return attribute;
    }
    const auto bytes = nb::cast<nb::bytes>(given[2]);
    const auto* first = static_cast<const std::byte*>(bytes.data());
    attribute.values.assign(first, first + bytes.size());
    return attribute;
}

nb::tuple attribute_to_tuple(const SnapshotAttribute& attribute) {
    if (attribute.dtype.empty()) return nb::make_tuple("", attribute.shape, attribute.texts);
    return nb::make_tuple(attribute.dtype, attribute.shape,
                          nb::bytes(attribute.values.data(), attribute.values.size()));
}

nb::dict restart_facts_to_dict(const RestartFacts& facts) {
    nb::dict fields;
    fields["generation"] = facts.generation;
    fields["data_bytes"] = facts.data_bytes;
    fields["seconds"] = facts.seconds;
    fields["passed_over"] = text(facts.passed_over);
    fields["is_locked"] = facts.is_locked;
    fields["evidence_json"] = text(facts.evidence.to_json());
    return fields;
}

std::unique_ptr<PythonRestart> open_restart(const Context& context, nb::handle name, const nb::tuple& options) {
    const RestartOptions wanted = restart_options(options);
    return std::make_unique<PythonRestart>(context, file_name(name, "open restart"), wanted);
}

nb::tuple move_fields(PythonRestart& self, const nb::list& fields) {
    const BorrowedFields borrowed(self, fields, BorrowedMemory::Use::read_from);
    const RestartPart part = self.use([](Restart& restart) { return restart.move(); });
    return nb::make_tuple(nb::bytes(part.sums.data(), part.sums.size() * sizeof(std::uint32_t)), part.coverage);
}

// `parts`: what move gave in each process.
nb::dict commit(PythonRestart& self, const nb::list& parts) {
    RestartPart whole;
    for (const nb::handle one : parts) {
        const auto given = nb::cast<nb::tuple>(one);
        const auto bytes = nb::cast<nb::bytes>(given[0]);
        RestartPart part{std::vector<std::uint32_t>(bytes.size() / sizeof(std::uint32_t)),
                         nb::cast<std::uint64_t>(given[1])};
        if (!part.sums.empty()) std::memcpy(part.sums.data(), bytes.data(), part.sums.size() * sizeof(std::uint32_t));
        whole.join(part);
    }
    return restart_facts_to_dict(self.use([&](Restart& restart) { return restart.commit(whole); }));
}

// (fault, facts)
nb::tuple read_found(PythonRestart& self, const nb::list& fields) {
    self.use([](Restart& restart) { restart.clear(); });  // memory of other calls is gone
    const BorrowedFields borrowed(self, fields, BorrowedMemory::Use::write_into);
    RestartFacts facts;
    const std::string fault = self.use([&](Restart& restart) { return restart.read_found(facts); });
    return nb::make_tuple(text(fault), restart_facts_to_dict(facts));
}

nb::bytes begin_write(PythonRestart& self, const nb::list& fields, const nb::bytes& part) {
    const BorrowedFields borrowed(self, fields, BorrowedMemory::Use::read_from);
    const std::string name = self.use([&](Restart& restart) { return restart.begin({part.c_str(), part.size()}); });
    return nb::bytes(name.data(), name.size());
}

std::uint64_t digest_of(PythonRestart& self, const nb::list& fields) {
    const BorrowedFields borrowed(self, fields, BorrowedMemory::Use::read_from);
    return self.use([](Restart& restart) { return restart.digest(); });
}

}  // namespace

void bind_restart(nb::module_& module) {
    using nb::arg;
    nb::class_<PythonRestart>(module, "Restart")
        .def(
            "set_attribute",
            [](PythonRestart& self, const std::string& name, const nb::tuple& value) {
                const SnapshotAttribute made = attribute_of(name, value);
                self.use([&](Restart& restart) { restart.set_attribute(made); });
            },
            arg("name"), arg("value"))
        .def("find", [](PythonRestart& self) { return self.use([](Restart& restart) { return restart.find(); }); })
        .def("generation",
             [](PythonRestart& self) { return self.use([](Restart& restart) { return restart.generation(); }); })
        .def("field_names",
             [](PythonRestart& self) { return self.use([](Restart& restart) { return restart.field_names(); }); })
        .def(
            "stored",
            [](PythonRestart& self, const std::string& field) {
                const auto found = self.use([&](Restart& restart) { return restart.stored(field); });
                return nb::make_tuple(found.dtype, found.shape);
            },
            arg("field"))
        .def(
            "attribute",
            [](PythonRestart& self, const std::string& name) {
                return attribute_to_tuple(self.use([&](Restart& restart) { return restart.attribute(name); }));
            },
            arg("name"))
        .def("attribute_names",
             [](PythonRestart& self) { return self.use([](Restart& restart) { return restart.attribute_names(); }); })
        .def("clear", [](PythonRestart& self) { self.use([](Restart& restart) { restart.clear(); }); })
        .def("digest", &digest_of, arg("fields"))
        .def("begin", &begin_write, arg("fields"), arg("part"))
        .def("move", &move_fields, arg("fields"))
        .def("commit", &commit, arg("parts"))
        .def("abandon", [](PythonRestart& self) { self.use([](Restart& restart) { restart.abandon(); }); })
        .def("release", [](PythonRestart& self) { self.use([](Restart& restart) { restart.release(); }); })
        .def("read_found", &read_found, arg("fields"))
        .def(
            "pass_over",
            [](PythonRestart& self, const std::string& fault) {
                return self.use([&](Restart& restart) { return restart.pass_over(fault); });
            },
            arg("fault"));
    module.def("restart", &open_restart, arg("context"), any("name"), arg("options"));
}

}  // namespace penstock::python
