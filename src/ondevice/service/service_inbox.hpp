// Where a service thread finds requests and leaves answers: a range of a mailbox's slots, or some NVMe queues.
//
// The rest of the service does not know which, so that a thread serves both alike. An inbox numbers its slots from
// first() on; it has slots() of them.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "ondevice/mailbox_memory.hpp"
#include "ondevice/nvme/nvme_server.hpp"

namespace penstock::ondevice {

class ServiceInbox {
  public:
    ServiceInbox(Mailbox& mailbox, u32 first, u32 last)
        : server_(mailbox.server(first, last)), data_(mailbox.slot_data(0)), slot_bytes_(mailbox.ref().slot_bytes) {}
    explicit ServiceInbox(NvmeServer queues) : slot_bytes_(queues.slot_bytes()), queues_(std::move(queues)) {}

    // Takes a new request, if there is any. Requires: the thread completes each exactly once, after its data are in
    // place.
    bool next(u32& slot, Request& request) {
        return queues_ ? queues_->next(slot, request) : server_.next(slot, request);
    }
    void complete(u32 slot, Status status) {
        if (queues_) return queues_->complete(slot, status);
        server_.complete(slot, status);
    }

    u32 first() const { return server_.first; }
    u32 slots() const { return queues_ ? queues_->slots() : server_.last - server_.first; }
    u32 slot_bytes() const { return slot_bytes_; }
    u8* slot_data(u32 slot) const {
        return queues_ ? queues_->slot_data(slot) : data_ + u64{slot} * slot_bytes_;
    }
    // The data areas, if they are one piece of memory.
    std::span<std::byte> arena() const {
        if (queues_) return {};
        return {reinterpret_cast<std::byte*>(slot_data(first())), std::size_t{slots()} * slot_bytes_};
    }

  private:
    MailboxServer<Native> server_{};
    u8* data_ = nullptr;
    u32 slot_bytes_ = 0;
    std::optional<NvmeServer> queues_;
};

}  // namespace penstock::ondevice
