// What one warp (or thread of the emulated device) does in a storm through any channel. It has one request in flight:
// it claims a slot, posts the request, waits and releases the slot, through the interface that all channels share
// (request.hpp). It checks the page as every storm does (storm_work.hpp).
//
// The mailbox and the NVMe queues run this same source, so that their storms differ only in the channel. Every wait
// ends: a warp whose request meets its limit counts a failure and makes no more requests.
#pragma once

#include "load/storm/storm_work.hpp"
#include "penstock/ondevice/nvme.hpp"

namespace penstock::load {

template <class Channel>
struct ChannelWork {
    using Kind = Channel;
    StormWork storm;          // its mailbox and mapping are not used
    const Channel* channels;  // in device memory; worker i uses channel i % count
    u32 count;
    u64 limit_ns;  // of one request
};

inline constexpr u32 kChannelThreads = 256;  // of a block, at most: a channel's description is in registers

template <class Channel>
struct ChannelWorker {
    using P = ondevice::Native;

    Channel channel;  // a copy, with this worker's hint
    u64 limit_ns;
    StormWorker storm;

    struct PostedRequest {
        Status status = Status::busy;
        u32 ticket = 0;
        u64 began = 0;      // in cycles, before the slot was claimed
        bool held = false;  // the ticket must be released
    };

    // Only the leader calls this.
    PENSTOCK_ONDEVICE PostedRequest ask(u64 offset) {
        const u64 deadline = P::now_ns() + limit_ns;
        PostedRequest asked;
        do {
            asked.began = P::cycles();
            asked.status = channel.submit(storm.request(offset), asked.ticket);
            if (asked.status != Status::busy) break;
            ++storm.busy;
            P::pause(64);
        } while (P::now_ns() < deadline);
        if (asked.status != Status::ok) return asked;
        asked.status = channel.wait(asked.ticket, deadline);
        asked.held = asked.status != Status::timed_out;
        return asked;
    }

    // Returns false if there was no answer.
    PENSTOCK_ONDEVICE bool one(u64 offset) {
        const Lanes all = storm.all;
        const u32 leader = ondevice::lowest(all);
        PostedRequest asked;
        if (P::lane() == leader) asked = ask(offset);
        P::sync(all);  // all lanes may now see what the leader may see
        const auto status = static_cast<Status>(P::from(all, static_cast<int>(asked.status), leader));
        const u32 ticket = P::from(all, asked.ticket, leader);
        ++storm.issued;
        if (status == Status::ok) storm.take(channel.slot_data(ticket), offset);
        else ++storm.failures;
        P::sync(all);
        ++storm.done;
        if (P::lane() == leader) {
            storm.note(asked.began);
            if (asked.held) channel.release(ticket);
        }
        return status != Status::timed_out && status != Status::busy;
    }

    PENSTOCK_ONDEVICE void run() {
        storm.measured([this] {
            const u64 end = P::now_ns() + storm.work.nanoseconds;
            while (storm.more(end) && one(storm.page_of(storm.issued) * storm.work.request_bytes)) {}
        });
    }
};

// `all`: the worker's lanes, which stay together.
template <class Channel>
PENSTOCK_ONDEVICE void channel_share(const ChannelWork<Channel>& work, u64 worker, u64 workers, Lanes all) {
    Channel channel = work.channels[worker % work.count];
    channel.hint = static_cast<u32>(worker / work.count);
    ChannelWorker<Channel>{channel, work.limit_ns, StormWorker{work.storm, worker, workers, all}}.run();
}

using MailboxWork = ChannelWork<ondevice::MailboxRef<ondevice::Native>>;
using NvmeWork = ChannelWork<ondevice::NvmeRingRef<ondevice::Native>>;

}  // namespace penstock::load
