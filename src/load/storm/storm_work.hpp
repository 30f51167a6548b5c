// What one warp (or thread of the emulated device) does in a storm of raw requests. It keeps some requests in flight,
// copies each page that arrives into its own memory, checks the stamps meanwhile, and makes the next request.
//
// A page comes through a mailbox, or from memory that the device can address (`mapping`). The second is the ceiling of
// the first: the same loop without a host. channel_work.hpp uses any channel, with one request at a time.
#pragma once

#include "load/storm/cycle_histogram.hpp"
#include "penstock/ondevice/lanes.hpp"
#include "penstock/ondevice/mailbox.hpp"
#include "penstock/stamp.hpp"

namespace penstock::load {

using ondevice::Lanes;
using ondevice::Status;
using ondevice::u32;
using ondevice::u64;
using ondevice::u8;

inline constexpr u32 kStormWarp = 32;  // lanes of a warp on a GPU

// The size of a kernel. On the emulated device a warp is a thread, and there are no more of them than cores.
struct Grid {
    u32 blocks = 0;
    u32 threads = 0;  // of a block
};

// Each warp has its own memory.
PENSTOCK_ONDEVICE u64 warps_of(const Grid& grid) {
    return u64{grid.blocks} * ((grid.threads + kStormWarp - 1) / kStormWarp);
}

inline constexpr u32 kStormInFlight = 16;  // of one warp, at most
inline constexpr u64 kLostCycles = 10'000'000'000;  // a storm gives up after some seconds without an answer

struct alignas(64) StormCounts {
    u64 requests;
    u64 bad_words;
    u64 failures;
    u64 busy;    // turns in which no slot was free
    u64 cycles;  // of all requests through the mailbox, from the post until the page was taken
    u32 latency[kCycleBuckets];
};

struct StormWork {
    ondevice::MailboxRef<ondevice::Native> mailbox;
    const u8* mapping;  // of the file; nullptr: use the mailbox
    u8* memory;         // request_bytes for each worker
    StormCounts* counts;
    u64* clocks;  // cycles and nanoseconds that the first worker took
    u32 stripes;
    u32 request_bytes;
    u64 file_bytes;
    u64 seed;  // of the file's stamps
    u64 turn;  // storms with the same turn and number of workers ask for the same pages
    u64 nanoseconds;
    u64 requests;  // of each worker, at most; 0: only the time ends it
    u32 in_flight;
    u32 rings;  // number of places where warps begin to look for a free slot
    u32 writes;
    u32 sequential;
    u32 checked;  // check the stamps
};

struct StormWorker {
    using P = ondevice::Native;

    const StormWork& work;
    u64 worker;
    u64 workers;
    Lanes all;
    u64 issued = 0, done = 0, bad = 0, failures = 0, busy = 0, lost = 0;

    // Returns the page of this worker's request number `n`.
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

    PENSTOCK_ONDEVICE ondevice::Request request(u64 offset) const {
        const auto operation = work.writes ? ondevice::RequestOperation::write : ondevice::RequestOperation::read;
        return {offset, 0, work.request_bytes, 0, operation, 0};
    }

    PENSTOCK_ONDEVICE bool more(u64 end) const {
        if (work.requests != 0 && issued >= work.requests) return false;
        return P::from(all, P::now_ns() < end ? 1u : 0u, ondevice::lowest(all)) != 0;
    }

    PENSTOCK_ONDEVICE void note(u64 began) const {
        StormCounts& counts = work.counts[P::processor() % work.stripes];
        const u64 cycles = P::cycles() - began;
        P::tick(&counts.latency[cycle_bucket(cycles)], 1u);
        P::tick(&counts.cycles, cycles);
    }

    PENSTOCK_ONDEVICE void through_mapping() {
        const u64 end = P::now_ns() + work.nanoseconds;
        for (; more(end); ++issued, ++done) {
            const u64 offset = page_of(issued) * work.request_bytes;
            take(work.mapping + offset, offset);
        }
    }

    // A request of a lane.
    struct Flight {
        u32 ticket = 0;
        bool held = false, sent = false;  // it holds a slot; the slot has a request
        u64 place = 0, began = 0;
    };

    // Each lane polls its own request, all in one access. Then all lanes copy each page that arrived.
    PENSTOCK_ONDEVICE bool land(Flight& flight) {
        const Status status = flight.sent ? work.mailbox.test(flight.ticket) : Status::pending;
        const Lanes ended = P::ballot(all, status != Status::pending);
        if (ended == 0) return false;
        P::sync(all);  // all lanes may now see what one lane may see
        for (Lanes left = ended; left != 0; left &= left - 1) {
            const u32 turn = ondevice::lowest(left);
            const auto found = static_cast<Status>(P::from(all, static_cast<int>(status), turn));
            const u32 ticket = P::from(all, flight.ticket, turn);
            const u64 place = P::from(all, flight.place, turn);
            if (found != Status::ok) ++failures;
            else if (!work.writes) take(work.mailbox.slot_data(ticket), place);
        }
        P::sync(all);
        done += ondevice::count(ended);
        if (status == Status::pending) return true;
        note(flight.began);
        flight.sent = false;
        return true;
    }

    // Posts the next requests of lanes that keep their slot.
    PENSTOCK_ONDEVICE void launch(Flight& flight, bool wanted) {
        const bool again = wanted && flight.held && !flight.sent;
        const Lanes asking = P::ballot(all, again);
        const u64 allowed = work.requests == 0 ? 32 : work.requests - issued;
        const u64 place = ondevice::count(asking & ((Lanes{1} << P::lane()) - 1));
        const bool sends = again && place < allowed;
        const Lanes sending = P::ballot(all, sends);
        if (sending != 0) {
            if (sends) {
                flight.ticket = work.mailbox.renew(flight.ticket);
                flight.place = page_of(issued + place) * work.request_bytes;
            }
            issued += ondevice::count(sending);
            send(flight, sending);
        }
        if (P::ballot(all, wanted && !flight.held) != 0) launch_first(flight, wanted);
    }

    PENSTOCK_ONDEVICE void send(Flight& flight, Lanes sending) {
        if (work.writes) stamp_slots(flight, sending);
        if ((sending >> P::lane() & 1) == 0) return;
        flight.sent = true;
        flight.began = P::cycles();
        work.mailbox.post(flight.ticket, request(flight.place));
    }

    // Posts the first requests of lanes without a slot, with one claim for all of them.
    PENSTOCK_ONDEVICE void launch_first(Flight& flight, bool wanted) {
        const Lanes asking = P::ballot(all, wanted && !flight.held);
        const u64 allowed = work.requests == 0 ? 32 : work.requests - issued;
        const u32 most = ondevice::count(asking) < allowed ? ondevice::count(asking) : static_cast<u32>(allowed);
        if (most == 0) return;
        ondevice::ClaimedSlots claim{0, 0};
        const u32 leader = ondevice::lowest(all);
        if (P::lane() == leader) claim = work.mailbox.claim_many(most);
        claim = {P::from(all, claim.first, leader), P::from(all, claim.bits, leader)};
        Lanes left = asking;
        u64 number = issued;
        for (u32 bits = claim.bits; bits != 0 && left != 0; bits &= bits - 1, left &= left - 1, ++number) {
            if (P::lane() != ondevice::lowest(left)) continue;
            flight.ticket = work.mailbox.open(claim.first + ondevice::lowest(bits));
            flight.place = page_of(number) * work.request_bytes;
            flight.held = true;
        }
        busy += most - (number - issued);
        issued = number;
        send(flight, asking & ~left);
    }

    PENSTOCK_ONDEVICE void stamp_slots(const Flight& flight, Lanes sending) const {
        for (Lanes left = sending; left != 0; left &= left - 1) {
            const u32 turn = ondevice::lowest(left);
            stamp(work.mailbox.slot_data(P::from(all, flight.ticket, turn)), P::from(all, flight.place, turn));
        }
        P::sync(all);
    }

    PENSTOCK_ONDEVICE void through_mailbox() {
        const u32 lanes = ondevice::count(all), place = ondevice::rank<P>(all);
        // requests of a lane: more than one if there are few lanes
        const u32 turns = (work.in_flight + lanes - 1) / lanes;
        Flight flights[kStormInFlight];
        const u64 end = P::now_ns() + work.nanoseconds;
        u64 last = P::cycles(), turn = 0;
        for (bool going = true; going || done + lost != issued;) {
            going = going && (turn++ % 16 != 0 || more(end));
            bool moved = false;
            for (u32 i = 0; i < turns; ++i) {
                moved = land(flights[i]) || moved;
                launch(flights[i], going && i * lanes + place < work.in_flight);
            }
            const u64 now = P::from(all, P::cycles(), ondevice::lowest(all));
            if (moved) last = now;
            else if (now - last > kLostCycles) lost = issued - done;  // no answer for a long time
            else P::pause(ondevice::between_polls((now - last) / 2));
        }
        failures += lost;
        if (lost != 0) return;  // late answers may still arrive in these slots
        for (u32 i = 0; i < turns; ++i)
            if (flights[i].held) work.mailbox.release(flights[i].ticket);
    }

    PENSTOCK_ONDEVICE void run() {
        measured([this] {
            if (work.mapping != nullptr) through_mapping();
            else through_mailbox();
        });
    }

    // Runs `body`, measures its time, and adds its counts to the common counts.
    template <class Body>
    PENSTOCK_ONDEVICE void measured(const Body& body) {
        const u64 cycles = P::cycles(), began = P::now_ns();
        body();
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

// `all`: the worker's lanes, which stay together.
PENSTOCK_ONDEVICE void storm_share(StormWork work, u64 worker, u64 workers, ondevice::Lanes all) {
    work.mailbox.hint = static_cast<u32>(worker % work.rings);
    StormWorker{work, worker, workers, all}.run();
}

}  // namespace penstock::load
