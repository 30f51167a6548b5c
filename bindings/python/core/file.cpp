// File in Python: open files, starting transfers, residency.
#include <algorithm>
#include <utility>

#include "core.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

OpenOptions open_options(const nb::kwargs& keywords) {
    OpenOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "mode") {
            const auto mode = option<std::string>(name, value);
            if (mode == "read")
                options.mode = OpenMode::read;
            else if (mode == "read_write")
                options.mode = OpenMode::read_write;
            else if (mode == "create")
                options.mode = OpenMode::create;
            else
                throw Error(ErrorCode::invalid_argument, "open", "there is no mode '" + mode + "'",
                            "use one of read, read_write, create");
        } else if (name == "size_bytes")
            options.size_bytes = byte_count(name, value);
        else if (name == "durable")
            options.durable = option<bool>(name, value);
        else if (name == "replace")
            options.replace = option<bool>(name, value);
        else
            throw nb::type_error(("open has no option '" + name + "'").c_str());
    }
    return options;
}

PythonFile open_file(const Context& context, nb::handle path, const nb::kwargs& keywords) {
    const OpenOptions options = open_options(keywords);
    const std::string name = file_name(path, options.mode == OpenMode::create ? "create" : "open");
    const GilReleased release;
    return PythonFile{context, context.open(name, options)};
}

// A range of a file and the direction of its transfer.
struct Place {
    Direction direction;
    PythonFile& file;
    std::uint64_t offset_bytes;
};

// Reports an error in a caller's memory together with the request that the memory was given for.
SharedMemory borrowed(const Context& context, nb::handle memory, const Place& place) {
    try {
        const Use use = place.direction == Direction::read ? Use::write_into : Use::read_from;
        return std::make_shared<BorrowedMemory>(context, memory, use);
    } catch (const Error& error) {
        ErrorInfo info = error.info();
        if (info.code != ErrorCode::invalid_argument) throw;
        info.operation = to_string(place.direction);
        info.file = place.file.file.name();
        info.offset_bytes = place.offset_bytes;
        throw Error(std::move(info));
    }
}

std::unique_ptr<PythonTransfer> start_one(const Place& place, nb::handle memory, const nb::kwargs& keywords) {
    SharedMemory kept = borrowed(place.file.context, memory, place);
    const TransferOptions options = transfer_options(keywords);
    const File& file = place.file.file;
    Transfer transfer;
    {
        const GilReleased release;
        transfer = place.direction == Direction::read ? file.start_read(kept->view(), place.offset_bytes, options)
                                                      : file.start_write(kept->view(), place.offset_bytes, options);
    }
    place.file.began(transfer);
    return std::make_unique<PythonTransfer>(std::move(transfer), std::vector<SharedMemory>{std::move(kept)},
                                            options.deadline);
}

std::unique_ptr<PythonTransfer> start_read(PythonFile& self, nb::handle memory, nb::handle offset_bytes,
                                           const nb::kwargs& keywords) {
    return start_one({Direction::read, self, byte_count("offset_bytes", offset_bytes)}, memory, keywords);
}

std::unique_ptr<PythonTransfer> start_write(PythonFile& self, nb::handle memory, nb::handle offset_bytes,
                                            const nb::kwargs& keywords) {
    return start_one({Direction::write, self, byte_count("offset_bytes", offset_bytes)}, memory, keywords);
}

nb::dict facts(const PythonFile& self) {
    FileFacts known;
    {
        const GilReleased release;
        known = self.file.facts();
    }
    nb::dict fields;
    fields["name"] = text(known.name);
    fields["file_system"] = known.file_system;
    fields["size_bytes"] = known.size_bytes;
    fields["direct"] = known.direct;
    fields["offset_alignment"] = known.offset_alignment;
    fields["memory_alignment"] = known.memory_alignment;
    fields["alignment_source"] = known.alignment_source;
    fields["direct_cause"] = known.direct_cause;
    return fields;
}

nb::object or_none(const auto& known) { return known ? nb::cast(*known) : nb::none(); }

// `bytes` None: up to the end of the file.
nb::dict residency(const PythonFile& self, nb::handle offset_bytes, nb::handle bytes) {
    const std::uint64_t offset = byte_count("offset_bytes", offset_bytes);
    const bool to_the_end = bytes.is_none();
    std::uint64_t length = to_the_end ? 0 : byte_count("bytes", bytes);
    std::optional<Residency> found;
    std::string why;
    {
        const GilReleased release;
        if (to_the_end) length = std::max(offset, self.file.size_bytes()) - offset;
        try {
            found = self.file.residency(offset, length);
        } catch (const Error& error) {
            if (error.info().code != ErrorCode::permission_denied && error.info().code != ErrorCode::unsupported) throw;
            why = error.info().cause;
        }
    }
    nb::dict fields;
    fields["pages"] = found ? nb::cast(found->pages) : nb::none();
    fields["sampled_pages"] = found ? found->sampled_pages : 0;
    fields["resident_pages"] = found ? nb::cast(found->resident_pages) : nb::none();
    fields["dirty_pages"] = found ? or_none(found->dirty_pages) : nb::none();
    fields["source"] = found ? found->source : "unknown";
    fields["resident_fraction"] = found && found->sampled_pages != 0 ? nb::cast(found->fraction()) : nb::none();
    if (!found) fields["cause"] = why;
    return fields;
}

void drop_cache(const PythonFile& self, nb::handle offset_bytes, nb::handle bytes) {
    const std::uint64_t offset = byte_count("offset_bytes", offset_bytes);
    const std::uint64_t length = byte_count("bytes", bytes);
    const GilReleased release;
    self.file.drop_cache(offset, length);
}

nb::tuple register_mapping(const PythonFile& self) {
    std::string why;
    bool accepted = false;
    {
        const GilReleased release;
        accepted = self.file.register_mapping(why);
    }
    return nb::make_tuple(accepted, why);
}

// Ranges are (file, offset_bytes, memory). All are one submission.
std::unique_ptr<PythonTransfer> start(const Context& context, const std::string& direction, const nb::list& ranges,
                                      const nb::kwargs& keywords) {
    const Direction way = direction == "read" ? Direction::read : Direction::write;
    std::vector<SharedMemory> memory;
    std::vector<Range> wanted;
    for (const nb::handle entry : ranges) {
        const nb::tuple range = nb::borrow<nb::tuple>(entry);
        auto& file = nb::cast<PythonFile&>(range[0]);
        const std::uint64_t offset = byte_count("offset_bytes", range[1]);
        memory.push_back(borrowed(context, range[2], {way, file, offset}));
        const MemoryView& view = memory.back()->view();
        if (view.kind != memory.front()->view().kind) {
            throw Error(ErrorCode::invalid_argument, "start", "the ranges use memory of different kinds",
                        "make one submission for each kind");
        }
        wanted.push_back({&file.file, offset, view.data, view.bytes});
    }
    const TransferOptions options = transfer_options(keywords);
    const MemoryKind kind = memory.empty() ? MemoryKind::device : memory.front()->view().kind;
    Transfer transfer;
    {
        const GilReleased release;
        transfer = context.start(way, wanted, kind, options);
    }
    const PythonFile* last = nullptr;  // ranges often share one file
    for (const nb::handle entry : ranges) {
        auto& file = nb::cast<PythonFile&>(nb::borrow<nb::tuple>(entry)[0]);
        if (&file != last) file.began(transfer);
        last = &file;
    }
    return std::make_unique<PythonTransfer>(std::move(transfer), std::move(memory), options.deadline);
}

}  // namespace

void bind_file(nb::module_& module) {
    using nb::arg;
    const auto release = nb::call_guard<GilReleased>();
    nb::class_<PythonFile>(module, "File", nb::is_weak_referenceable())
        .def_prop_ro("name", [](const PythonFile& self) { return text(self.file.name()); })
        .def_prop_ro("size_bytes", [](const PythonFile& self) { return self.file.size_bytes(); }, release)
        .def_prop_ro("facts", &facts)
        .def("start_read", &start_read, any("memory"), any("offset_bytes"), arg("options"))
        .def("start_write", &start_write, any("memory"), any("offset_bytes"), arg("options"))
        .def(
            "sync", [](const PythonFile& self) { self.file.sync(); }, release)
        .def("wait", &PythonFile::wait)
        .def(
            "close", [](PythonFile& self) { self.file.close(); }, release)
        .def("register_mapping", &register_mapping)
        .def("residency", &residency, any("offset_bytes"), any("bytes"))
        .def("drop_cache", &drop_cache, any("offset_bytes"), any("bytes"));
    module.def("open", &open_file);
    module.def("start", &start);
}

}  // namespace penstock::python
