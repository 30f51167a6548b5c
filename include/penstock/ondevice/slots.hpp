// The slots of a channel: who owns each one now. A slot is a data area, a command id, and two small facts kept here: a
// bit in a bitmap (set: free) and a word (lap, state, status).
//
// A slot is claimed by one atomic on a bitmap word, several at once if wanted; there is no lock. A ticket is slot and
// lap, so a ticket kept too long is told from the slot's next use. States:
//   free -> held (claimed) -> sent -> done -> held (its status was given) -> free
//                              sent -> abandoned (deadline passed) -> free, only by the late completion
// Only the ticket's owner moves a slot out of held; sent is left by exactly one exchange, the completion's or the
// owner's abandoning one. Only threads of one GPU (or of one process) touch these words.
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

// Up to `wanted` set bits of `bits`, those from bit `first` on before the others.
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
struct Claim {
    u32 first;
    u32 bits;
};

template <class P>
struct Slots {
    u32* free_bits;  // a bit for each slot, words of 32
    u32* words;      // one for each slot
    u32 slots;

    // Before first use, by one thread, with all words zero or left by an earlier use that is over.
    PENSTOCK_ONDEVICE void reset() const {
        for (u32 slot = 0; slot < slots; ++slot) words[slot] = slot_word(lap_of(words[slot]), SlotState::free);
        for (u32 group = 0; group * 32 < slots; ++group) {
            const u32 left = slots - group * 32;
            free_bits[group] = left >= 32 ? ~0u : (1u << left) - 1;
        }
    }

    // Up to `wanted` slots of one bitmap word by one atomic; no bits when all are taken. `hint`, best a different one
    // for each warp, says where to look first.
    PENSTOCK_ONDEVICE Claim claim(u32 wanted, u32 hint) const {
        const u32 groups = (slots + 31) / 32;
        for (u32 turn = 0; turn < groups; ++turn) {
            const u32 group = (hint + turn) % groups;
            u32 seen = P::template load<Scope::device, Order::relaxed>(free_bits + group);
            while (seen != 0) {
                const u32 chosen = some_bits(seen, wanted, hint / groups % 32);
                // Pairs with give_back: the slot's last owner is done with its data.
                const u32 before = P::template clear_bits<Scope::device, Order::acquire>(free_bits + group, chosen);
                if ((before & chosen) != 0) return Claim{group * 32, before & chosen};
                seen = before & ~chosen;
            }
        }
        return Claim{0, 0};
    }

    // The ticket of a slot that the caller claimed and has not opened yet.
    PENSTOCK_ONDEVICE u32 open(u32 slot) const {
        const u32 lap = (lap_of(P::template load<Scope::device, Order::relaxed>(words + slot)) + 1) & lap_mask;
        P::template store<Scope::device, Order::relaxed>(words + slot, slot_word(lap, SlotState::held));
        return ticket_of(slot, lap);
    }

    // Of the owner of a held ticket.
    PENSTOCK_ONDEVICE u32 renew(u32 ticket) const {
        const u32 next = ticket_of(slot_of(ticket), (lap_of(ticket) + 1) & lap_mask);
        mark<Order::relaxed>(next, SlotState::held);
        return next;
    }

    PENSTOCK_ONDEVICE Status claim_one(u32 hint, u32& ticket) const {
        const Claim claimed = claim(1, hint);
        if (claimed.bits == 0) return Status::busy;
        ticket = open(claimed.first + lowest(claimed.bits));
        return Status::ok;
    }

    PENSTOCK_ONDEVICE u32 word(u32 ticket) const {
        return P::template load<Scope::device>(words + slot_of(ticket));
    }
    // For the owner, who knows what it stored there, or that it is not the owner any more.
    PENSTOCK_ONDEVICE bool is(u32 ticket, SlotState state) const {
        if (slot_of(ticket) >= slots) return false;
        const u32 seen = P::template load<Scope::device, Order::relaxed>(words + slot_of(ticket));
        return lap_of(seen) == lap_of(ticket) && state_of(seen) == state;
    }

    // Of the owner of the ticket, whose state it knows. relaxed where only the owner reads it, until it gives it back.
    template <Order O = Order::release>
    PENSTOCK_ONDEVICE void mark(u32 ticket, SlotState state) const {
        P::template store<Scope::device, O>(words + slot_of(ticket), slot_word(lap_of(ticket), state));
    }

    PENSTOCK_ONDEVICE void give_back(u32 ticket) const {
        const u32 slot = slot_of(ticket);
        P::template set_bits<Scope::device, Order::release>(free_bits + slot / 32, 1u << slot % 32);
    }

    PENSTOCK_ONDEVICE void release(u32 ticket) const {
        if (!is(ticket, SlotState::held)) return;
        mark<Order::relaxed>(ticket, SlotState::free);
        give_back(ticket);
    }

    // A completion came for `slot`, seen by any one thread.
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

    // False: the completion came first.
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
