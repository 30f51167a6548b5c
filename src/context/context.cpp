// The public Context, Buffer and MemoryView.
#include "penstock/context.hpp"

#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "context/state.hpp"
#include "context/transfer/launch.hpp"

namespace penstock {

namespace {

// Ends the state where that is possible: not in a forked child, whose copies of the threads do not exist, not on one of
// the engine's own threads, where a callback may hold the last handle, and not while operations hang longer than the
// owner's patience.
class StateOwner {
  public:
    StateOwner(const ContextOptions& options, context::Seams seams)
        : state_(std::make_unique<context::ContextState>(options, std::move(seams))) {}
    ~StateOwner() {
        if (state_->in_child()) {
            static_cast<void>(state_.release());
        } else if (state_->engine.runs_here() || !ends_soon()) {
            end_elsewhere();
        }
    }
    StateOwner(const StateOwner&) = delete;
    StateOwner& operator=(const StateOwner&) = delete;
    context::ContextState* state() const noexcept { return state_.get(); }

  private:
    bool ends_soon() const {
        const Clock::duration patience = state_->options.end_patience;
        return patience == Clock::duration::max() || state_->engine.stop(Deadline::after(patience));
    }
    // On a thread of its own; without one the state stays.
    void end_elsewhere() noexcept {
        const auto left = std::make_shared<std::unique_ptr<context::ContextState>>(std::move(state_));
        try {
            std::thread([left] { left->reset(); }).detach();
        } catch (const std::system_error&) {
            static_cast<void>(left->release());
        }
    }

    std::unique_ptr<context::ContextState> state_;
};

}  // namespace

MemoryView MemoryView::slice(std::uint64_t offset, std::uint64_t length) const {
    if (offset > bytes || length > bytes - offset) {
        throw Error(ErrorCode::invalid_argument, "slice memory",
                    std::to_string(length) + " bytes at " + std::to_string(offset) + " leave the " +
                        std::to_string(bytes) + " bytes there are");
    }
    return {static_cast<std::byte*>(data) + offset, length, kind};
}

MemoryView Buffer::view() const noexcept { return state_ ? state_->memory->view() : MemoryView{}; }

Context::Context(const ContextOptions& options) : Context(context::make_context(options, {})) {}

Context context::make_context(const ContextOptions& options, Seams seams) {
    const auto owner = std::make_shared<StateOwner>(options, std::move(seams));
    return ContextState::handle({owner, owner->state()});
}

Device& Context::device() const noexcept { return *state_->device; }

const ContextOptions& Context::options() const noexcept { return state_->options; }

File Context::open(const std::string& name, const OpenOptions& options) const {
    File file;
    file.state_ = std::make_shared<context::FileState>();
    file.state_->context = state_;
    file.state_->file = state_->open(name, options);
    return file;
}

Buffer Context::allocate(std::uint64_t bytes, MemoryKind kind, FirstTouch touch) const {
    state_->check_process();
    if (bytes == 0) throw Error(ErrorCode::invalid_argument, "allocate", "a buffer of 0 bytes", "ask for at least 1");
    Buffer buffer;
    buffer.state_ = std::make_shared<context::BufferState>();
    buffer.state_->context = state_;
    const DeviceScope current(*state_->device);
    buffer.state_->memory = std::make_shared<context::Memory>(state_->device, kind, bytes, touch);
    state_->remember(buffer.state_->memory);
    void* data = buffer.data();
    if (touch == FirstTouch::cpu) {
        if (kind == MemoryKind::device) {
            throw Error(ErrorCode::invalid_argument, "allocate", "the CPU cannot touch device memory first",
                        "use first touch gpu or none, or another kind of memory");
        }
        std::memset(data, 0, bytes);
    } else if (touch == FirstTouch::gpu) {
        const auto stream = state_->device->make_stream();
        stream->fill(data, bytes, 0);
        stream->synchronize();
    }
    return buffer;
}

MemoryView Context::wrap(void* memory, std::uint64_t bytes, MemoryKind kind_expected) const {
    state_->check_process();
    const auto refuse = [&](const std::string& cause) {
        throw Error(ErrorCode::invalid_argument, "wrap memory", cause,
                    "give memory of " + state_->device->name() + ", or say which kind of memory it is");
    };
    if (memory == nullptr) refuse("the pointer is null");
    const PointerInfo info = state_->device->pointer_info(memory);
    if (kind_expected == MemoryKind::device) {
        if (!info.known || (info.kind != MemoryKind::device && info.kind != MemoryKind::managed)) {
            refuse("the pointer is not device memory");
        }
        if (info.kind == MemoryKind::device && info.device_index != state_->device_index) {
            refuse("the pointer belongs to another device, number " + std::to_string(info.device_index));
        }
    } else if (info.known && info.kind == MemoryKind::device && !state_->emulated) {  // whose memory is the host's
        refuse(std::string("the pointer is device memory, not ") + to_string(kind_expected));
    }
    if (info.known && info.bytes != 0) {
        const auto* base = static_cast<const std::byte*>(info.base);
        const auto before = static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - base);
        if (before > info.bytes || bytes > info.bytes - before) {
            refuse(std::to_string(bytes) + " bytes leave the allocation, which has " + std::to_string(info.bytes) +
                   " and starts " + std::to_string(before) + " before the pointer");
        }
    }
    return {memory, bytes, info.known ? info.kind : kind_expected};
}

Transfer Context::start(Direction direction, std::span<const Range> ranges, MemoryKind kind,
                        const TransferOptions& options) const {
    Transfer transfer;
    transfer.state_ = context::prepare({*state_, direction, kind, false, options}, resolve(ranges));
    transfer.context_ = state_;
    state_->engine.start(transfer.state_);
    return transfer;
}

std::vector<context::Extent> Context::resolve(std::span<const Range> ranges) const {
    std::vector<context::Extent> resolved;
    resolved.reserve(ranges.size());
    for (const Range& range : ranges) {
        if (range.file == nullptr || !range.file->state_) {
            throw Error(ErrorCode::invalid_argument, "start transfer", "a range has no open file");
        }
        if (range.file->state_->context != state_) {
            throw Error(ErrorCode::invalid_argument, "start transfer " + range.file->name(),
                        "the file belongs to another context");
        }
        resolved.push_back({range.file->state_->file, range.offset_bytes, range.memory, range.bytes});
    }
    return resolved;
}

Plan Context::plan(Direction direction, std::span<const Range> ranges, MemoryKind kind,
                   const TransferOptions& options) const {
    return context::preview({*state_, direction, kind, false, options}, resolve(ranges)).plan;
}

Explanation Context::explain(Direction direction, std::span<const Range> ranges, MemoryKind kind,
                             const TransferOptions& options) const {
    return context::explain({*state_, direction, kind, false, options}, resolve(ranges));
}

Profile Context::identity(const std::string& path) const {
    state_->check_process();
    return context::identity_at(path, state_->device->info());
}

void Context::copy_to_host(void* host, const void* device, std::uint64_t bytes) const {
    state_->check_process();
    state_->streams.run([&](Stream& stream) { stream.copy(CopyDirection::to_host, host, device, bytes); });
}

void Context::copy_to_device(void* device, const void* host, std::uint64_t bytes) const {
    state_->check_process();
    state_->streams.run([&](Stream& stream) { stream.copy(CopyDirection::to_device, device, host, bytes); });
}

void Context::copy_pieces(CopyDirection direction, std::span<const CopyPiece> pieces) const {
    state_->check_process();
    state_->streams.run([&](Stream& stream) { stream.copy_batch(direction, pieces); });
}

bool Context::fill_staging(int byte_value, Deadline deadline) const {
    state_->check_process();
    return state_->engine.fill_staging(byte_value, deadline);
}

std::uint64_t Context::pinned_bytes() const noexcept { return state_->engine.pinned_bytes(); }

std::uint64_t Context::pinned_peak_bytes() const noexcept { return state_->engine.pinned_peak_bytes(); }

}  // namespace penstock
