// The public File, Transfer and Outcome.
#include <utility>

#include "context/state.hpp"
#include "context/transfer/launch.hpp"
#include "context/transfer/small/small_read.hpp"
#include "os/file/residency.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

// A File that was never opened or was moved from.
const context::FileState& opened(const std::shared_ptr<context::FileState>& state) {
    if (!state) throw Error(ErrorCode::invalid_argument, "use file", "the file is not open");
    state->context->check_process();
    return *state;
}

const TransferOptions& default_options() {
    static const TransferOptions options;
    return options;
}

// A Transfer that was never started, or one of the process that forked this one.
context::StartedTransfer& started(const std::shared_ptr<context::StartedTransfer>& state,
                                  const std::shared_ptr<context::ContextState>& context) {
    if (!state) throw Error(ErrorCode::invalid_argument, "use transfer", "the transfer was never started");
    context->check_process();
    return *state;
}

std::shared_ptr<context::StartedTransfer> begin(const context::Submission& submission, const context::Extent& extent) {
    auto transfer = context::prepare(submission, {extent});
    submission.context.engine.start(transfer);
    return transfer;
}

Outcome finish(const context::Submission& submission, const context::Extent& extent) {
    const auto transfer = begin(submission, extent);
    *transfer->seen = true;
    Outcome outcome = transfer->take_result();
    if (outcome.ok() && outcome.bytes == 0 && submission.reading()) {
        context::check_offset(extent, submission.operation(), extent.file->size_bytes());
    }
    return outcome;
}

}  // namespace

const std::string& File::name() const noexcept {
    static const std::string none;
    return state_ ? state_->file->handle().name : none;
}

std::uint64_t File::size_bytes() const { return opened(state_).file->size_bytes(); }

FileFacts File::facts() const {
    const context::OpenFile& file = *opened(state_).file;
    FileFacts facts;
    facts.name = file.handle().name;
    facts.file_system = file.facts().file_system;
    facts.size_bytes = file.size_bytes();
    facts.direct = file.direct().usable;
    facts.offset_alignment = file.direct().offset_alignment;
    facts.memory_alignment = file.direct().memory_alignment;
    facts.alignment_source = file.direct().source;
    facts.direct_cause = file.direct().cause;
    return facts;
}

std::optional<SmallRead> File::try_small_read(MemoryView memory, std::uint64_t offset_bytes,
                                              std::optional<std::uintptr_t> after) const {
    const context::FileState& state = opened(state_);
    return context::small_read({*state.context, Direction::read, memory.kind, true, default_options()},
                               {state.file, offset_bytes, memory.data, memory.bytes}, after);
}

std::optional<SmallWrite> File::try_small_write(MemoryView memory, std::uint64_t offset_bytes) const {
    const context::FileState& state = opened(state_);
    return context::small_write({*state.context, Direction::write, memory.kind, true, default_options()},
                                {state.file, offset_bytes, memory.data, memory.bytes});
}

namespace {

std::optional<SmallReads> small_reads_of(const context::FileState& state, const context::SmallPieces& pieces) {
    return context::small_reads({*state.context, Direction::read, pieces.memory.kind, true, default_options()},
                                state.file, pieces);
}

}  // namespace

std::optional<SmallReads> File::try_small_reads(MemoryView memory, std::span<const Range> ranges) const {
    return small_reads_of(opened(state_), {memory, ranges});
}

std::optional<SmallWrites> File::try_small_writes(MemoryView memory, std::span<const Range> ranges) const {
    const context::FileState& state = opened(state_);
    return context::small_writes({*state.context, Direction::write, memory.kind, true, default_options()}, state.file,
                                 {memory, ranges});
}

std::optional<SmallReads> File::try_cached_reads(MemoryView memory, std::span<const Range> ranges) const {
    return small_reads_of(opened(state_), {memory, ranges, true});
}

Outcome File::read(MemoryView memory, std::uint64_t offset_bytes, const TransferOptions& options) const {
    const context::FileState& state = opened(state_);
    return finish({*state.context, Direction::read, memory.kind, true, options},
                  {state.file, offset_bytes, memory.data, memory.bytes});
}

Outcome File::write(MemoryView memory, std::uint64_t offset_bytes, const TransferOptions& options) const {
    const context::FileState& state = opened(state_);
    return finish({*state.context, Direction::write, memory.kind, true, options},
                  {state.file, offset_bytes, memory.data, memory.bytes});
}

Transfer File::start_read(MemoryView memory, std::uint64_t offset_bytes, const TransferOptions& options) const {
    return start(Direction::read, memory, offset_bytes, options);
}

Transfer File::start_write(MemoryView memory, std::uint64_t offset_bytes, const TransferOptions& options) const {
    return start(Direction::write, memory, offset_bytes, options);
}

Transfer File::start(Direction direction, const MemoryView& memory, std::uint64_t offset_bytes,
                     const TransferOptions& options) const {
    const context::FileState& state = opened(state_);
    Transfer transfer;
    transfer.context_ = state.context;
    transfer.state_ = begin({*state.context, direction, memory.kind, false, options},
                            {state.file, offset_bytes, memory.data, memory.bytes});
    return transfer;
}

void File::sync() const { opened(state_).file->sync(); }

void File::resize(std::uint64_t bytes) const { opened(state_).file->resize(bytes); }

void File::close() { opened(state_).file->close(); }

bool File::register_mapping(std::string& why) const {
    const context::FileState& state = opened(state_);
    return state.context->mappings->register_all(state.file->handle(), why);
}

Residency File::residency(std::uint64_t offset_bytes, std::uint64_t bytes) const {
    return os::residency(opened(state_).file->handle().buffered_fd, offset_bytes, bytes);
}

void File::drop_cache(std::uint64_t offset_bytes, std::uint64_t bytes) const {
    const context::FileState& state = opened(state_);
    os::drop_cache(state.context->system, state.file->handle().buffered_fd, name(), {offset_bytes, bytes});
}

const Outcome& Outcome::or_throw() const {
    if (!error.ok()) throw Error(error);
    return *this;
}

bool Transfer::done() const { return started(state_, context_).done(); }

bool Transfer::wait(Deadline deadline) const { return started(state_, context_).wait(deadline); }

Outcome Transfer::result(Deadline patience) const {
    context::StartedTransfer& transfer = started(state_, context_);
    *transfer.seen = true;
    return transfer.result(patience);
}

void Transfer::cancel() const {
    context::StartedTransfer& transfer = started(state_, context_);
    context_->engine.cancel(transfer);
}

std::uint64_t Transfer::bytes_done() const noexcept { return state_ ? state_->bytes_done() : 0; }

std::uint64_t Transfer::bytes_total() const noexcept { return state_ ? state_->bytes_total() : 0; }

const Plan& Transfer::plan() const noexcept {
    static const Plan none;
    return state_ ? state_->plan() : none;
}

}  // namespace penstock
