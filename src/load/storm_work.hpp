// What one warp (or thread of the emulated device) does in a storm of raw requests: it keeps some under way, copies
// each page that came into memory of its own, checks its stamps on the way, and asks for the next.
//
// A page comes through a mailbox, or straight out of memory that the device can address (`mapping`), which is the
// ceiling of the first: the same loop without a host.
#pragma once

#include "penstock/ondevice/frame.hpp"
#include "penstock/ondevice/lanes.hpp"
#include "penstock/ondevice/mailbox.hpp"
#include "penstock/stamp.hpp"

namespace penstock::load {

using ondevice::Lanes;
using ondevice::Status;
using ondevice::u32;
using ondevice::u64;
using ondevice::u8;

inline constexpr u32 kStormInFlight = 16;  // of one warp, at most

struct alignas(64) StormCounts {
    u64 requests;
    u64 bad_words;
    u64 failures;
    u64 busy;  // turns in which there was no slot
    u32 latency[ondevice::kWaitBuckets];  // cycles; see ondevice::wait_bucket
};

struct StormWork {
    ondevice::MailboxRef<ondevice::Native> mailbox;
    const u8* mapping;  // of the file; nullptr: through the mailbox
    u8* memory;         // request_bytes for each worker
    StormCounts* counts;
    u64* clocks;  // cycles and nanoseconds that the first worker took
    u32 stripes;
    u32 request_bytes;
    u64 file_bytes;
    u64 seed;  // of the file's stamps
    u64 turn;  // makes each storm ask for other pages
    u64 nanoseconds;
    u64 requests;  // of each worker, at most; 0: no limit but time
    u32 in_flight;
    u32 rings;  // how many places there are where warps begin to look for a free slot
    u32 writes;
    u32 sequential;
    u32 checked;  // stamps
};

struct StormWorker {
    using P = ondevice::Native;

    const StormWork& work;
    u64 worker;
    u64 workers;
    Lanes all;
    u64 issued = 0, done = 0, bad = 0, failures = 0, busy = 0;

    // The page that the n-th request of this worker asks for.
    PENSTOCK_ONDEVICE u64 page_of(u64 n) const {
        const u64 pages = work.file_bytes / work.request_bytes;
        const u64 at = n * workers + worker;
        return (work.sequential ? at : stamp_word(work.turn, at)) % pages;
    }

    PENSTOCK_ONDEVICE void take(const void* from, u64 offset) {
        u8* const to = work.memory + worker * work.request_bytes;
        if (work.checked) bad += copied_and_checked(to, from, offset);
        else ondevice::copy_together<P>(all, to, from, work.request_bytes);
    }

    PENSTOCK_ONDEVICE u64 copied_and_checked(void* to, const void* from, u64 offset) const {
        constexpr u32 at_once = 8;
        auto* const target = static_cast<ondevice::Quad*>(to);
        const auto* const source = static_cast<const ondevice::Quad*>(from);
        const u64 items = work.request_bytes / sizeof(ondevice::Quad), first = offset / 8;
        const u32 lanes = ondevice::count(all);
        u64 wrong = 0;
        for (u64 at = ondevice::rank<P>(all); at < items; at += at_once * lanes) {
            ondevice::Quad held[at_once];
            PENSTOCK_UNROLLED
            for (u32 i = 0; i < at_once; ++i)
                if (at + i * lanes < items) held[i] = source[at + i * lanes];
            PENSTOCK_UNROLLED
            for (u32 i = 0; i < at_once; ++i) {
                const u64 item = at + i * lanes;
                if (item >= items) break;
                target[item] = held[i];
                wrong += held[i].low != stamp_word(work.seed, first + 2 * item);
                wrong += held[i].high != stamp_word(work.seed, first + 2 * item + 1);
            }
        }
        return wrong;
    }

    PENSTOCK_ONDEVICE void stamp(void* to, u64 offset) const {
        auto* const words = static_cast<u64*>(to);
        for (u64 at = ondevice::rank<P>(all); at < work.request_bytes / 8; at += ondevice::count(all))
            words[at] = stamp_word(work.seed, offset / 8 + at);
    }

    // False: there is no slot now.
    PENSTOCK_ONDEVICE bool send(u64 offset, u32& ticket) const {
        const ondevice::Request request{
            offset, 0, work.request_bytes, 0, work.writes ? ondevice::Operation::write : ondevice::Operation::read, 0};
        const bool leader = P::lane() == ondevice::lowest(all);
        Status status = Status::ok;
        if (!work.writes) {
            if (leader) status = work.mailbox.submit(request, ticket);
            return P::ballot(all, status != Status::ok) == 0;
        }
        if (leader) status = work.mailbox.claim(ticket);
        if (P::ballot(all, status != Status::ok) != 0) return false;
        ticket = P::from(all, ticket, ondevice::lowest(all));
        stamp(work.mailbox.slot_data(ticket), offset);
        P::sync(all);
        if (leader) status = work.mailbox.publish(ticket, request);
        return P::ballot(all, status != Status::ok) == 0;
    }

    // Whether the request ended.
    PENSTOCK_ONDEVICE bool taken(u32 ticket, u64 offset) {
        const u32 leader = ondevice::lowest(all);
        Status status = Status::pending;
        if (P::lane() == leader) status = work.mailbox.test(ticket);
        status = static_cast<Status>(P::from(all, static_cast<int>(status), leader));
        if (status == Status::pending) return false;
        P::sync(all);  // what the leader may see, all may
        if (status != Status::ok) ++failures;
        else if (!work.writes) take(work.mailbox.slot_data(ticket), offset);
        P::sync(all);
        if (P::lane() == leader) work.mailbox.release(ticket);
        return true;
    }

    PENSTOCK_ONDEVICE bool more(u64 end) const {
        if (work.requests != 0 && issued >= work.requests) return false;
        return P::from(all, P::now_ns() < end ? 1u : 0u, ondevice::lowest(all)) != 0;
    }

    PENSTOCK_ONDEVICE void note(u64 began) const {
        if (P::lane() != ondevice::lowest(all)) return;
        StormCounts& counts = work.counts[P::processor() % work.stripes];
        P::tick(&counts.latency[ondevice::wait_bucket(P::cycles() - began)], 1u);
    }

    PENSTOCK_ONDEVICE void through_mapping() {
        const u64 end = P::now_ns() + work.nanoseconds;
        for (; more(end); ++issued, ++done) {
            const u64 offset = page_of(issued) * work.request_bytes;
            take(work.mapping + offset, offset);
        }
    }

    PENSTOCK_ONDEVICE void through_mailbox() {
        u32 tickets[kStormInFlight];
        u64 places[kStormInFlight], began[kStormInFlight];
        u32 under_way = 0;  // a bit for each
        const u64 end = P::now_ns() + work.nanoseconds;
        u64 last = P::now_ns();
        for (bool going = true; going || under_way != 0;) {
            going = going && more(end);
            bool moved = false;
            for (u32 i = 0; i < work.in_flight; ++i) {
                if (under_way >> i & 1) {
                    if (!taken(tickets[i], places[i])) continue;
                    note(began[i]);
                    under_way &= ~(1u << i);
                    ++done;
                    moved = true;
                }
                if (!going || (work.requests != 0 && issued >= work.requests)) continue;
                places[i] = page_of(issued) * work.request_bytes;
                began[i] = P::cycles();
                if (!send(places[i], tickets[i])) {
                    ++busy;
                    continue;
                }
                ++issued;
                under_way |= 1u << i;
            }
            if (moved) last = P::now_ns();
            else if (lost(last)) return;
            else P::pause(32);
        }
    }

    // Nothing came for seconds: what is under way counts as failed.
    PENSTOCK_ONDEVICE bool lost(u64 last) {
        const bool lost = P::from(all, P::now_ns() - last > 5'000'000'000u ? 1u : 0u, ondevice::lowest(all)) != 0;
        if (lost) failures += issued - done;
        return lost;
    }

    PENSTOCK_ONDEVICE void run() {
        const u64 cycles = P::cycles(), began = P::now_ns();
        if (work.mapping != nullptr) through_mapping();
        else through_mailbox();
        if (worker == 0 && P::lane() == 0) {
            work.clocks[0] = P::cycles() - cycles;
            work.clocks[1] = P::now_ns() - began;
        }
        StormCounts& counts = work.counts[P::processor() % work.stripes];
        if (bad != 0) P::tick(&counts.bad_words, bad);
        if (P::lane() != ondevice::lowest(all)) return;
        P::tick(&counts.requests, done);
        if (failures != 0) P::tick(&counts.failures, failures);
        if (busy != 0) P::tick(&counts.busy, busy);
    }
};

PENSTOCK_ONDEVICE void storm_share(StormWork work, u64 worker, u64 workers) {
    work.mailbox.hint = static_cast<u32>(worker % work.rings);
    StormWorker{work, worker, workers, ondevice::Native::active()}.run();
}

}  // namespace penstock::load
