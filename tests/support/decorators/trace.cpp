// See trace.hpp. A record begins at submission, before the inner path sees the operation, and is logged at reap.
#include "support/decorators/trace.hpp"

#include <utility>

#include "support/decorators/pending.hpp"

namespace penstock::path {
namespace {

class Trace final : public Path {
  public:
    Trace(std::unique_ptr<Path> inner, std::shared_ptr<TraceLog> log)
        : inner_(std::move(inner)), log_(std::move(log)) {}
    const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
    void tidy() noexcept override { inner_->tidy(); }

    std::size_t submit(std::span<const Operation> operations) override {
        const std::uint64_t now_ns = log_->now_ns();
        const std::size_t count = inner_->submit(operations);
        for (const Operation& operation : operations.first(count)) {
            pending_.put(operation.tag, {.submit_ns = now_ns,
                                         .path = capabilities().kind,
                                         .direction = operation.direction,
                                         .file = operation.file == nullptr ? 0 : operation.file->id,
                                         .offset_bytes = operation.offset_bytes,
                                         .asked_bytes = operation.bytes,
                                         .tag = operation.tag});
        }
        return count;
    }

    std::size_t reap(std::span<Completion> completions, Deadline deadline) override {
        const std::size_t count = inner_->reap(completions, deadline);
        const std::uint64_t now_ns = log_->now_ns();
        for (const Completion& completion : completions.first(count)) {
            auto record = pending_.take(completion.tag);
            if (!record) continue;
            record->done_ns = now_ns;
            record->moved_bytes = completion.bytes;
            record->status = completion.status;
            record->system_code = completion.system_code;
            log_->add(*record);
        }
        return count;
    }

  private:
    std::unique_ptr<Path> inner_;
    std::shared_ptr<TraceLog> log_;
    Pending<TraceRecord> pending_;
};

}  // namespace

void TraceLog::add(const TraceRecord& record) {
    const std::lock_guard lock(mutex_);
    records_.push_back(record);
}

std::vector<TraceRecord> TraceLog::records() const {
    const std::lock_guard lock(mutex_);
    return records_;
}

std::string TraceLog::csv() const {
    std::string text =
        "submit_ns,done_ns,path,direction,file,offset_bytes,asked_bytes,moved_bytes,status,system_code,tag\n";
    for (const TraceRecord& record : records()) {
        const auto number = [&text](std::uint64_t value) { text += std::to_string(value) + ","; };
        number(record.submit_ns);
        number(record.done_ns);
        text += std::string(to_string(record.path)) + "," + to_string(record.direction) + ",";
        number(record.file);
        number(record.offset_bytes);
        number(record.asked_bytes);
        number(record.moved_bytes);
        text += std::string(to_string(record.status)) + "," + std::to_string(record.system_code) + ",";
        text += std::to_string(record.tag) + "\n";
    }
    return text;
}

std::unique_ptr<Path> traced(std::unique_ptr<Path> inner, std::shared_ptr<TraceLog> log) {
    return std::make_unique<Trace>(std::move(inner), std::move(log));
}

}  // namespace penstock::path
