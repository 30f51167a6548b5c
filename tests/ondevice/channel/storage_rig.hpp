// What stands behind a channel in the conformance kit: bytes in memory. It holds requests for a while, ends them in
// random order, fails some, and ends some only long after.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "ondevice/nvme/prp.hpp"
#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice::kit {

struct Faults {
    unsigned hold_most = 1;        // requests that it keeps while new ones come, to end them out of order
    unsigned fail_percent = 0;     // requests that end with an error and move nothing
    unsigned delay_percent = 0;    // requests that end delay_ns later
    unsigned lose_percent = 0;     // requests that end late_ns later
    unsigned corrupt_percent = 0;  // for negative controls: one wrong byte
    unsigned swap_percent = 0;     // for negative controls: the completion of another request
    u64 delay_ns = 200'000;
    u64 late_ns = 60'000'000;
    unsigned seed = 1;
};

struct Work {
    u32 slot = 0;
    Request request{};
    std::vector<PrpSpan> spans;
    u64 due_ns = 0;
    bool fail = false;
};

class Bytes {
  public:
    explicit Bytes(u64 bytes) : bytes_(bytes) {}
    void move(const Work& work) {
        u8* at = bytes_.data() + work.request.offset_bytes;
        for (const PrpSpan& span : work.spans) {
            if (work.request.operation == RequestOperation::read) std::memcpy(span.data, at, span.bytes);
            if (work.request.operation == RequestOperation::write) std::memcpy(at, span.data, span.bytes);
            at += span.bytes;
        }
    }
    u64 size() const { return bytes_.size(); }

  private:
    std::vector<u8> bytes_;
};

// The requests that one server thread holds. A request's bytes move when it ends.
class Backlog {
  public:
    Backlog(Bytes& bytes, const Faults& faults) : bytes_(bytes), faults_(faults), random_(faults.seed) {}

    void add(Work work) {
        work.fail = chance(faults_.fail_percent);
        if (chance(faults_.delay_percent)) work.due_ns = Native::now_ns() + faults_.delay_ns;
        if (chance(faults_.lose_percent)) {
            work.due_ns = Native::now_ns() + faults_.late_ns;
            lost_ += 1;
        }
        held_.push_back(std::move(work));
    }

    // Moves the bytes of one request and returns it, to be ended now. `idle`: no new request came; after some such
    // calls it stops holding requests back for more to come.
    std::optional<Work> take(bool idle) {
        if (held_.empty()) return std::nullopt;
        if (held_.size() < faults_.hold_most && (!idle || random_() % 16 != 0)) return std::nullopt;
        const std::size_t from = random_() % held_.size();
        for (std::size_t step = 0; step < held_.size(); ++step) {
            const std::size_t at = (from + step) % held_.size();
            if (held_[at].due_ns != 0 && held_[at].due_ns > Native::now_ns()) continue;
            Work work = std::move(held_[at]);
            held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
            reordered_ += at != 0 ? 1 : 0;
            end(work);
            return work;
        }
        return std::nullopt;
    }

    u64 failed() const { return failed_; }
    u64 lost() const { return lost_; }
    u64 reordered() const { return reordered_; }  // requests that ended while an older one was held

  private:
    bool chance(unsigned percent) { return percent != 0 && random_() % 100 < percent; }

    void end(Work& work) {
        failed_ += work.fail ? 1 : 0;
        if (!work.fail) bytes_.move(work);
        if (!work.spans.empty() && chance(faults_.corrupt_percent)) work.spans[0].data[0] ^= 1;
        if (!held_.empty() && chance(faults_.swap_percent)) std::swap(work.slot, held_[0].slot);
    }

    Bytes& bytes_;
    Faults faults_;
    std::mt19937 random_;
    std::vector<Work> held_;
    std::atomic<u64> failed_{0};
    std::atomic<u64> lost_{0};
    std::atomic<u64> reordered_{0};
};

}  // namespace penstock::ondevice::kit
