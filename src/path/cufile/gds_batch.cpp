// The gds-batch path: it hands many operations to cuFile at once and polls for their completions.
//
// A batch keeps no order, so entries are matched by cookie. In compatibility mode each entry takes a buffer from a
// fixed pool. Submitting blocks for ever when the pool is empty, so the depth never exceeds the pool.
#include <algorithm>
#include <vector>

#include "path/cufile/gds.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

constexpr std::uint32_t kUsualBatch = 128;             // the limit of libraries that do not report one
constexpr std::uint32_t kUsualSlabs = 32;              // the smallest pool of any released version
constexpr auto kStatusWait = std::chrono::seconds(1);  // how long one status call may wait

std::uint32_t depth_of(const PathOptions& options) {
    const CuFileStatus& status = options.cufile->status();
    const std::uint32_t batch = status.properties.max_batch_size == 0 ? kUsualBatch : status.properties.max_batch_size;
    const std::uint32_t slabs = status.pool_slabs == 0 ? kUsualSlabs : status.pool_slabs;
    return std::max(1u, std::min({options.depth, batch, slabs}));
}

class GdsBatchPath final : public Path {
  public:
    explicit GdsBatchPath(const PathOptions& options)
        : cufile_(options.cufile), capabilities_(gds_capabilities(PathKind::gds_batch, *cufile_)) {
        capabilities_.asynchronous = true;
        capabilities_.max_in_flight = depth_of(options);
        tags_.resize(capabilities_.max_in_flight);
        events_.resize(capabilities_.max_in_flight);
        for (std::size_t slot = tags_.size(); slot > 0; --slot) free_.push_back(slot - 1);
        const cufile::CuFileError status = api().batch_setup(&batch_, capabilities_.max_in_flight);
        if (status.error != 0) {
            throw Error(ErrorCode::unsupported, "make path gds-batch",
                        "cuFileBatchIOSetUp: " + cufile::error_text(status), "use gds-compat or buffered");
        }
    }

    ~GdsBatchPath() override {
        while (in_flight() > 0) collect(Deadline::never());
        if (!broken_) api().batch_destroy(batch_);
    }

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t submit(std::span<const Operation> operations) override;
    std::size_t reap(std::span<Completion> completions, Deadline deadline) override;

  private:
    const cufile::Api& api() const noexcept { return cufile_->api(); }
    std::size_t in_flight() const noexcept { return tags_.size() - free_.size(); }
    void queue(const Operation& operation, cufile::Handle handle);
    void send();
    void collect(Deadline deadline);
    void abandon(int error);
    void complete(std::size_t slot, std::int64_t result);

    std::shared_ptr<CuFile> cufile_;
    Capabilities capabilities_;
    cufile::BatchId batch_ = nullptr;
    bool broken_ = false;                      // abandon() destroyed the batch: later operations fail
    std::vector<std::uint64_t> tags_;          // by slot; the cookie of an entry is its slot + 1
    std::vector<std::size_t> free_;            // slots
    std::vector<cufile::BatchEntry> entries_;  // of the current submit
    std::vector<cufile::BatchEvent> events_;
    Ready ready_;
};

std::size_t GdsBatchPath::submit(std::span<const Operation> operations) {
    std::size_t taken = 0;
    entries_.clear();
    while (taken < operations.size() && !free_.empty() && in_flight() + ready_.size() < tags_.size()) {
        const Operation& operation = operations[taken++];
        const Prepared prepared = prepare(operation, capabilities_, *cufile_);
        if (prepared.refused.status != ErrorCode::ok) {
            ready_.push(prepared.refused);
        } else {
            queue(operation, prepared.handle);
        }
    }
    send();
    return taken;
}

void GdsBatchPath::queue(const Operation& operation, cufile::Handle handle) {
    const std::size_t slot = free_.back();
    free_.pop_back();
    tags_[slot] = operation.tag;
    cufile::BatchEntry entry{};
    entry.mode = 1;
    entry.memory = operation.memory;
    entry.file_offset = static_cast<off_t>(operation.offset_bytes);
    entry.bytes = operation.bytes;
    entry.handle = handle;
    entry.opcode = operation.direction == Direction::read ? 0 : 1;
    entry.cookie = reinterpret_cast<void*>(slot + 1);
    entries_.push_back(entry);
}

void GdsBatchPath::send() {
    if (entries_.empty()) return;
    int error = cufile::kDriverAlreadyOpen;
    if (!broken_) error = api().batch_submit(batch_, static_cast<unsigned>(entries_.size()), entries_.data(), 0).error;
    if (error == 0) return;
    for (const cufile::BatchEntry& entry : entries_) {
        complete(reinterpret_cast<std::size_t>(entry.cookie) - 1, broken_ ? -5035 : -error);
    }
}

void GdsBatchPath::complete(std::size_t slot, std::int64_t result) {
    ready_.push(gds_completion(tags_[slot], result));
    free_.push_back(slot);
}

void GdsBatchPath::collect(Deadline deadline) {
    const auto wait = std::clamp<std::chrono::nanoseconds>(deadline.left(), std::chrono::nanoseconds(0), kStatusWait);
    timespec timeout{static_cast<time_t>(wait.count() / 1'000'000'000),
                     static_cast<long>(wait.count() % 1'000'000'000)};
    auto count = static_cast<unsigned>(events_.size());
    const unsigned least = wait.count() == 0 ? 0 : 1;
    const cufile::CuFileError status = api().batch_status(batch_, least, &count, events_.data(), &timeout);
    if (status.error != 0) return abandon(status.error);
    for (unsigned i = 0; i < count; ++i) {
        const cufile::BatchEvent& event = events_[i];
        if (event.status == cufile::kWaiting || event.status == cufile::kPending) continue;
        const auto result = static_cast<std::int64_t>(event.result);
        const bool moved = event.status == cufile::kComplete || result < 0;
        complete(reinterpret_cast<std::size_t>(event.cookie) - 1, moved ? result : -5030);
    }
}

// Called when the batch stops answering. Destroying the batch ends its work, so the caller may reuse the memory.
void GdsBatchPath::abandon(int error) {
    api().batch_destroy(batch_);
    broken_ = true;
    std::vector<bool> is_free(tags_.size());
    for (const std::size_t slot : free_) is_free[slot] = true;
    for (std::size_t slot = 0; slot < tags_.size(); ++slot) {
        if (!is_free[slot]) complete(slot, -error);
    }
}

std::size_t GdsBatchPath::reap(std::span<Completion> completions, Deadline deadline) {
    while (ready_.empty() && in_flight() > 0) {
        collect(deadline);
        if (deadline.passed()) break;
    }
    return ready_.pop(completions);
}

}  // namespace

std::unique_ptr<Path> make_gds_batch(const PathOptions& options) {
    const cufile::Api& api = options.cufile->api();
    if (api.batch_setup == nullptr || api.batch_submit == nullptr || api.batch_status == nullptr ||
        api.batch_destroy == nullptr) {
        throw Error(ErrorCode::unsupported, "make path gds-batch",
                    options.cufile->status().version_text() + " has no batch calls", "use gds-compat or buffered");
    }
    return std::make_unique<GdsBatchPath>(options);
}

}  // namespace penstock::path
