// See worker.hpp.
#include "load/worker.hpp"

#include <algorithm>
#include <utility>

#include "base/current_error.hpp"

namespace penstock::load {
namespace {

constexpr std::uint64_t kSlotAlignment = 4096;  // suits O_DIRECT also on disks with blocks larger than 512 bytes
constexpr const char* kLoadOperation = "measure load";
// A thread that waits for callbacks looks itself after this time, because a request that failed calls none.
constexpr auto kCallbackWait = std::chrono::milliseconds(5);

std::uint64_t nanoseconds(double seconds) { return seconds <= 0 ? 0 : static_cast<std::uint64_t>(seconds * 1e9 + 0.5); }

}  // namespace

std::uint64_t slot_bytes(const LoadOptions& options) noexcept {
    return align_up(largest_request(options), kSlotAlignment);
}

void LoadRun::fail(ErrorInfo why) {
    {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::move(why);
    }
    stop();
}

void LoadRun::throw_failure() const {
    if (failure_) throw Error(*failure_);
}

void Arrivals::tell(unsigned slot) {
    const std::lock_guard lock(mutex_);
    told_.push_back(slot);
    came_.notify_one();  // under the lock, because the waiter may destroy the object right after it
}

std::optional<unsigned> Arrivals::next(Clock::duration wait) {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, wait, [this] { return !told_.empty(); })) return std::nullopt;
    const unsigned slot = told_.front();
    told_.pop_front();
    return slot;
}

Worker::Worker(LoadRun& run, const WorkerShare& share)
    : run_(run),
      options_(run.options),
      share_(share),
      requests_(run.options, share.part, share.thread, share.start),
      slot_bytes_(slot_bytes(run.options)),
      transfer_(run.options.transfer),
      slots_(run.options.in_flight) {}

void Worker::operator()() noexcept {
    try {
        prepare();
    } catch (...) {
        run_.fail(info_of_current_exception(kLoadOperation));
    }
    run_.ready.count_down();
    run_.go.wait();
    try {
        work();
    } catch (...) {
        run_.fail(info_of_current_exception(kLoadOperation));
        drain();
    }
    end = Clock::now();
    run_.ended.arrive_and_wait();
    try {
        check_at_end();
    } catch (...) {
        run_.fail(info_of_current_exception(kLoadOperation));
    }
}

void Worker::prepare() {
    Device& device = run_.context.device();
    device.enter_thread();
    if (options_.plain) {
        std::byte* slot = run_.staging == nullptr ? nullptr : run_.staging + share_.thread * slot_bytes_;
        plain_ = std::make_unique<Plain>(device, *share_.file,
                                         Plain::Settings{options_.read_percent != 100, options_.plain_direct, slot});
    }
    if (options_.stamp_seed)
        pattern_ = std::make_unique<Pattern>(run_.context, share_.memory.kind, *options_.stamp_seed);
    if (options_.completion == CompletionMode::callback) arrivals_ = std::make_shared<Arrivals>();
    transfer_.caller_waits = options_.in_flight == 1 && !arrivals_;
    for (unsigned i = 0; i < options_.warm_requests && share_.part.bytes > 0 && !run_.stopped(); ++i) {
        LoadSubmission warm;
        warm.direction = options_.read_percent == 0 ? Direction::write : Direction::read;
        const Request request = requests_.first();
        warm.requests.push_back(request);
        warm.ranges.push_back({share_.file, request.offset, memory_for(request, 0, 0), request.bytes});
        if (pattern_ && warm.direction == Direction::write)
            pattern_->stamp(warm.ranges[0].memory, request.bytes, request.offset);
        move(warm).or_throw();
    }
    if (pattern_) prepare_memory();
}

// Requires: the warm-up has ended. Fills the memory so that bytes of the warm-up cannot pass for later ones.
void Worker::prepare_memory() {
    const bool mirrored_write = options_.mirror && options_.read_percent == 0;
    auto* part = static_cast<std::byte*>(share_.memory.data) + (share_.part.offset - share_.span_offset);
    if (mirrored_write && share_.part.bytes > 0)
        pattern_->stamp(part, share_.part.bytes, share_.part.offset);
    else if (options_.mirror && share_.part.bytes > 0)
        pattern_->fill(part, share_.part.bytes, kPoison);
    else if (!options_.mirror)
        pattern_->fill(share_.memory.data, share_.memory.bytes, kPoison);
}

void Worker::work() {
    if (options_.in_flight == 1 && !arrivals_)
        one_by_one();
    else
        several_in_flight();
}

bool Worker::may_go_on() {
    if (run_.stopped()) return false;
    const bool first = !std::exchange(began_, true);
    if (first || !run_.limit.passed()) return true;
    report.reached_limit = true;
    return false;
}

void* Worker::memory_for(const Request& request, unsigned slot, std::size_t index) const {
    auto* base = static_cast<std::byte*>(share_.memory.data);
    if (options_.mirror) return base + (request.offset - share_.span_offset);
    return base + (std::uint64_t{slot} * options_.batch + index) * slot_bytes_;
}

// Fills the slot with the next requests. Returns false if there are none.
bool Worker::draw(SubmissionSlot& slot, unsigned number) {
    LoadSubmission& next = slot.submission;
    next.requests.clear();
    next.ranges.clear();
    next.bytes = 0;
    next.direction = requests_.direction();
    for (std::size_t i = 0; i < options_.batch; ++i) {
        const auto request = requests_.next();
        if (!request) break;
        void* memory = memory_for(*request, number, i);
        if (pattern_ && next.direction == Direction::write && !(options_.mirror && options_.read_percent == 0))
            pattern_->stamp(memory, request->bytes, request->offset);
        next.requests.push_back(*request);
        next.ranges.push_back({share_.file, request->offset, memory, request->bytes});
        next.bytes += request->bytes;
    }
    return !next.requests.empty();
}

Outcome Worker::move(const LoadSubmission& submission) {
    if (plain_) return plain_->move(submission.direction, submission.ranges.front());
    if (submission.ranges.size() > 1)
        return run_.context.start(submission.direction, submission.ranges, share_.memory.kind, transfer_).result();
    const Range& only = submission.ranges.front();
    const MemoryView memory{only.memory, only.bytes, share_.memory.kind};
    return submission.direction == Direction::read ? share_.file->read(memory, only.offset_bytes, transfer_)
                                                   : share_.file->write(memory, only.offset_bytes, transfer_);
}

void Worker::one_by_one() {
    SubmissionSlot& slot = slots_.front();
    while (may_go_on() && draw(slot, 0)) {
        const auto began = Clock::now();
        const Outcome outcome = move(slot.submission);
        account(slot, outcome, seconds_since(began));
    }
}

void Worker::start(SubmissionSlot& slot, unsigned number) {
    TransferOptions options = transfer_;
    if (arrivals_) {
        options.progress = [arrivals = arrivals_, number](std::uint64_t done, std::uint64_t total) {
            if (done >= total) arrivals->tell(number);
        };
    }
    const Range& first = slot.submission.ranges.front();
    const MemoryView memory{first.memory, first.bytes, share_.memory.kind};
    if (slot.submission.ranges.size() > 1)
        slot.transfer = run_.context.start(slot.submission.direction, slot.submission.ranges, memory.kind, options);
    else if (slot.submission.direction == Direction::read)
        slot.transfer = share_.file->start_read(memory, first.offset_bytes, options);
    else
        slot.transfer = share_.file->start_write(memory, first.offset_bytes, options);
    slot.busy = true;
}

void Worker::finish(SubmissionSlot& slot) {
    slot.busy = false;
    const Outcome outcome = slot.transfer.result();
    account(slot, outcome, outcome.seconds);
}

// Returns the oldest slot in flight, or with callbacks one that a callback named. A transfer may call back several
// times, so a slot counts only while it is busy and done.
unsigned Worker::next_ended(unsigned oldest) {
    if (!arrivals_) return oldest;
    for (;;) {
        if (const auto slot = arrivals_->next(kCallbackWait)) {
            if (slots_[*slot].busy && slots_[*slot].transfer.bytes_done() == slots_[*slot].submission.bytes)
                return *slot;
            continue;
        }
        for (unsigned i = 0; i < slots_.size(); ++i) {
            if (slots_[i].busy && slots_[i].transfer.done()) return i;
        }
    }
}

void Worker::several_in_flight() {
    unsigned busy = 0;
    began_ = true;
    // Ignores the time limit: with fewer requests in flight the run would not be the requested one.
    for (unsigned i = 0; i < slots_.size() && !run_.stopped() && draw(slots_[i], i); ++i, ++busy) start(slots_[i], i);
    unsigned oldest = 0;
    while (busy > 0) {
        const unsigned ended = next_ended(oldest);
        oldest = (oldest + 1) % static_cast<unsigned>(slots_.size());
        if (!slots_[ended].busy) continue;  // no requests were left, so this slot stays empty
        finish(slots_[ended]);
        --busy;
        if (!may_go_on() || !draw(slots_[ended], ended)) continue;
        start(slots_[ended], ended);
        ++busy;
    }
}

// Called after a failure. No transfer may be in flight when the memory is freed.
void Worker::drain() {
    for (SubmissionSlot& slot : slots_) {
        if (!slot.busy) continue;
        slot.transfer.cancel();
        slot.transfer.wait();
    }
}

void Worker::account(SubmissionSlot& slot, const Outcome& outcome, double seconds) {
    const LoadSubmission& submission = slot.submission;
    outcome.or_throw();
    if (outcome.bytes != submission.bytes) {
        ErrorInfo info;
        info.code = ErrorCode::end_of_file;
        info.operation = to_string(submission.direction);
        info.file = share_.file->name();
        info.offset_bytes = submission.requests.front().offset;
        info.length_bytes = submission.bytes;
        info.cause = "only " + std::to_string(outcome.bytes) + " bytes came: the file became shorter";
        throw Error(std::move(info));
    }
    const bool reads = submission.direction == Direction::read;
    (reads ? report.reads : report.writes).add(nanoseconds(seconds));
    report.bytes += outcome.bytes;
    report.operations += submission.requests.size();
    ++report.submissions;
    for (const PathShare& share : outcome.evidence.paths) report.path_bytes[to_string(share.path)] += share.bytes;
    for (const Fallback& fallback : outcome.evidence.fallbacks) {
        auto& told = report.fallbacks;
        const bool known = std::find(told.begin(), told.end(), fallback.cause) != told.end();
        if (!known && told.size() < kFallbacksTold) told.push_back(fallback.cause);
    }
    keep_or_check(slot);
}

// Remembers for the end what a slot's requests read, or checks it now.
void Worker::keep_or_check(SubmissionSlot& slot) {
    const LoadSubmission& submission = slot.submission;
    const bool reads = submission.direction == Direction::read;
    if (options_.mirror) {
        for (const Range& range : submission.ranges) moved_.add({range.offset_bytes, range.bytes});
    } else if (pattern_ && options_.check_last) {
        slot.held = reads ? submission.ranges : std::vector<Range>{};
    } else if (pattern_ && reads) {
        for (const Range& range : submission.ranges) {
            pattern_->verify(range.memory, {range.offset_bytes, range.bytes}, share_.file->name());
            report.verified_bytes += range.bytes;
        }
    }
}

void Worker::check_at_end() {
    report.moved = moved_.ranges();
    if (!pattern_) return;
    const auto check = [this](const void* memory, const Request& range) {
        pattern_->verify(memory, range, share_.file->name());
        report.verified_bytes += range.bytes;
    };
    for (const Request& range : report.moved) check(memory_for(range, 0, 0), range);
    for (const SubmissionSlot& slot : slots_) {
        for (const Range& range : slot.held) check(range.memory, {range.offset_bytes, range.bytes});
    }
}

}  // namespace penstock::load
