// The cache of batches. Only the thread that multiplies runs this code; transfers run beside it.
#include "hmatrix/multiply/source/cached_source.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "hmatrix/multiply/kernels.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

// Adds its lifetime in seconds to `sum`.
class Timed {
  public:
    explicit Timed(double& sum) noexcept : sum_(sum) {}
    ~Timed() { sum_ += seconds_since(began_); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

  private:
    double& sum_;
    Clock::time_point began_ = Clock::now();
};

// One transfer reads ahead at most this many bytes, and at most a quarter of the slots, so that some slots fill while
// others are in use.
constexpr std::int64_t kMostReadBytes = 64 * kMiB;
constexpr std::int64_t kFewestReads = 4;

std::int64_t up_to_page(std::int64_t bytes) noexcept { return (bytes + kPage - 1) / kPage * kPage; }
std::int64_t down_to_page(std::int64_t bytes) noexcept { return bytes / kPage * kPage; }

[[noreturn]] void too_small(std::int64_t cache, std::int64_t pinned, std::int64_t batch) {
    throw Error(ErrorCode::invalid_argument, "open a matrix for products",
                "a cache of " + std::to_string(cache) + " bytes cannot hold " + std::to_string(pinned) +
                    " pinned bytes and a batch of " + std::to_string(batch),
                "give more memory, pin less, or build the matrix with smaller batches");
}

}  // namespace

CachedSource::CachedSource(const Context& context, Workers& workers, const MatrixFile& file,
                           const CacheOptions& options)
    : context_(context),
      file_(file),
      options_(options),
      pinned_(file.head().batches),
      verifier_(file, options.verify, {context, workers, options.memory}) {
    options_.pinned_tiers = std::clamp(options_.pinned_tiers, 0, file.tiers());
    slot_of_.resize(file.head().batches, nullptr);
    std::int64_t slot_bytes = 0;  // size of a slot: the largest part of a batch that is not pinned; 0 if everything is
    for (std::int64_t b = 0; b < file.head().batches; ++b) {
        const std::int64_t bytes = file.tables().batches[b].bytes;
        if (bytes <= file.prefix_bytes(b, options_.pinned_tiers)) continue;
        slot_bytes = std::max(slot_bytes, up_to_page(bytes) - slot_begin(b));
    }
    choose_pinned(slot_bytes);
    load_pinned();
    make_slots(slot_bytes);
}

CachedSource::~CachedSource() {
    for (Slot& slot : slots_) {
        if (slot.reading) slot.read->transfer.wait();  // the transfer writes into memory that is freed here
    }
}

std::int64_t CachedSource::pinned_prefix(std::int64_t batch) const noexcept {
    return batch < pinned_batches_ ? file_.tables().batches[batch].bytes
                                   : file_.prefix_bytes(batch, options_.pinned_tiers);
}

// A slot holds a batch from a page boundary on, at or before the end of the batch's pinned part.
std::int64_t CachedSource::slot_begin(std::int64_t batch) const noexcept {
    return options_.pinned_tiers == 0 ? 0 : down_to_page(file_.prefix_bytes(batch, options_.pinned_tiers));
}

std::int64_t CachedSource::pinned_bytes() const noexcept {
    std::int64_t bytes = 0;
    for (std::int64_t b = 0; b < file_.head().batches; ++b) bytes += up_to_page(pinned_prefix(b));
    return bytes;
}

// Pins everything if everything fits. Otherwise keeps a few slots for the batches that are not pinned.
void CachedSource::choose_pinned(std::int64_t slot_bytes) {
    const std::int64_t batches = file_.head().batches;
    if (options_.cache_bytes == 0 || slot_bytes == 0) {
        pinned_batches_ = batches;
        if (options_.cache_bytes > 0 && pinned_bytes() > options_.cache_bytes) {
            too_small(options_.cache_bytes, pinned_bytes(), 0);
        }
        return;
    }
    const bool as_many_as_fit = options_.pinned_batches < 0;
    pinned_batches_ = as_many_as_fit ? batches : std::min(options_.pinned_batches, batches);
    const auto left = [&] { return options_.cache_bytes - pinned_bytes(); };
    constexpr int kAheadAtLeast = 2;
    const std::int64_t passing = slot_bytes * (1 + (options_.read_ahead < 0 ? kAheadAtLeast : options_.read_ahead));
    while (as_many_as_fit && pinned_batches_ > 0 && left() < (pinned_batches_ < batches ? passing : 0)) {
        --pinned_batches_;
    }
    if (left() < (pinned_batches_ < batches ? slot_bytes : 0)) {
        too_small(options_.cache_bytes, pinned_bytes(), slot_bytes);
    }
}

void CachedSource::load_pinned() {
    const std::int64_t bytes = pinned_bytes();
    if (bytes == 0) return;
    pinned_memory_ = context_.allocate(bytes + kRowsTogether, options_.memory);
    auto* at = static_cast<std::byte*>(pinned_memory_.data());
    std::vector<Range> ranges;
    for (std::int64_t b = 0; b < file_.head().batches; ++b) {
        const std::int64_t size = up_to_page(pinned_prefix(b));
        if (size == 0) continue;
        pinned_[b] = {at, 0};
        const auto offset = static_cast<std::uint64_t>(file_.tables().batches[b].offset);
        ranges.push_back({&file_.file(), offset, at, static_cast<std::uint64_t>(size)});
        at += size;
    }
    TransferOptions options;
    options.path = options_.path;
    const Outcome outcome = [&] {
        const Timed timed(counts_.read_s);
        return context_.start(Direction::read, ranges, options_.memory, options).result().or_throw();
    }();
    count(outcome);
    if (static_cast<std::int64_t>(outcome.bytes) != bytes) throw ends_early();
    for (std::int64_t b = 0; b < file_.head().batches; ++b) {
        const int tiers = b < pinned_batches_ ? file_.tiers() : options_.pinned_tiers;
        if (pinned_[b].memory != nullptr) verifier_.check(b, {0, tiers}, {pinned_[b].memory, pinned_[b].begin});
    }
}

void CachedSource::make_slots(std::int64_t slot_bytes) {
    const std::int64_t unpinned = file_.head().batches - pinned_batches_;
    if (unpinned == 0) return;
    const std::int64_t fit = (options_.cache_bytes - pinned_bytes()) / slot_bytes;
    slots_.resize(std::min(fit, unpinned));
    const std::int64_t ahead = std::min<std::int64_t>(slots(), steps_ahead() + 1);
    const std::int64_t most = std::max<std::int64_t>(1, kMostReadBytes / slot_bytes);
    batches_per_read_ = static_cast<std::size_t>(std::clamp<std::int64_t>(ahead / kFewestReads, 1, most));
    slot_memory_ = context_.allocate(slot_bytes * slots() + kRowsTogether, options_.memory);
    for (std::int64_t i = 0; i < slots(); ++i) {
        slots_[i].region.memory = static_cast<std::byte*>(slot_memory_.data()) + i * slot_bytes;
    }
}

void CachedSource::begin(const Sweep& sweep) {
    order_.begin(sweep);
    for (Slot& slot : slots_) slot.in_use = false;  // a sweep that failed may have left batches taken
    read_ahead();
}

// Whether this sweep needs more of a batch than its pinned part.
bool CachedSource::needs_slot(std::int64_t batch) const noexcept {
    return batch >= pinned_batches_ &&
           file_.prefix_bytes(batch, order_.tiers()) > file_.prefix_bytes(batch, options_.pinned_tiers);
}

int CachedSource::steps_ahead() const noexcept {
    return options_.read_ahead >= 0 ? options_.read_ahead : static_cast<int>(slots()) - 1;
}

bool CachedSource::wanted_soon(std::int64_t batch) const noexcept {
    const std::int64_t steps = order_.steps_until(batch);
    return steps >= 0 && steps <= steps_ahead();
}

// Empty slots are replaced first, then the least recently used.
bool CachedSource::is_replaced_after(const Slot* one, const Slot* other) noexcept {
    return one->batch >= 0 && (other->batch < 0 || one->used > other->used);
}

CachedSource::Slot* CachedSource::victim() noexcept {
    Slot* found = nullptr;
    for (Slot& slot : slots_) {
        if (slot.in_use || slot.reading) continue;
        if (found == nullptr || is_replaced_after(found, &slot)) found = &slot;
    }
    return found;
}

// A heap of the slots that reading ahead may replace. One pass over all slots serves many batches.
std::vector<CachedSource::Slot*> CachedSource::victims_ahead() {
    std::vector<Slot*> found;
    for (Slot& slot : slots_) {
        if (slot.in_use || slot.reading || (slot.batch >= 0 && wanted_soon(slot.batch))) continue;
        found.push_back(&slot);
    }
    std::make_heap(found.begin(), found.end(), is_replaced_after);
    return found;
}

// A slot for a batch that is needed at once. If every slot is being read ahead, because the caller takes batches in an
// unannounced order, this waits for one of these reads and drops its batch.
CachedSource::Slot& CachedSource::slot_for_now() {
    if (Slot* slot = victim()) return *slot;
    for (Slot& slot : slots_) {
        if (slot.in_use) continue;
        slot.reading = false;
        try {
            end_read(*slot.read);
        } catch (const Error&) {  // the batch is dropped, so its error does not matter
        }
        drop_batch(slot);
        return slot;
    }
    throw Error(ErrorCode::internal, "take a batch", "all slots of the cache are in use");
}

void CachedSource::drop_batch(Slot& slot) noexcept {
    if (slot.batch >= 0) slot_of_[slot.batch] = nullptr;
    slot.batch = -1;
}

std::int64_t CachedSource::slot_part(std::int64_t batch, int tiers) const noexcept {
    return up_to_page(file_.prefix_bytes(batch, tiers)) - slot_begin(batch);
}

void CachedSource::start_read(std::span<const Wanted> wanted) {
    const auto read = std::make_shared<Read>();
    std::vector<Range> ranges;
    for (const auto& [slot, batch] : wanted) {
        drop_batch(*slot);
        slot->region.begin = slot_begin(batch);
        const std::int64_t bytes = slot_part(batch, order_.tiers());
        const auto offset = static_cast<std::uint64_t>(file_.tables().batches[batch].offset + slot->region.begin);
        ranges.push_back({&file_.file(), offset, slot->region.memory, static_cast<std::uint64_t>(bytes)});
        read->bytes += bytes;
    }
    TransferOptions options;
    options.path = options_.path;
    const Timed timed(counts_.read_s);
    try {
        read->transfer = context_.start(Direction::read, ranges, options_.memory, options);
    } catch (const Error&) {
        const std::uint64_t there = file_.file().size_bytes();
        const auto beyond = [there](const Range& range) { return range.offset_bytes + range.bytes > there; };
        if (std::any_of(ranges.begin(), ranges.end(), beyond)) throw ends_early();
        throw;
    }
    for (const auto& [slot, batch] : wanted) {
        slot->read = read;
        slot->reading = true;
        slot->tiers = order_.tiers();
        slot->batch = batch;
        slot_of_[batch] = slot;
    }
}

// Waits for the transfer. Throws Error if it failed or brought fewer bytes than asked for.
void CachedSource::end_read(Read& read) {
    const Outcome outcome = [&] {
        const Timed timed(counts_.read_s);
        return read.transfer.result();
    }();
    if (!outcome.ok()) throw Error(outcome.error);
    if (!read.counted) count(outcome);
    read.counted = true;
    if (static_cast<std::int64_t>(outcome.bytes) != read.bytes) throw ends_early();
}

// Waits for the slot's read and checks its bytes. Until then the slot holds no batch, so that an error leaves no wrong
// batch behind.
void CachedSource::finish_read(Slot& slot) {
    const std::int64_t batch = slot.batch;
    slot.reading = false;
    drop_batch(slot);
    try {
        end_read(*slot.read);
    } catch (const Error&) {  // the transfer failed for all its batches: each will be read again
        for (Slot& other : slots_) {
            if (!other.reading || other.read != slot.read) continue;
            other.reading = false;
            drop_batch(other);
        }
        throw;
    }
    verifier_.check(batch, {options_.pinned_tiers, slot.tiers}, {slot.region.memory, slot.region.begin});
    slot.batch = batch;
    slot_of_[batch] = &slot;
}

Error CachedSource::ends_early() const {
    ErrorInfo info;
    info.code = ErrorCode::end_of_file;
    info.operation = "read a matrix";
    info.file = file_.file().name();
    info.cause = "the file ends before its batches do: it was cut short after it was opened";
    return Error(std::move(info));
}

// The batches to read ahead, each with its slot: upcoming batches that are not in memory, as long as slots can be
// replaced.
std::vector<CachedSource::Wanted> CachedSource::choose_ahead() {
    std::vector<Wanted> wanted;
    std::optional<std::vector<Slot*>> victims;
    for (int step = 0; step <= steps_ahead(); ++step) {
        const std::int64_t batch = order_.upcoming(step);
        if (batch < 0) break;                                  // the sweep does not say what comes then
        const bool first = order_.steps_until(batch) == step;  // a batch may come in this sweep and the next
        if (!first || !needs_slot(batch)) continue;
        Slot* slot = slot_of_[batch];
        if (slot != nullptr && (slot->reading || slot->in_use || slot->tiers >= order_.tiers())) continue;
        if (slot == nullptr) {
            if (!victims) victims = victims_ahead();
            if (victims->empty()) break;
            std::pop_heap(victims->begin(), victims->end(), is_replaced_after);
            slot = victims->back();
            victims->pop_back();
        }
        wanted.push_back({slot, batch});
    }
    return wanted;
}

// Reads several batches with one transfer. It reads fewer if they are needed soon, and the very next batch alone.
void CachedSource::read_ahead() {
    if (slots_.empty()) return;
    const std::vector<Wanted> all = choose_ahead();
    for (std::span<const Wanted> left = all; !left.empty();) {
        const std::int64_t steps = order_.steps_until(left.front().batch);
        const std::size_t some = steps == 0 ? 1 : std::min(left.size(), batches_per_read_);
        if (some < batches_per_read_ && steps > steps_ahead() / 2) return;
        start_read(left.first(some));
        left = left.subspan(some);
    }
}

// Returns the slot with all tiers of this sweep. Reads the batch, or waits for its read, if necessary.
CachedSource::Slot& CachedSource::fetch(std::int64_t batch) {
    Slot* slot = slot_of_[batch];
    if (slot != nullptr && !slot->reading && slot->tiers >= order_.tiers()) {
        counts_.bytes_hit += file_.prefix_bytes(batch, order_.tiers());
        return *slot;
    }
    counts_.bytes_hit += file_.prefix_bytes(batch, std::min(options_.pinned_tiers, order_.tiers()));
    if (slot != nullptr && slot->reading) finish_read(*slot);
    if (slot == nullptr || slot->tiers < order_.tiers()) {
        if (slot == nullptr) slot = &slot_for_now();
        const Wanted now{slot, batch};
        start_read({&now, 1});
        finish_read(*slot);
    }
    return *slot;
}

BatchView CachedSource::take(std::int64_t batch) {
    ++takes_;
    ++counts_.batches_taken;
    counts_.bytes_taken += file_.prefix_bytes(batch, order_.tiers());
    Slot* slot = nullptr;
    if (needs_slot(batch)) {
        slot = &fetch(batch);
        slot->in_use = true;
        slot->used = takes_;
    } else {
        counts_.bytes_hit += file_.prefix_bytes(batch, order_.tiers());
    }
    order_.advance();
    read_ahead();
    const BatchRecord& record = file_.tables().batches[batch];
    BatchView view;
    for (int tier = 0; tier < order_.tiers(); ++tier) {
        // A batch without a slot has no bytes in tiers that are not pinned. The product does not read through these
        // pointers.
        const bool in_slot = slot != nullptr && tier >= options_.pinned_tiers;
        const Region& region = in_slot ? slot->region : pinned_[batch];
        if (region.memory != nullptr) view.tiers[tier] = region.memory + (record.tier_begin[tier] - region.begin);
    }
    return view;
}

void CachedSource::give_back(std::int64_t batch) {
    if (slot_of_[batch] != nullptr) slot_of_[batch]->in_use = false;
    read_ahead();
}

void CachedSource::count(const Outcome& outcome) {
    counts_.bytes_read += static_cast<std::int64_t>(outcome.bytes);
    for (const PathShare& share : outcome.evidence.paths) {
        counts_.bytes_by_path[to_string(share.path)] += static_cast<std::int64_t>(share.bytes);
    }
}

}  // namespace penstock::hmatrix
