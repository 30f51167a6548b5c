// See restart_state.hpp: the three parts of a write.
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/crc32/crc32.hpp"
#include "data/selection/coverage.hpp"
#include "formats/create/file_sink.hpp"
#include "formats/faults.hpp"
#include "os/refusal.hpp"
#include "restart/block_sums.hpp"
#include "restart/restart_state.hpp"

namespace penstock::restart {
namespace {

constexpr const char* kWrite = "write restart";

// Waits for a transfer before the memory that it uses may go.
class AwaitedTransfer {
  public:
    explicit AwaitedTransfer(Transfer transfer) : transfer_(std::move(transfer)) {}
    ~AwaitedTransfer() {
        if (!is_done_) transfer_.wait();
    }
    AwaitedTransfer(const AwaitedTransfer&) = delete;
    AwaitedTransfer& operator=(const AwaitedTransfer&) = delete;
    Outcome result() {
        Outcome outcome = transfer_.result();
        is_done_ = true;
        return outcome;
    }

  private:
    Transfer transfer_;
    bool is_done_ = false;
};

void write_bytes(const File& file, std::uint64_t offset, std::span<const std::byte> bytes) {
    formats::FileSink sink(file.name(), false);  // the file has no name yet: nothing in it needs an order
    sink.use(file);
    if (!bytes.empty()) sink.write(offset, bytes);
}

}  // namespace

RestartState::Writing& RestartState::writing(const char* operation) const {
    check_process(operation);
    if (writing_) return *writing_;
    throw refused(operation, "no write was begun", "call begin first");
}

std::uint64_t RestartState::digest() const {
    check_process("digest");
    return lay_out(name_, fields_, attributes_).digest();
}

std::vector<WantedBox> RestartState::boxes_to_write(const RestartLayout& layout) const {
    std::vector<WantedBox> boxes;
    for (std::size_t i = 0; i < fields_.size(); ++i) boxes.push_back(box_of(fields_[i], layout.record.fields[i]));
    return boxes;
}

void RestartState::reserve(const os::NewFile& made, std::uint64_t bytes) {
    os::System& system = os::real_system();
    if (os::again_if_interrupted([&] { return system.fallocate(made.fd(), 0, bytes); }) == 0) return;
    ErrorInfo info = os::refusal("reserve space for", made.path(), errno);
    info.length_bytes = bytes;
    if (errno == ENOSPC || errno == EDQUOT)
        info.advice = "free some: while one is written, a restart takes room for three";
    if (errno != EOPNOTSUPP && errno != ENOSYS) throw Error(std::move(info));
    if (system.ftruncate(made.fd(), bytes) != 0) os::refuse("set the size of", made.path(), errno);
}

// The lock is of both files. Before a look at them: the next generation follows what the last writer left.
void RestartState::take_name(Writing& to) const {
    if (lock_.is_held()) return;
    try {
        to.lock = os::NameLock(os::real_system(), name_ + ".0", kWrite);
    } catch (const Error& error) {
        fail(to, error);
    }
}

void RestartState::make_file(Writing& to) {
    const NextGeneration next = generations_.next();
    to.generation = next.number;
    try {
        to.made.emplace(os::real_system(), next.file, os::NewFileOptions{});
        reserve(*to.made, to.layout.file_bytes);
    } catch (const Error& error) {
        fail(to, error);
    }
}

// With the generation, and the name that the caller gave.
void RestartState::fail(const Writing& to, const Error& error) const {
    ErrorInfo info = error.info();
    if (to.generation != 0) {
        const bool is_of_field = info.cause.starts_with("field ");
        info.cause = "generation " + std::to_string(to.generation) + (is_of_field ? ", " : ": ") + info.cause;
    }
    info.operation = kWrite;
    info.file = name_;
    throw Error(std::move(info));
}

std::string RestartState::begin(const std::string& part) {
    check_process(kWrite);
    if (writing_) throw refused(kWrite, "a write was begun and has not ended", "commit or abandon it");
    if (fields_.empty() && attributes_.empty())
        throw refused(kWrite, "no field and no attribute is set", "set those that the model goes on from");
    auto to = std::make_unique<Writing>();
    to->layout = lay_out(name_, fields_, attributes_);
    static_cast<void>(boxes_to_write(to->layout));  // throws of wrong memory before there is a file
    if (options_.process == 0) {
        take_name(*to);
        make_file(*to);
    }
    const std::string name = options_.process == 0 ? to->made->temporary() : part;
    if (name.empty()) throw refused(kWrite, "the name of the part is empty", "give what begin of process 0 returned");
    to->file = context_.open(name, {.mode = OpenMode::read_write});
    writing_ = std::move(to);
    return name;
}

// The sums are made while the data move.
RestartPart RestartState::move_boxes(Writing& to) const {
    const std::vector<WantedBox> boxes = boxes_to_write(to.layout);
    std::vector<Range> ranges;
    for (const WantedBox& box : boxes) add_ranges(box, *to.file, ranges);
    if (options_.memory == MemoryKind::device) context_.synchronize_stream(stream_);
    TransferOptions how = options_.transfer;
    how.caller_waits = true;
    std::optional<AwaitedTransfer> transfer;
    if (!ranges.empty()) transfer.emplace(context_.start(Direction::write, ranges, options_.memory, how));
    RestartPart part{.sums = std::vector<std::uint32_t>(to.layout.record.blocks)};
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const RecordedField& field = *boxes[i].field;
        const auto sums = std::span(part.sums).subspan(field.first_block, blocks_of(field.bytes));
        BlockSums(field.bytes, sums).add(context_, boxes[i].runs, boxes[i].memory);
        part.coverage += data::coverage_of(fields_[i].start, fields_[i].count) * (2 * i + 1);
        to.facts.data_bytes += boxes[i].memory.bytes;
    }
    if (!transfer) return part;
    Outcome outcome = transfer->result();
    if (outcome.ok()) {
        to.facts.evidence = std::move(outcome.evidence);
        return part;
    }
    ErrorInfo& info = outcome.error;
    for (const WantedBox& box : boxes) {
        const RecordedField& field = *box.field;
        if (info.offset_bytes >= field.offset_bytes && info.offset_bytes - field.offset_bytes < field.bytes)
            info.cause = "field " + formats::shown(field.name) + ": " + info.cause;
    }
    throw Error(std::move(info));
}

RestartPart RestartState::move() {
    Writing& to = writing(kWrite);
    try {
        RestartPart part = move_boxes(to);
        if (options_.process != 0) {
            if (options_.durable) to.file->sync();
            to.file->close();
        }
        to.has_moved = true;
        return part;
    } catch (const Error& error) {
        const std::unique_ptr<Writing> ended = std::move(writing_);
        fail(*ended, error);
    }
}

void RestartState::check_whole(const RestartLayout& layout, const RestartPart& whole) const {
    std::uint64_t coverage = 0;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        const std::vector<std::uint64_t> none(fields_[i].shape.size());
        coverage += data::coverage_of(none, fields_[i].shape) * (2 * i + 1);
    }
    if (whole.sums.size() == layout.record.blocks && whole.coverage == coverage) return;
    throw refused(kWrite, "the boxes of all processes do not have each element of each field once",
                  "give boxes that lie side by side, and fill the field");
}

void RestartState::write_metadata(Writing& to, const RestartPart& whole) const {
    const RestartRecord& record = to.layout.record;
    std::vector<std::uint32_t> table = whole.sums;
    for (const RecordedField& field : record.fields) {
        const auto sums = std::span(table).subspan(field.first_block, blocks_of(field.bytes));
        const BlockSums blocks(field.bytes, sums);
        for (std::size_t i = 0; i < sums.size(); ++i)
            sums[i] = base::crc32_of_remainder(sums[i], blocks.block_bytes(i));
    }
    const auto table_bytes = std::as_bytes(std::span(table));
    const auto text = std::as_bytes(std::span(to.layout.text));
    const formats::Hdf5Image image = to.layout.image(to.generation);
    const std::vector<std::byte> trailer = trailer_bytes({.text_bytes = text.size(),
                                                          .generation = to.generation,
                                                          .file_bytes = to.layout.file_bytes,
                                                          .metadata_bytes = image.metadata.size(),
                                                          .text_sum = sum_of(text),
                                                          .table_sum = sum_of(table_bytes),
                                                          .metadata_sum = sum_of(image.metadata)});
    write_bytes(*to.file, record.sums_offset, table_bytes);
    write_bytes(*to.file, 0, image.metadata);
    write_bytes(*to.file, to.layout.record_offset, text);
    write_bytes(*to.file, to.layout.record_offset + text.size(), trailer);
}

RestartFacts RestartState::commit(const RestartPart& whole) {
    Writing& to = writing(kWrite);
    if (options_.process != 0) throw refused(kWrite, "process 0 commits, and this is another", "call abandon");
    try {
        if (!to.has_moved) throw refused(kWrite, "the boxes of process 0 were not moved", "call move first");
        check_whole(to.layout, whole);
        write_metadata(to, whole);
        to.file->close();
        to.made->publish(options_.durable);
    } catch (const Error& error) {
        const std::unique_ptr<Writing> ended = std::move(writing_);
        fail(*ended, error);
    }
    RestartFacts facts = std::move(to.facts);
    facts.generation = to.generation;
    facts.passed_over = generations_.passed_over();
    facts.seconds = std::chrono::duration<double>(Clock::now() - to.began).count();
    if (!lock_.is_held()) lock_ = std::move(to.lock);
    facts.is_locked = lock_.is_held();
    writing_.reset();
    return facts;
}

void RestartState::abandon() noexcept { writing_.reset(); }

void RestartState::release() noexcept {
    if (process_.here()) lock_.release();
}

RestartFacts RestartState::write() {
    check_process(kWrite);
    if (options_.processes != 1) {
        throw refused(kWrite, "the restart has " + std::to_string(options_.processes) + " processes",
                      "call begin, move and commit, as penstock_mpi.h does");
    }
    begin({});
    return commit(move());
}

}  // namespace penstock::restart
