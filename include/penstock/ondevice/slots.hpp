// The slots of a channel, and the owner of each. A slot is a data area, a command id, and two small facts kept here: a
// bit in a bitmap (set: free) and a word (lap, state, status).
//
// A caller claims one slot, or several at once, by one atomic on a bitmap word; there is no lock. A ticket is slot and
// lap, so a ticket that was kept too long differs from the slot's next ticket. States:
//   free -> held (claimed) -> sent -> done -> held (its status was given) -> free
//                              sent -> abandoned (deadline passed) -> free, only by the late completion
// The ticket's owner alone moves a slot out of held. Exactly one exchange moves it out of sent: the completion's, or
// the owner's that abandons it. Requires: threads of one GPU (or of one process) alone touch these words.
#pragma once

#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice {

constexpr u32 slot_bits = 14;
constexpr u32 most_slots = 1u << slot_bits;
constexpr u32 lap_mask = (1u << (32 - slot_bits)) - 1;

enum class SlotState : u32 { free = 0, held = 1, sent = 2, done = 3, abandoned = 4 };
enum class Finish : u32 { accepted, late, stray };

PENSTOCK_ONDEVICE constexpr u32 ticket_of(u32 slot, u32 lap) { return lap << slot_bits | slot; }
PENSTOCK_ONDEVICE constexpr u32 slot_of(u32 ticket) { return ticket & (most_slots - 1); }
PENSTOCK_ONDEVICE constexpr u32 lap_of(u32 ticket_or_word) { return ticket_or_word >> slot_bits; }
PENSTOCK_ONDEVICE constexpr u32 slot_word(u32 lap, SlotState state, Status status = Status::ok) {
    return lap << slot_bits | static_cast<u32>(state) << 7 | static_cast<u32>(static_cast<int>(status) + 64);
}
PENSTOCK_ONDEVICE constexpr SlotState state_of(u32 word) { return static_cast<SlotState>(word >> 7 & 7); }
PENSTOCK_ONDEVICE constexpr Status status_of(u32 word) {
    return static_cast<Status>(static_cast<int>(word & 127) - 64);
}

// Chooses up to `wanted` set bits of `bits`. It prefers those from bit `first` on.
PENSTOCK_ONDEVICE u32 some_bits(u32 bits, u32 wanted, u32 first) {
    u32 chosen = 0;
    u32 part = bits & ~0u << first;
    for (; wanted != 0; --wanted) {
        if (part == 0) part = bits & ~chosen;
        if (part == 0) break;
        const u32 low = part & (~part + 1);
        chosen |= low;
        part ^= low;
    }
    return chosen;
}

// Slots claimed together: each set bit i is slot first + i.
struct ClaimedSlots {
    u32 first;
    u32 bits;
};

template <class P>
struct Slots {
    u32* free_bits;  // a bit for each slot, words of 32
    u32* words;      // one for each slot
    u32 slots;

    // Makes all slots free. Requires: one thread calls, before the first use, and the words are zero or left by an
    // earlier use that is over.
    PENSTOCK_ONDEVICE void reset() const {
        for (u32 slot = 0; slot < slots; ++slot) words[slot] = slot_word(lap_of(words[slot]), SlotState::free);
        for (u32 group = 0; group * 32 < slots; ++group) {
            const u32 left = slots - group * 32;
            free_bits[group] = left >= 32 ? ~0u : (1u << left) - 1;
        }
    }

    // Claims up to `wanted` slots of one bitmap word by one atomic; no bits if all are taken. `hint` says where to look
    // first, and should differ from warp to warp.
    PENSTOCK_ONDEVICE ClaimedSlots claim(u32 wanted, u32 hint) const {
        const u32 groups = (slots + 31) / 32;
        for (u32 turn = 0; turn < groups; ++turn) {
            const u32 group = (hint + turn) % groups;
            u32 seen = P::template load<Scope::device, Order::relaxed>(free_bits + group);
            while (seen != 0) {
                const u32 chosen = some_bits(seen, wanted, hint / groups % 32);
                // Pairs with: the release of give_back. The slot's last owner is done with its data.
                const u32 before = P::template clear_bits<Scope::device, Order::acquire>(free_bits + group, chosen);
                if ((before & chosen) != 0) return ClaimedSlots{group * 32, before & chosen};
                seen = before & ~chosen;
            }
        }
        return ClaimedSlots{0, 0};
    }

    // Makes the ticket of a slot. Requires: the caller claimed the slot and has not opened it yet.
    PENSTOCK_ONDEVICE u32 open(u32 slot) const {
        const u32 lap = (lap_of(P::template load<Scope::device, Order::relaxed>(words + slot)) + 1) & lap_mask;
        P::template store<Scope::device, Order::relaxed>(words + slot, slot_word(lap, SlotState::held));
        return ticket_of(slot, lap);
    }

    // Makes the slot's next ticket. Requires: the caller holds the ticket.
    PENSTOCK_ONDEVICE u32 renew(u32 ticket) const {
        const u32 next = ticket_of(slot_of(ticket), (lap_of(ticket) + 1) & lap_mask);
        mark<Order::relaxed>(next, SlotState::held);
        return next;
    }

    PENSTOCK_ONDEVICE Status claim_one(u32 hint, u32& ticket) const {
        const ClaimedSlots claimed = claim(1, hint);
        if (claimed.bits == 0) return Status::busy;
        ticket = open(claimed.first + lowest(claimed.bits));
        return Status::ok;
    }

    PENSTOCK_ONDEVICE u32 word(u32 ticket) const {
        return P::template load<Scope::device>(words + slot_of(ticket));
    }
    // Whether the ticket is in this state. Requires: the caller is or was its owner, so that it sees its own store, or
    // a later lap.
    PENSTOCK_ONDEVICE bool is(u32 ticket, SlotState state) const {
        if (slot_of(ticket) >= slots) return false;
        const u32 seen = P::template load<Scope::device, Order::relaxed>(words + slot_of(ticket));
        return lap_of(seen) == lap_of(ticket) && state_of(seen) == state;
    }

    // Changes the ticket's state. Requires: the caller owns the ticket and knows its state. relaxed is enough if the
    // owner alone reads the state until it gives the slot back.
    template <Order O = Order::release>
    PENSTOCK_ONDEVICE void mark(u32 ticket, SlotState state) const {
        P::template store<Scope::device, O>(words + slot_of(ticket), slot_word(lap_of(ticket), state));
    }

    // Sets the slot's free bit. Pairs with: the acquire of `claim`.
    PENSTOCK_ONDEVICE void give_back(u32 ticket) const {
        const u32 slot = slot_of(ticket);
        P::template set_bits<Scope::device, Order::release>(free_bits + slot / 32, 1u << slot % 32);
    }

    PENSTOCK_ONDEVICE void release(u32 ticket) const {
        if (is(ticket, SlotState::held)) release_held(ticket);
    }
    // release without a check. Requires: the caller holds the ticket.
    PENSTOCK_ONDEVICE void release_held(u32 ticket) const {
        mark<Order::relaxed>(ticket, SlotState::free);
        give_back(ticket);
    }

    // Records a completion of `slot`. Requires: one thread, whichever, calls for each completion.
    PENSTOCK_ONDEVICE Finish finish(u32 slot, Status status) const {
        u32 seen = P::template load<Scope::device>(words + slot);
        for (;;) {
            const u32 lap = lap_of(seen);
            if (state_of(seen) == SlotState::sent) {
                const u32 done = slot_word(lap, SlotState::done, status);
                if (P::template swap_if<Scope::device>(words + slot, seen, done)) return Finish::accepted;
            } else if (state_of(seen) == SlotState::abandoned) {
                const u32 freed = slot_word(lap, SlotState::free);
                if (!P::template swap_if<Scope::device>(words + slot, seen, freed)) continue;
                give_back(slot);
                return Finish::late;
            } else {
                return Finish::stray;
            }
        }
    }

    PENSTOCK_ONDEVICE Status test(u32 ticket) const {
        if (slot_of(ticket) >= slots) return Status::invalid;
        const u32 seen = word(ticket);
        if (lap_of(seen) != lap_of(ticket)) return Status::invalid;
        if (state_of(seen) == SlotState::sent) return Status::pending;
        if (state_of(seen) != SlotState::done) return Status::invalid;
        mark(ticket, SlotState::held);
        return status_of(seen);
    }

    // Leaves the slot to the channel. False: the completion came first.
    PENSTOCK_ONDEVICE bool abandon(u32 ticket) const {
        u32 seen = slot_word(lap_of(ticket), SlotState::sent);
        const u32 left = slot_word(lap_of(ticket), SlotState::abandoned);
        return P::template swap_if<Scope::device>(words + slot_of(ticket), seen, left);
    }

    PENSTOCK_ONDEVICE bool settled(u32 ticket) const {
        const u32 seen = word(ticket);
        if (lap_of(seen) != lap_of(ticket)) return true;
        return state_of(seen) == SlotState::free || state_of(seen) == SlotState::held ||
               state_of(seen) == SlotState::done;
    }
};

}  // namespace penstock::ondevice
