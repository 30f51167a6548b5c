// Device code that uses NVMe rings as an application does, for tests. Each client writes a cell of its own, reads it
// back and compares. Threads of the host and warps of a GPU run the same source, one client each.
//
// If a client could not write its cell, because the command failed or its completion came late, it does not compare.
#pragma once

#include "penstock/ondevice/nvme.hpp"

namespace penstock::ondevice {

struct RingTally {
    u32 ok;
    u32 errors;
    u32 timeouts;
    u32 refused;     // requests that got no slot up to the deadline
    u32 mismatches;  // bytes read that are not those written
};

struct RingPlan {
    const NvmeRingRef<Native>* rings;  // client i uses ring i % ring_count
    u32 ring_count;
    u32 clients;
    u32 rounds;
    u32 bytes;  // a cell's: whole blocks
    u64 wait_ns;
    RingTally* tally;  // for all clients, in memory of the device
};

class RingClient {
  public:
    PENSTOCK_ONDEVICE RingClient(const RingPlan& plan, u32 client)
        : plan_(plan), ring_(plan.rings[client % plan.ring_count]), client_(client) {
        ring_.hint = client;
    }

    PENSTOCK_ONDEVICE void run() {
        for (u32 round = 0; round < plan_.rounds; ++round) {
            const Status written = exchange(RequestOperation::write, round);
            if (written == Status::ok) round_ = round;
            if (written == Status::timed_out) doubtful_ = true;  // the controller may write it later
            exchange(RequestOperation::read, round_);
        }
    }

  private:
    PENSTOCK_ONDEVICE u8 byte_of(u32 round, u32 at) const {
        return static_cast<u8>(client_ * 31 + round * 7 + at * 13 + (at >> 8));
    }
    PENSTOCK_ONDEVICE static void count(u32* counter) { Native::template add<Scope::device>(counter, 1u); }

    PENSTOCK_ONDEVICE Status exchange(RequestOperation operation, u32 round) {
        const u64 deadline = Native::now_ns() + plan_.wait_ns;
        u32 ticket = 0;
        Status status = Status::busy;
        while ((status = ring_.claim(ticket)) == Status::busy) {
            if (Native::now_ns() >= deadline) return counted(Status::busy);
            Native::pause(64);
        }
        auto* const data = static_cast<u8*>(ring_.slot_data(ticket));
        for (u32 at = 0; operation == RequestOperation::write && at < plan_.bytes; ++at) data[at] = byte_of(round, at);
        const Request request{u64{client_} * plan_.bytes, 0, plan_.bytes, 0, operation, 0};
        while ((status = ring_.publish(ticket, request)) == Status::busy && Native::now_ns() < deadline) {
            Native::pause(64);
        }
        if (status == Status::ok) status = ring_.wait(ticket, deadline);
        if (status == Status::ok && operation == RequestOperation::read) compare(data, round);
        if (status != Status::timed_out) ring_.release(ticket);
        return counted(status);
    }

    PENSTOCK_ONDEVICE void compare(const u8* data, u32 round) const {
        if (round == kNone || doubtful_) return;
        u32 wrong = 0;
        for (u32 at = 0; at < plan_.bytes; ++at) wrong += data[at] != byte_of(round, at);
        if (wrong != 0) Native::template add<Scope::device>(&plan_.tally->mismatches, wrong);
    }

    PENSTOCK_ONDEVICE Status counted(Status status) const {
        RingTally& tally = *plan_.tally;
        count(status == Status::ok          ? &tally.ok
              : status == Status::timed_out ? &tally.timeouts
              : status == Status::busy      ? &tally.refused
                                            : &tally.errors);
        return status;
    }

    static constexpr u32 kNone = ~0u;
    const RingPlan& plan_;
    NvmeRingRef<Native> ring_;
    u32 client_;
    u32 round_ = kNone;  // the round whose bytes the cell holds
    bool doubtful_ = false;
};

}  // namespace penstock::ondevice
