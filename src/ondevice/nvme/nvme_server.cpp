// See nvme_server.hpp.
#include "ondevice/nvme/nvme_server.hpp"

#include <bit>

namespace penstock::ondevice {
namespace {

constexpr u16 kNoFile = 0xffff;
constexpr u32 kInvalidField = 0x002;

// The inverse of nvme_status: SCT << 8 | SC.
u32 status_field(Status status) {
    switch (status) {
        case Status::ok: return 0;
        case Status::invalid: return kInvalidField;
        case Status::cancelled: return 0x007;
        case Status::read_only: return 0x020;
        case Status::out_of_range: return 0x080;
        default: return 0x281;  // an unrecovered error of the medium
    }
}

u64 pair_of(const NvmeCommand& command, u32 low) { return u64{command.dword[low + 1]} << 32 | command.dword[low]; }

}  // namespace

NvmeServer::NvmeServer(std::span<const NvmeRingRef<Native>> rings)
    : depth_shift_(static_cast<u32>(std::countr_zero(rings.front().entries))),
      mask_(rings.front().entries - 1),
      slot_bytes_(rings.front().area.slot_bytes) {
    for (const NvmeRingRef<Native>& ring : rings) queues_.push_back({.ring = ring});
}

bool NvmeServer::next(u32& slot, Request& request) {
    const u32 count = static_cast<u32>(queues_.size());
    for (u32 looked = 0; looked < count;) {
        Queue& queue = queues_[cursor_];
        if (queue.head == queue.tail && !look(queue)) {
            cursor_ = cursor_ + 1 == count ? 0 : cursor_ + 1;
            ++looked;
            continue;
        }
        const NvmeCommand& command = queue.ring.submission[queue.head];
        const u32 id = command.dword[0] >> 16;
        slot = cursor_ << depth_shift_ | id;
        request = request_of(queue, command);
        queue.head = (queue.head + 1) & mask_;
        if (queue.head == queue.tail) cursor_ = cursor_ + 1 == count ? 0 : cursor_ + 1;
        if (id < mask_) return true;
        post(queue, id, kInvalidField);  // no slot has this id
    }
    return false;
}

// Looks at the queue's doorbell, and takes no notice of a value that cannot be.
bool NvmeServer::look(Queue& queue) const {
    const u32 tail = Native::load<Scope::system>(queue.ring.submission_doorbell);
    if (tail == queue.head || tail > mask_) return false;
    queue.tail = tail;
    return true;
}

Request NvmeServer::request_of(const Queue& queue, const NvmeCommand& command) const {
    const NvmeData& area = queue.ring.area;
    const u32 opcode = command.dword[0] & 0xff, id = command.dword[0] >> 16;
    const Request none{0, 0, 0, kNoFile, RequestOperation::read, 0};
    const bool fused = (command.dword[0] >> 8 & 0xff) != 0;  // or scatter lists
    if (fused || command.dword[1] != queue.ring.space.id) return none;
    if (opcode == static_cast<u32>(NvmeOpcode::flush)) return {0, 0, 0, 0, RequestOperation::flush, 0};
    if (opcode > static_cast<u32>(NvmeOpcode::read)) return none;
    const u32 shift = queue.ring.space.block_shift;
    const u64 block = pair_of(command, 10), bytes = u64{(command.dword[12] & 0xffff) + 1} << shift;
    if (bytes > slot_bytes_ || block > ~u64{0} >> shift) return none;
    const u64 first = pair_of(command, 6), second = pair_of(command, 8);
    if (first != area.data_io + u64{id} * slot_bytes_) return none;
    if (bytes > area.page_bytes) {
        const bool two = bytes <= 2 * u64{area.page_bytes};
        if (second != (two ? first + area.page_bytes : area.lists_io + u64{id} * area.list_stride)) return none;
    }
    const bool reads = opcode == static_cast<u32>(NvmeOpcode::read);
    const RequestOperation operation = reads ? RequestOperation::read : RequestOperation::write;
    return {block << shift, 0, static_cast<u32>(bytes), 0, operation, 0};
}

void NvmeServer::complete(u32 slot, Status status) {
    post(queues_[slot >> depth_shift_], slot & mask_, status_field(status));
}

void NvmeServer::post(Queue& queue, u32 id, u32 status) {
    NvmeCompletion& entry = queue.ring.completion[queue.completion_tail];
    entry.dword[0] = 0;
    entry.dword[1] = 0;
    entry.dword[2] = queue.head;
    Native::store<Scope::system>(&entry.dword[3], id | queue.phase << 16 | status << 17);
    queue.completion_tail = (queue.completion_tail + 1) & mask_;
    if (queue.completion_tail == 0) queue.phase ^= 1;
}

}  // namespace penstock::ondevice
