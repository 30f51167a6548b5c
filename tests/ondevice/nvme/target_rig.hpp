// The least of an NVMe controller, for tests of the ring alone. It has one pair of queues, takes entries as they come,
// and posts completions for any command id that the test says. It is a template over a platform, so that it also runs
// step by step.
#pragma once

#include <cstring>

#include "penstock/ondevice/nvme_entry.hpp"

namespace penstock::ondevice {

template <class P>
struct NvmeTarget {
    NvmeCommand* submission;
    NvmeCompletion* completion;
    const u32* submission_doorbell;
    const u32* completion_doorbell;
    u32 entries;
    u32 head = 0;  // the submission queue's
    u32 tail = 0;  // the completion queue's
    u32 phase = 1;

    bool take(NvmeCommand& command) {
        if (P::template load<Scope::system>(submission_doorbell) == head) return false;
        Watch<P>::reads(submission + head, sizeof(NvmeCommand));
        command = submission[head];
        head = (head + 1) % entries;
        return true;
    }

    // Posts a completion; false: the queue is full. `status` is SCT << 8 | SC.
    bool complete(u32 id, u32 status) {
        if ((tail + 1) % entries == P::template load<Scope::system>(completion_doorbell)) return false;
        NvmeCompletion* entry = completion + tail;
        Watch<P>::writes(entry, 12);
        entry->dword[0] = 0;
        entry->dword[1] = 0;
        entry->dword[2] = head;
        P::template store<Scope::system>(&entry->dword[3], id | phase << 16 | status << 17);
        tail = (tail + 1) % entries;
        if (tail == 0) phase ^= 1;
        return true;
    }
};

inline Request request_of(const NvmeCommand& command, u32 block_bytes) {
    Request request{};
    const u32 opcode = command.dword[0] & 0xff;
    using enum RequestOperation;
    request.operation = opcode == 0 ? flush : opcode == 1 ? write : read;
    if (opcode == 0) return request;
    request.offset_bytes = (u64{command.dword[11]} << 32 | command.dword[10]) * block_bytes;
    request.bytes = ((command.dword[12] & 0xffff) + 1) * block_bytes;
    return request;
}

}  // namespace penstock::ondevice
