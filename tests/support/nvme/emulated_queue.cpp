// See emulated_queue.hpp.
#include "support/nvme/emulated_queue.hpp"

#include <chrono>

namespace penstock::ondevice {

bool EmulatedCompletions::post(u32 result, u32 dword2, u32 dword3) {
    const std::scoped_lock lock(mutex_);
    const u32 next = (tail_ + 1) % size_;
    if (next == Native::load<Scope::system>(head_doorbell_)) return false;
    NvmeCompletion& entry = entries_[tail_];
    entry.dword[0] = result;
    entry.dword[1] = 0;
    entry.dword[2] = dword2;
    Native::store<Scope::system>(&entry.dword[3], dword3 | phase_ << 16);
    tail_ = next;
    if (tail_ == 0) phase_ ^= 1;
    return true;
}

EmulatedQueue::EmulatedQueue(const EmulatedQueueSetup& setup, const EmulatedSpace& space, const EmulatedFaults& faults,
                             EmulatedCounts& counts)
    : setup_(setup), space_(space), faults_(faults), counts_(counts), random_(faults.seed + setup.id) {
    setup_.completions->users += 1;
    thread_ = std::thread([this] { serve(); });
}

EmulatedQueue::~EmulatedQueue() {
    stop_ = true;
    thread_.join();
    setup_.completions->users -= 1;
}

void EmulatedQueue::serve() {
    constexpr u32 patience = 2000;  // polls without work before the thread sleeps between polls
    for (u32 idle = 0; !stop_; ++idle) {
        const bool came = take();
        if (end_one(!came) || came) idle = 0;
        else if (idle < patience) Native::pause(0);
        else std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

bool EmulatedQueue::take() {
    const u32 tail = Native::load<Scope::system>(setup_.tail_doorbell);
    if (tail == head_) return false;
    if (tail >= setup_.size) {
        counts_.bad_doorbells += 1;
        stop_ = true;
        return false;
    }
    Held held{setup_.entries[head_], 0, chance(faults_.fail_percent)};
    head_ = (head_ + 1) % setup_.size;
    if (chance(faults_.delay_percent)) held.due_ns = Native::now_ns() + faults_.delay_ns;
    if (chance(faults_.lose_percent)) {
        held.due_ns = faults_.late_ns == 0 ? ~u64{0} : Native::now_ns() + faults_.late_ns;
        counts_.lost += 1;
    }
    counts_.commands += 1;
    held_.push_back(held);
    return true;
}

// `idle`: no new command arrived, so after some polls held commands end without waiting for more.
bool EmulatedQueue::end_one(bool idle) {
    if (held_.empty()) return false;
    if (held_.size() < faults_.hold_most && (!idle || random_() % 16 != 0)) return false;
    const std::size_t from = faults_.hold_most > 1 ? random_() % held_.size() : 0;
    for (std::size_t step = 0; step < held_.size(); ++step) {
        const std::size_t at = (from + step) % held_.size();
        const Held held = held_[at];
        if (held.due_ns != 0 && held.due_ns > Native::now_ns()) continue;
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
        counts_.reordered += at != 0 ? 1 : 0;
        counts_.failed += held.fail ? 1 : 0;
        const u32 status = held.fail ? faults_.fail_status : run(held.command);
        const u32 id = held.command.dword[0] >> 16;
        while (!stop_ && !setup_.completions->post(0, head_ | setup_.id << 16, id | status << 17)) Native::pause(0);
        return true;
    }
    return false;
}

// Returns the status, SCT << 8 | SC.
u32 EmulatedQueue::run(const NvmeCommand& command) {
    const u32* const dword = command.dword;
    const u32 opcode = dword[0] & 0xff;
    if (opcode > 2) return 0x001;
    if (dword[1] != 1) return 0x00b;
    if ((dword[0] >> 8 & 0xff) != 0) return 0x002;  // fused commands or scatter lists
    if (opcode == 0) return space_.blocks.flush() ? 0 : 0x006;
    const u64 first = u64{dword[11]} << 32 | dword[10];
    const u64 count = (dword[12] & 0xffff) + 1;
    const u64 blocks = space_.blocks.bytes() >> space_.block_shift;
    const u64 bytes = count << space_.block_shift;
    if (space_.most_bytes != 0 && bytes > space_.most_bytes) return 0x002;
    if (first > blocks || count > blocks - first) return 0x080;
    const PrpRequest request{u64{dword[7]} << 32 | dword[6], u64{dword[9]} << 32 | dword[8], bytes, space_.page_bytes};
    const std::vector<PrpSpan> spans = prp_spans(request, space_.translate);
    if (spans.empty()) return 0x013;
    u64 at = first << space_.block_shift;
    for (const PrpSpan& span : spans) {
        const bool moved = opcode == 2 ? space_.blocks.read(at, span.data, span.bytes)
                                       : space_.blocks.write(at, span.data, span.bytes);
        if (!moved) return opcode == 2 ? 0x281 : 0x280;
        at += span.bytes;
    }
    return 0;
}

}  // namespace penstock::ondevice
