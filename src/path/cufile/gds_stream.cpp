// The gds-stream path: it queues cuFile reads and writes on a device stream, in order with the stream's other work.
//
// cuFile keeps the addresses of size, offsets and result until the stream has run the operation. So a slot owns these
// values, and is reused only after the event behind its operation is done.
#include <sys/types.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "path/cufile/gds.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

class GdsStreamPath final : public Path {
  public:
    explicit GdsStreamPath(const PathOptions& options)
        : cufile_(options.cufile),
          stream_(*options.stream),
          capabilities_(gds_capabilities(PathKind::gds_stream, *cufile_)),
          slots_(std::max(1u, options.depth)) {
        capabilities_.asynchronous = true;
        capabilities_.max_in_flight = static_cast<std::uint32_t>(slots_.size());
        for (StreamSlot& slot : slots_) {
            slot.done = options.device->make_event();
            free_.push_back(&slot);
        }
    }

    ~GdsStreamPath() override {
        while (!running_.empty()) finish_oldest(Deadline::never());
    }

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t submit(std::span<const Operation> operations) override;
    std::size_t reap(std::span<Completion> completions, Deadline deadline) override;

  private:
    struct StreamSlot {
        std::size_t bytes = 0;
        off_t file_offset = 0;
        off_t memory_offset = 0;
        ssize_t moved = 0;
        std::uint64_t tag = 0;
        ErrorInfo failure;
        std::unique_ptr<Event> done;
    };

    void start(const Operation& operation);
    bool finish_oldest(Deadline deadline);

    std::shared_ptr<CuFile> cufile_;
    Stream& stream_;
    Capabilities capabilities_;
    std::vector<StreamSlot> slots_;  // never resized: cuFile holds addresses of its elements
    std::vector<StreamSlot*> free_;
    std::deque<StreamSlot*> running_;  // in stream order
    Ready ready_;
};

std::size_t GdsStreamPath::submit(std::span<const Operation> operations) {
    std::size_t taken = 0;
    while (taken < operations.size() && !free_.empty() && running_.size() + ready_.size() < slots_.size()) {
        start(operations[taken++]);
    }
    return taken;
}

void GdsStreamPath::start(const Operation& operation) {
    const Prepared prepared = prepare(operation, capabilities_, *cufile_);
    if (prepared.refused.status != ErrorCode::ok) return ready_.push(prepared.refused);
    StreamSlot& slot = *free_.back();
    slot.bytes = operation.bytes;
    slot.file_offset = static_cast<off_t>(operation.offset_bytes);
    slot.memory_offset = 0;
    slot.moved = 0;
    slot.tag = operation.tag;
    const auto call = operation.direction == Direction::read ? cufile_->api().read_async : cufile_->api().write_async;
    const cufile::CuFileError status = call(prepared.handle, operation.memory, &slot.bytes, &slot.file_offset,
                                            &slot.memory_offset, &slot.moved, stream_.native_handle());
    if (status.error != 0) return ready_.push(gds_completion(operation.tag, -status.error));
    free_.pop_back();
    running_.push_back(&slot);
    try {
        stream_.record(*slot.done);
    } catch (const Error& error) {
        slot.failure = error.info();  // submit() does not throw, so reap() reports the failure of the device
    }
}

// The stream runs in order, so its oldest operation finishes first. If the device failed, every wait ends with its
// error.
bool GdsStreamPath::finish_oldest(Deadline deadline) {
    StreamSlot& slot = *running_.front();
    Completion completion;
    try {
        if (!slot.failure.ok()) throw Error(std::exchange(slot.failure, {}));
        if (!slot.done->wait(deadline)) return false;
        completion = gds_completion(slot.tag, slot.moved);
    } catch (const Error& error) {
        completion.tag = slot.tag;
        completion.status = error.code();
        completion.system_code = error.info().system_code;
    }
    ready_.push(completion);
    running_.pop_front();
    free_.push_back(&slot);
    return true;
}

std::size_t GdsStreamPath::reap(std::span<Completion> completions, Deadline deadline) {
    if (ready_.empty() && !running_.empty()) finish_oldest(deadline);
    while (!running_.empty() && ready_.size() < completions.size() && finish_oldest(Deadline::now())) {
    }
    return ready_.pop(completions);
}

}  // namespace

std::unique_ptr<Path> make_gds_stream(const PathOptions& options) {
    if (options.stream == nullptr || options.device == nullptr) {
        throw Error(ErrorCode::invalid_argument, "make path gds-stream", "no device stream was given",
                    "set PathOptions::device and ::stream");
    }
    const cufile::Api& api = options.cufile->api();
    if (api.read_async == nullptr || api.write_async == nullptr) {
        throw Error(ErrorCode::unsupported, "make path gds-stream",
                    options.cufile->status().version_text() + " has no stream calls", "use gds-compat or buffered");
    }
    return std::make_unique<GdsStreamPath>(options);
}

}  // namespace penstock::path
