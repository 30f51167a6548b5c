// See restart_state.hpp: what is set, and reading. writing.cpp has the writes.
#include "restart/restart_state.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "formats/faults.hpp"
#include "snapshot/snapshot_attribute.hpp"

namespace penstock::restart {

using formats::shown;

namespace {

constexpr const char* kRead = "read restart";

std::string told(std::span<const std::uint64_t> shape) {
    return shown(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

// Start and count of a field with those that were left out.
FieldBox whole_box(const RestartField& field) {
    FieldBox box{field.shape, field.start, field.count};
    if (box.start.empty()) box.start.resize(field.shape.size());
    if (box.count.empty() && box.start.size() == field.shape.size()) {
        for (std::size_t i = 0; i < field.shape.size(); ++i)
            box.count.push_back(field.shape[i] - std::min(field.shape[i], box.start[i]));
    }
    return box;
}

bool lies_within(const FieldBox& box) {
    const std::size_t rank = box.shape.size();
    if (box.start.size() != rank || box.count.size() != rank) return false;
    for (std::size_t i = 0; i < rank; ++i)
        if (box.start[i] > box.shape[i] || box.count[i] > box.shape[i] - box.start[i]) return false;
    return true;
}

bool is_too_large(std::span<const std::uint64_t> shape, std::uint64_t item_bytes) {
    std::uint64_t bytes = item_bytes;
    for (const std::uint64_t length : shape)
        if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(length, 1), &bytes)) return true;
    return bytes > std::uint64_t{1} << 62;
}

template <typename Named>
void put_named(std::vector<Named>& all, const Named& one) {
    const auto there = std::find_if(all.begin(), all.end(), [&](const Named& other) { return other.name == one.name; });
    if (there == all.end()) {
        all.push_back(one);
    } else {
        *there = one;
    }
}

// The same files, wherever the program goes later. An empty name stays one.
std::string from_here(const std::string& name) {
    if (name.empty()) return name;
    std::error_code unknown;
    const std::filesystem::path whole = std::filesystem::absolute(name, unknown);
    return unknown ? name : whole.string();
}

}  // namespace

RestartState::RestartState(const Context& context, const std::string& name, const RestartOptions& options)
    : context_(context), name_(from_here(name)), options_(options), generations_(context, name_) {
    const char* operation = "open restart";
    if (name_.empty() || name_.back() == '/')
        throw refused(operation, "the name is empty", "give a name for two files");
    if (options.memory != MemoryKind::device && options.memory != MemoryKind::system) {
        throw refused(operation, std::string("fields lie in ") + to_string(options.memory) + " memory",
                      "use device, or system for fields of the host");
    }
    if (options.process >= options.processes) {
        throw refused(operation,
                      "process " + std::to_string(options.process) + " of " + std::to_string(options.processes),
                      "processes have the numbers from 0 on");
    }
}

Error RestartState::refused(const char* operation, std::string cause, std::string advice) const {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = operation;
    info.file = name_;
    info.cause = std::move(cause);
    info.advice = std::move(advice);
    return Error(std::move(info));
}

void RestartState::check_process(const char* operation) const {
    if (process_.here()) return;
    throw Error(ErrorCode::unsupported, operation, "this process was forked from the one that opened the restart",
                "open another one in the child");
}

void RestartState::set_field(const RestartField& field) {
    const char* operation = "set field";
    check_process(operation);
    formats::ElementType type;
    const std::string what = "field " + shown(field.name);
    if (field.name.empty() || field.name.starts_with('/') || field.name == "penstock" ||
        field.name.starts_with("penstock/")) {
        throw refused(operation, what + " has no name that can be used",
                      "give one that does not begin with / or penstock/");
    }
    if (!formats::type_named(field.dtype, type)) {
        throw refused(operation, what + " has the type " + shown(field.dtype) + ", which is none",
                      "use names as float32, uint64 or bool");
    }
    if (is_too_large(field.shape, type.item_bytes)) {
        throw refused(operation, what + " is " + field.dtype + " " + told(field.shape), "no file has so many bytes");
    }
    RestartField whole = field;
    const FieldBox box = whole_box(field);
    if (!lies_within(box)) {
        throw refused(operation,
                      "the box of " + what + ", from " + told(box.start) + " " + told(box.count) +
                          " elements, does not lie in " + told(field.shape),
                      "give a start and a count for each dimension");
    }
    whole.start = box.start;
    whole.count = box.count;
    std::vector<RestartField> all = fields_;
    put_named(all, whole);
    static_cast<void>(lay_out(name_, all, attributes_));  // throws of what does not go together
    fields_ = std::move(all);
}

void RestartState::set_attribute(const SnapshotAttribute& attribute) {
    check_process("set attribute");
    try {
        std::vector<SnapshotAttribute> all = attributes_;
        put_named(all, attribute);
        static_cast<void>(lay_out(name_, {}, all));  // throws of one that is too long
        attributes_ = std::move(all);
    } catch (const Error& error) {
        const std::string what = "attribute " + shown(attribute.name) + " ", cause = error.info().cause;
        throw refused("set attribute", cause.starts_with(what) ? cause : what + cause, error.info().advice);
    }
}

void RestartState::clear() {
    check_process("clear restart");
    fields_.clear();
    attributes_.clear();
}

void RestartState::check_memory(const RestartField& field, std::uint64_t bytes) const {
    if (bytes == 0) return;
    const std::string what = "the memory of field " + shown(field.name);
    if (field.data == nullptr) throw refused("use field", what + " is a null pointer", "give its first element");
    try {
        static_cast<void>(context_.wrap(field.data, bytes, options_.memory));
    } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid_argument) throw;
        const bool on_device = options_.memory == MemoryKind::device;
        throw refused("use field", what + ": " + error.info().cause,
                      "this restart takes memory of " + (on_device ? context_.device().name() : "the host"));
    }
}

WantedBox RestartState::box_of(const RestartField& field, const RecordedField& stored) const {
    const FieldBox box{field.shape, field.start, field.count};
    const std::uint64_t bytes = elements_of(field.count) * stored.item_bytes;
    check_memory(field, bytes);
    return {&stored, runs_of(box, stored.item_bytes), {field.data, bytes, options_.memory}};
}

bool RestartState::find() {
    check_process("find restart");
    found_ = generations_.newest();
    return found_.has_value();
}

const StoredGeneration& RestartState::found(const char* operation) const {
    check_process(operation);
    if (found_) return *found_;
    throw refused(operation, "no generation was found", "call find first, and look at what it says");
}

std::vector<WantedBox> RestartState::boxes_to_read() const {
    const StoredGeneration& from = found(kRead);
    std::vector<WantedBox> boxes;
    for (const RestartField& field : fields_) {
        const std::string where = " in generation " + std::to_string(from.number);
        const RecordedField* stored = from.field(field.name);
        if (stored == nullptr) {
            throw refused(kRead, "there is no field " + shown(field.name) + where, "set the fields that it has");
        }
        if (stored->dtype != field.dtype || stored->shape != field.shape) {
            throw refused(kRead,
                          "field " + shown(field.name) + " is " + stored->dtype + " " + told(stored->shape) + where +
                              ", and was set as " + field.dtype + " " + told(field.shape),
                          "set it as it is stored, and read again");
        }
        boxes.push_back(box_of(field, *stored));
    }
    return boxes;
}

std::string RestartState::read_found(RestartFacts& facts) {
    const auto began = Clock::now();
    const std::vector<WantedBox> boxes = boxes_to_read();
    if (options_.memory == MemoryKind::device) context_.synchronize_stream(stream_);
    facts = {};
    facts.generation = found_->number;
    for (const WantedBox& box : boxes) facts.data_bytes += box.memory.bytes;
    const std::string fault = BoxReader(context_, *found_, options_).read(boxes, facts.evidence);
    facts.passed_over = generations_.passed_over();
    facts.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return fault;
}

bool RestartState::pass_over(const std::string& cause) {
    generations_.pass_over(found(kRead), cause);
    return find();
}

RestartFacts RestartState::read() {
    check_process(kRead);
    if (!found_ && !find()) {
        throw refused(kRead, "there is no generation: neither " + name_ + ".0 nor " + name_ + ".1",
                      "call find first, and begin from the start where it says so");
    }
    RestartFacts facts;
    const auto began = Clock::now();
    for (std::string fault = read_found(facts); !fault.empty(); fault = read_found(facts)) pass_over(fault);
    facts.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return facts;
}

}  // namespace penstock::restart
