// The owner of one mailbox: its slots, descriptors, completion words and data areas, in memory that host and GPU reach,
// and the host's record of the requests it has taken.
#pragma once

#include <vector>

#include "ondevice/dma_memory.hpp"
#include "penstock/ondevice/mailbox.hpp"

namespace penstock::ondevice {

struct MailboxSizes {
    u32 slots = 64;          // 1 to 16384
    u32 slot_bytes = 4096;   // up to 16 MiB - 1
    bool answers = false;    // completions carry answers
};

// Returns the sizes, or throws Error (invalid_argument) if they cannot be. For owners that take other memory before a
// mailbox's.
const MailboxSizes& checked(const MailboxSizes& sizes);

class Mailbox {
  public:
    // `shared` is memory that host and GPU reach; `own` is memory of the GPU alone (on the host both are one). Throws
    // Error (invalid_argument) for sizes that cannot be, before it takes memory.
    Mailbox(DmaMemory& shared, DmaMemory& own, const MailboxSizes& sizes);

    MailboxRef<Native> ref(u32 hint = 0) const;
    // The host's end for slots [first, last). Requires: one thread at a time uses it, and no slot has two servers.
    MailboxServer<Native> server(u32 first, u32 last);
    // The ends of a mailbox whose completions carry answers. Requires: it was made with `answers`.
    MailboxRef<Native, true> answering_ref() const;
    MailboxServer<Native, true> answering_server();  // for all slots
    u8* slot_data(u32 slot) const { return ref_.data + u64{slot} * ref_.slot_bytes; }

  private:
    void need_answers(bool wanted) const;

    const bool answers_;
    DmaBlock descriptors_, completions_, data_, words_;
    std::vector<u32> seen_laps_;
    MailboxRef<Native> ref_{};
};

}  // namespace penstock::ondevice
