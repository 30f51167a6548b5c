// See nvme_ring.hpp.
#include "ondevice/nvme/nvme_ring.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "ondevice/nvme/prp.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kMostEntries = 1024;

bool power_of_two(u64 value) { return value != 0 && (value & (value - 1)) == 0; }

[[noreturn]] void refuse(const std::string& cause) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = "make NVMe queues";
    info.cause = cause;
    throw Error(info);
}

void check(const NvmeRingSizes& sizes) {
    if (!power_of_two(sizes.depth) || sizes.depth < 2 || sizes.depth > kMostEntries) {
        refuse("depth " + std::to_string(sizes.depth) + " is not a power of two from 2 to 1024");
    }
    if (!power_of_two(sizes.page_bytes) || sizes.page_bytes < 4096) {
        refuse("pages of " + std::to_string(sizes.page_bytes) + " bytes: a power of two from 4096 is needed");
    }
    if (sizes.slot_bytes == 0 || sizes.slot_bytes % sizes.page_bytes != 0) {
        refuse("slots of " + std::to_string(sizes.slot_bytes) + " bytes are not whole pages");
    }
    if (prp_list_bytes(sizes.slot_bytes / sizes.page_bytes - 1, sizes.page_bytes) == 0) {
        refuse("slots of " + std::to_string(sizes.slot_bytes) + " bytes need a PRP list of more than one page");
    }
}

}  // namespace

NvmeRing::NvmeRing(DmaMemory& shared, DmaMemory& own, const NvmeRingSizes& sizes) : own_(own), sizes_(sizes) {
    check(sizes);
    const u32 slots = sizes.depth - 1;
    list_stride_ = static_cast<u32>(prp_list_bytes(sizes.slot_bytes / sizes.page_bytes - 1, sizes.page_bytes));
    submission_ = shared.allocate(u64{sizes.depth} * sizeof(NvmeCommand));
    completion_ = shared.allocate(u64{sizes.depth} * sizeof(NvmeCompletion));
    data_ = shared.allocate(u64{slots} * sizes.slot_bytes);
    lists_ = shared.allocate(u64{slots} * list_stride_);
    write_lists();

    const u32 groups = (slots + 31) / 32;
    // In this order: the state; the slots' commands; bits of free slots; words and marks of slots; how many slots are
    // abandoned; bits of unsent commands.
    static_assert(sizeof(NvmeRingState) % alignof(NvmeCommand) == 0, "the commands come behind it");
    const u64 commands = sizeof(NvmeRingState), words = commands + u64{slots} * sizeof(NvmeCommand);
    std::vector<u32> start(words / sizeof(u32) + 2 * groups + 2 * slots + 1);
    NvmeRingState state{};
    state.phase = 1;
    std::memcpy(start.data(), &state, sizeof state);
    u32* const first = start.data() + words / sizeof(u32);
    Slots<Native>{first, first + groups, slots}.reset();
    state_ = own.allocate(start.size() * sizeof(u32));
    own.write(state_, start.data(), start.size() * sizeof(u32));
    ref_.state = reinterpret_cast<NvmeRingState*>(state_.data);
    ref_.commands = reinterpret_cast<NvmeCommand*>(state_.data + commands);
    auto* const free_bits = reinterpret_cast<u32*>(state_.data + words);
    ref_.slots = {free_bits, free_bits + groups, slots};
    ref_.marks = free_bits + groups + slots;
    ref_.abandoned = ref_.marks + slots;
    ref_.unsent = ref_.abandoned + 1;
    ref_.submission = reinterpret_cast<NvmeCommand*>(submission_.data);
    ref_.completion = reinterpret_cast<NvmeCompletion*>(completion_.data);
    const u32 most = sizes.most_bytes == 0 || sizes.most_bytes > sizes.slot_bytes ? sizes.slot_bytes : sizes.most_bytes;
    ref_.area = {data_.data, data_.io, lists_.io, list_stride_, sizes.slot_bytes, sizes.page_bytes, most};
    ref_.entries = sizes.depth;
}

void NvmeRing::write_lists() {
    const u64 pages = sizes_.slot_bytes / sizes_.page_bytes;
    for (u64 slot = 0; slot + 1 < sizes_.depth; ++slot) {
        auto* const list = reinterpret_cast<u64*>(lists_.data + slot * list_stride_);
        const u64 first = data_.io + slot * sizes_.slot_bytes;
        for (u64 page = 1; page < pages; ++page) list[page - 1] = first + page * sizes_.page_bytes;
    }
}

void NvmeRing::attach(u32* submission_doorbell, u32* completion_doorbell, const NvmeNamespace& space) {
    ref_.submission_doorbell = submission_doorbell;
    ref_.completion_doorbell = completion_doorbell;
    ref_.space = space;
}

NvmeRingState NvmeRing::state() const {
    NvmeRingState state{};
    own_.read(state_, &state, sizeof state);
    return state;
}

NvmeRingRef<Native> NvmeRing::ref(u32 hint, bool shared) const {
    NvmeRingRef<Native> ref = ref_;
    ref.hint = hint;
    ref.shared = shared ? 1 : 0;
    return ref;
}

}  // namespace penstock::ondevice
