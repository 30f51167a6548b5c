// A channel from device code to a service on the host: requests are posted into a mailbox that host threads read.
//
// Any number of warps post without a lock. A slot has a 16-byte descriptor (GPU to host), a completion word (host to
// GPU) and a data area. The memory of a request is always its slot's, so descriptors carry no address. The warp stores
// the descriptor's second word last, or both words in one piece; the second word carries the slot's lap. The host knows
// a new descriptor by a lap that it has not seen, so descriptors are never cleared. The completion word carries the lap
// back, so the warp does not take an old completion for a new one. `MailboxServer` is the host's end for a range of
// slots. Requires: one thread at a time uses each server.
//
// A mailbox `with_answers` has completions of 16 bytes: beside the word, a value and a number of bytes, which the
// waiting caller loads with the word. A load from the host's memory takes the GPU more than a microsecond.
#pragma once

#include "penstock/ondevice/slots.hpp"

namespace penstock::ondevice {

struct alignas(16) MailboxDescriptor {
    u64 offset_bytes;
    u64 rest;  // lap 63:42, operation 41:40, file 39:24, bytes 23:0
};
static_assert(sizeof(MailboxDescriptor) == 16, "crosses between host and GPU");

constexpr u32 mailbox_most_bytes = (1u << 24) - 1;
constexpr u32 mailbox_large_bytes = 32 * 1024;  // a slot of so many bytes is large: the order on the disk counts

PENSTOCK_ONDEVICE u64 mailbox_rest(const Request& request, u32 lap) {
    return static_cast<u64>(lap) << 42 | static_cast<u64>(request.operation) << 40 |
           static_cast<u64>(request.file) << 24 | request.bytes;
}
PENSTOCK_ONDEVICE u32 mailbox_lap(u64 rest) { return static_cast<u32>(rest >> 42); }

// The completion of a mailbox with answers. rest: bytes 63:32, the slot's word 31:0.
struct alignas(16) MailboxAnswer {
    u64 value;
    u64 rest;
    PENSTOCK_ONDEVICE u32 bytes() const { return static_cast<u32>(rest >> 32); }
};
static_assert(sizeof(MailboxAnswer) == 16, "crosses between host and GPU");

template <bool with_answers>
struct MailboxCompletion {
    using Type = u32;
};
template <>
struct MailboxCompletion<true> {
    using Type = MailboxAnswer;
};

template <class P, bool with_answers = false>
struct MailboxRef {
    Slots<P> slots;
    MailboxDescriptor* descriptors;
    typename MailboxCompletion<with_answers>::Type* completions;  // slot words (slots.hpp) of state done
    u8* data;        // slot_bytes for each slot
    u32 slot_bytes;
    u32 hint;        // where this warp looks for a free slot first
    u32* abandoned;  // how many slots wait for a late completion
    u32* marks;      // one for each slot: its owner's word for what the slot is used for; see late()

    PENSTOCK_ONDEVICE u32 depth() const { return slots.slots; }
    PENSTOCK_ONDEVICE void* slot_data(u32 ticket) const {
        return data + static_cast<u64>(slot_of(ticket)) * slot_bytes;
    }

    PENSTOCK_ONDEVICE Status claim(u32& ticket) const { return claim(ticket, hint); }
    PENSTOCK_ONDEVICE Status claim(u32& ticket, u32 from) const {
        const u32 place = beside_neighbours(from);
        Status status = slots.claim_one(place, ticket);
        if (status == Status::busy && reclaim() != 0) status = slots.claim_one(place, ticket);
        return status;
    }

    // The slot at which caller `from` looks first. Callers of neighbouring numbers mostly ask for neighbouring places
    // in the file. If slots are large, 32 such callers look in one bitmap word, whose slots have one server, and that
    // server asks the storage for what lies together in one go. The next 32 look far away, at another server's slots.
    PENSTOCK_ONDEVICE u32 beside_neighbours(u32 from) const {
        if (slot_bytes < mailbox_large_bytes) return from;
        const u32 words = (slots.slots + 31) / 32;
        const u32 apart = words * 5 / 8 | 1;
        return from / 32 * apart % words + words * (from % 32);
    }

    // Claims slots for the lanes of a warp: the leader claims for all, and each lane then opens one of the slots.
    PENSTOCK_ONDEVICE ClaimedSlots claim_many(u32 wanted) const { return slots.claim(wanted, beside_neighbours(hint)); }
    PENSTOCK_ONDEVICE u32 open(u32 slot) const { return slots.open(slot); }
    // The slot's next ticket, in place of release and claim. Requires: the owner has used the data.
    PENSTOCK_ONDEVICE u32 renew(u32 ticket) const { return slots.renew(ticket); }

    PENSTOCK_ONDEVICE Status publish(u32 ticket, const Request& request) const {
        return slots.is(ticket, SlotState::held) ? post(ticket, request) : Status::invalid;
    }

    // publish without a check. Requires: the caller holds the ticket.
    PENSTOCK_ONDEVICE Status post(u32 ticket, const Request& request) const {
        if (request.memory != 0 || request.bytes > slot_bytes || request.bytes > mailbox_most_bytes) {
            return Status::invalid;
        }
        if (static_cast<u8>(request.operation) > static_cast<u8>(RequestOperation::flush)) return Status::invalid;
        slots.template mark<Order::relaxed>(ticket, SlotState::sent);
        u64* const pair = &descriptors[slot_of(ticket)].offset_bytes;
        Watch<P>::writes(pair, sizeof(u64));
        const u64 rest = mailbox_rest(request, lap_of(ticket));
        // Both pair with the acquiring load of MailboxServer::next. A read may be relaxed: the server writes where the
        // slot's earlier owner has read, and those loads have returned.
        if (request.operation == RequestOperation::read)
            P::template store_pair<Order::relaxed>(pair, request.offset_bytes, rest);
        else
            P::template store_pair<Order::release>(pair, request.offset_bytes, rest);
        return Status::ok;
    }

    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket) const { return submit(request, ticket, hint); }
    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket, u32 from) const {
        Status status = claim(ticket, from);
        if (status != Status::ok) return status;
        status = post(ticket, request);
        if (status != Status::ok) slots.release(ticket);
        return status;
    }

    PENSTOCK_ONDEVICE Status test(u32 ticket) const {
        if (slot_of(ticket) >= slots.slots) return Status::invalid;
        // Both loads are under way at once, because this is what a waiting caller does most. The second pairs with the
        // release of MailboxServer::complete.
        const u32 word = P::template load<Scope::device, Order::relaxed>(slots.words + slot_of(ticket));
        return tested(ticket, word, completion(slot_of(ticket)));
    }
    // test, and what came with the completion.
    PENSTOCK_ONDEVICE Status test(u32 ticket, MailboxAnswer& answer) const {
        static_assert(with_answers, "completions of this mailbox have no answers");
        if (slot_of(ticket) >= slots.slots) return Status::invalid;
        const u32 word = P::template load<Scope::device, Order::relaxed>(slots.words + slot_of(ticket));
        const u64* const pair = &completions[slot_of(ticket)].value;
        P::template load_pair<Order::acquire>(pair, answer.value, answer.rest);
        return tested(ticket, word, static_cast<u32>(answer.rest));
    }

    PENSTOCK_ONDEVICE Status wait(u32 ticket, u64 deadline_ns) const { return wait(ticket, deadline_ns, *this); }
    // `tester`: what `test` is asked of; it asks this mailbox.
    template <class Tester>
    PENSTOCK_ONDEVICE Status wait(u32 ticket, u64 deadline_ns, const Tester& tester) const {
        const Status status = poll_until<P>(tester, ticket, deadline_ns);
        if (status != Status::pending) return status;
        P::template add<Scope::device>(abandoned, 1u);
        slots.mark(ticket, SlotState::abandoned);
        return Status::timed_out;
    }

    PENSTOCK_ONDEVICE void release(u32 ticket) const { slots.release(ticket); }
    // release without a check. Requires: the caller holds the ticket.
    PENSTOCK_ONDEVICE void release_held(u32 ticket) const { slots.release_held(ticket); }

    PENSTOCK_ONDEVICE bool settled(u32 ticket) const {
        if (slots.is(ticket, SlotState::abandoned)) reclaim_one(slot_of(ticket));
        return slots.settled(ticket);
    }

    // Frees the abandoned slots whose late completion came, and returns how many. `claim` calls it if no slot is free.
    PENSTOCK_ONDEVICE u32 reclaim() const {
        u32 freed = 0;
        if (P::template load<Scope::device>(abandoned) == 0) return 0;
        for (u32 slot = 0; slot < slots.slots; ++slot) freed += reclaim_one(slot);
        return freed;
    }

    PENSTOCK_ONDEVICE void mark(u32 ticket, u32 mark) const {
        P::template store<Scope::device, Order::relaxed>(marks + slot_of(ticket), mark);  // `wait` publishes it
    }

    PENSTOCK_ONDEVICE bool late(u32 mark) const {
        if (P::template load<Scope::device>(abandoned) == 0) return false;
        for (u32 slot = 0; slot < slots.slots; ++slot) {
            const u32 word = P::template load<Scope::device>(slots.words + slot);
            if (state_of(word) != SlotState::abandoned || reclaim_one(slot) != 0) continue;
            if (P::template load<Scope::device>(marks + slot) == mark) return true;
        }
        return false;
    }

    PENSTOCK_ONDEVICE u32 reclaim_one(u32 slot) const {
        const u32 word = P::template load<Scope::device>(slots.words + slot);
        if (state_of(word) != SlotState::abandoned) return 0;
        const u32 seen = completion(slot);
        if (lap_of(seen) != lap_of(word) || state_of(seen) != SlotState::done) return 0;
        u32 expected = word;
        const u32 freed = slot_word(lap_of(word), SlotState::free);
        if (!P::template swap_if<Scope::device>(slots.words + slot, expected, freed)) return 0;
        P::template add<Scope::device>(abandoned, ~0u);
        slots.give_back(slot);
        return 1;
    }

    PENSTOCK_ONDEVICE u32 completion(u32 slot) const {
        if constexpr (with_answers) return static_cast<u32>(P::template load<Scope::system>(&completions[slot].rest));
        else return P::template load<Scope::system>(completions + slot);
    }

    PENSTOCK_ONDEVICE Status tested(u32 ticket, u32 word, u32 seen) const {
        if (lap_of(word) != lap_of(ticket) || state_of(word) != SlotState::sent) return Status::invalid;
        if (lap_of(seen) != lap_of(ticket) || state_of(seen) != SlotState::done) return Status::pending;
        slots.template mark<Order::relaxed>(ticket, SlotState::held);
        return status_of(seen);
    }
};

template <class P, bool with_answers = false>
struct MailboxServer {
    MailboxDescriptor* descriptors;
    typename MailboxCompletion<with_answers>::Type* completions;
    u32* seen_laps;  // one for each slot, this server's alone; zero at first
    u32 first;       // the slots that this server serves: [first, last)
    u32 last;
    u32 cursor;

    // Takes one new request, if there is any. It looks from the slot behind the one that it took last.
    PENSTOCK_ONDEVICE bool next(u32& slot, Request& request) {
        for (u32 looked = first; looked < last; ++looked) {
            cursor = cursor + 1 < last && cursor + 1 >= first ? cursor + 1 : first;
            const u64 rest = P::template load<Scope::system>(&descriptors[cursor].rest);
            if (mailbox_lap(rest) == seen_laps[cursor]) continue;
            seen_laps[cursor] = mailbox_lap(rest);
            Watch<P>::reads(&descriptors[cursor].offset_bytes, 8);
            request = Request{descriptors[cursor].offset_bytes,
                              0,
                              static_cast<u32>(rest & mailbox_most_bytes),
                              static_cast<u16>(rest >> 24 & 0xffff),
                              static_cast<RequestOperation>(rest >> 40 & 3),
                              0};
            slot = cursor;
            return true;
        }
        return false;
    }

    // Answers a request. Requires: once for each request taken, in any order, after its data are in place. Pairs with:
    // the acquiring load of MailboxRef::test, and that of reclaim_one for a late answer.
    PENSTOCK_ONDEVICE void complete(u32 slot, Status status) {
        P::template store<Scope::system>(completions + slot, slot_word(seen_laps[slot], SlotState::done, status));
    }
    // As complete, with what the caller gets beside the status.
    PENSTOCK_ONDEVICE void answer(u32 slot, Status status, u64 value, u32 bytes) {
        const u64 rest = u64{bytes} << 32 | slot_word(seen_laps[slot], SlotState::done, status);
        P::template store_pair<Order::release>(&completions[slot].value, value, rest);
    }
    PENSTOCK_ONDEVICE u32 lap(u32 slot) const { return seen_laps[slot]; }  // of the request that was taken last
};

}  // namespace penstock::ondevice
