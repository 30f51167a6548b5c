// A pair of NVMe queues driven by device code: it writes submission entries, rings the doorbell and takes completions.
//
// A slot (slots.hpp) is a command id; it has a data area whose PRP list the owner of the memory wrote beforehand, so
// device code builds none. One thread at a time works on the queues: the only warp of a ring, or whoever has the ring's
// turn when warps share one (`shared`). Completions come in any order; whoever drains the completion queue puts each
// status into its slot's word, where the warp that waits finds it. The depth is a power of two, 2 to 1024, of both
// queues; one entry stays empty, as NVMe demands, so depth - 1 slots. Outstanding commands are then fewer than either
// queue's entries even when completions get lost, so neither overflows.
#pragma once

#include "penstock/ondevice/nvme_entry.hpp"
#include "penstock/ondevice/slots.hpp"

namespace penstock::ondevice {

// In memory of the GPU (or of the process), zero at first except `phase`, which begins as 1. Behind the turn.
struct NvmeRingState {
    u32 turn;  // 1: taken
    u32 tail;
    u32 submission_head;  // as the controller told last
    u32 completion_head;
    u32 phase;
    u32 last_error;     // dword 3 of the last completion with a status other than 0
    u64 submitted;
    u64 completed;
    u64 errors;
    u64 late;           // completions of tickets that had timed out
    u64 stray;          // completions nobody waited for: the controller is at fault
    u64 contended;      // turns that were not had at once; not behind the turn
};

// The right to work on a ring that several warps share. Not in order of arrival; a bounded wait.
template <class P>
struct RingTurn {
    u32* word;
    u64* contended;

    PENSTOCK_ONDEVICE bool try_take() const {
        u32 expected = 0;
        return P::template swap_if<Scope::device>(word, expected, 1u);
    }
    PENSTOCK_ONDEVICE bool take(u64 for_ns) const {
        if (try_take()) return true;
        P::template add<Scope::device>(contended, u64{1});
        const u64 deadline_ns = P::now_ns() + for_ns;
        for (;;) {
            if (P::template load<Scope::device>(word) == 0 && try_take()) return true;
            if (P::now_ns() >= deadline_ns) return false;
            P::pause(32);
        }
    }
    PENSTOCK_ONDEVICE void give() const { P::template store<Scope::device>(word, 0u); }
};

struct NvmeNamespace {
    u32 id;
    u32 block_shift;  // bytes of a block as a power of two
    u64 blocks;
};

// The data areas of the slots: `slot_bytes` each, a multiple of the page, one after another. The list of slot i, at
// lists_io + i * list_stride, holds the addresses of its pages from the second on.
struct NvmeData {
    u8* data;
    u64 data_io;  // the same, as the controller addresses it
    u64 lists_io;
    u32 list_stride;
    u32 slot_bytes;
    u32 page_bytes;
    u32 most_bytes;  // of one command
};

template <class P>
struct NvmeRingRef {
    Slots<P> slots;  // depth - 1
    NvmeRingState* state;
    NvmeCommand* submission;
    NvmeCompletion* completion;
    u32* submission_doorbell;
    u32* completion_doorbell;
    NvmeNamespace space;
    NvmeData area;
    u32 entries;  // of each queue
    u32 shared;   // 0: one warp alone uses this ring, so there is no turn
    u32 hint;     // where this warp looks for a free slot first
    u64 turn_ns;  // how long to wait for the turn
    u32* abandoned;  // how many slots wait for a late completion
    u32* marks;      // one for each slot: its owner's word for what the slot is used for; see late()

    PENSTOCK_ONDEVICE u32 depth() const { return slots.slots; }
    PENSTOCK_ONDEVICE void* slot_data(u32 ticket) const {
        return area.data + static_cast<u64>(slot_of(ticket)) * area.slot_bytes;
    }

    PENSTOCK_ONDEVICE Status claim(u32& ticket) const { return claim(ticket, hint); }
    PENSTOCK_ONDEVICE Status claim(u32& ticket, u32 from) const {
        Status status = slots.claim_one(from, ticket);
        if (status == Status::busy && drain_if_free()) status = slots.claim_one(from, ticket);
        return status;
    }

    PENSTOCK_ONDEVICE Status publish(u32 ticket, const Request& request) const {
        if (!slots.is(ticket, SlotState::held)) return Status::invalid;
        NvmeIo io = {};
        const Status status = plan(slot_of(ticket), request, io);
        if (status != Status::ok) return status;
        const NvmeCommand command = nvme_command(io);
        if (shared != 0 && !turn().take(turn_ns)) return Status::busy;
        const bool sent = send(ticket, command);
        if (shared != 0) turn().give();
        return sent ? Status::ok : Status::busy;
    }

    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket) const { return submit(request, ticket, hint); }
    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket, u32 from) const {
        Status status = claim(ticket, from);
        if (status != Status::ok) return status;
        status = publish(ticket, request);
        if (status != Status::ok) slots.release(ticket);
        return status;
    }

    PENSTOCK_ONDEVICE Status test(u32 ticket) const {
        const Status status = slots.test(ticket);
        return status == Status::pending && drain_if_free() ? slots.test(ticket) : status;
    }

    PENSTOCK_ONDEVICE Status wait(u32 ticket, u64 deadline_ns) const {
        const Status status = poll_until<P>(*this, ticket, deadline_ns);
        if (status != Status::pending) return status;
        P::template add<Scope::device>(abandoned, 1u);  // first: whoever takes the late completion counts down
        if (slots.abandon(ticket)) return Status::timed_out;
        P::template add<Scope::device>(abandoned, ~0u);
        return slots.test(ticket);
    }

    PENSTOCK_ONDEVICE void release(u32 ticket) const { slots.release(ticket); }

    PENSTOCK_ONDEVICE bool settled(u32 ticket) const {
        return slots.settled(ticket) || (drain_if_free() && slots.settled(ticket));
    }

    PENSTOCK_ONDEVICE void mark(u32 ticket, u32 mark) const {
        P::template store<Scope::device>(marks + slot_of(ticket), mark);
    }
    PENSTOCK_ONDEVICE bool late(u32 mark) const {
        if (P::template load<Scope::device>(abandoned) == 0) return false;
        drain_if_free();
        for (u32 slot = 0; slot < slots.slots; ++slot) {
            if (state_of(P::template load<Scope::device>(slots.words + slot)) != SlotState::abandoned) continue;
            if (P::template load<Scope::device>(marks + slot) == mark) return true;
        }
        return false;
    }

    // Takes all completions there are, unless another warp has the turn. True: it looked.
    PENSTOCK_ONDEVICE bool drain_if_free() const {
        if (shared != 0 && !turn().try_take()) return false;
        drain();
        if (shared != 0) turn().give();
        return true;
    }

  private:
    PENSTOCK_ONDEVICE RingTurn<P> turn() const { return RingTurn<P>{&state->turn, &state->contended}; }

    PENSTOCK_ONDEVICE Status plan(u32 slot, const Request& request, NvmeIo& io) const {
        io.id = static_cast<u16>(slot);
        io.namespace_id = space.id;
        if (request.file != 0) return Status::invalid;
        if (request.operation == Operation::flush) {
            io.opcode = NvmeOpcode::flush;
            return Status::ok;
        }
        if (static_cast<u8>(request.operation) > static_cast<u8>(Operation::flush)) return Status::invalid;
        io.opcode = request.operation == Operation::read ? NvmeOpcode::read : NvmeOpcode::write;
        const u64 block_mask = (u64{1} << space.block_shift) - 1;
        if (request.bytes == 0 || request.bytes > area.most_bytes) return Status::invalid;
        if (((request.offset_bytes | request.bytes) & block_mask) != 0) return Status::invalid;
        io.first_block = request.offset_bytes >> space.block_shift;
        io.blocks = request.bytes >> space.block_shift;
        if (io.blocks > 65536) return Status::invalid;
        if (io.first_block > space.blocks || io.blocks > space.blocks - io.first_block) return Status::out_of_range;
        return place(slot, request, io.pages);
    }

    // Memory of the caller's own has no list: it is at most two pages, one after the other in the controller's
    // addresses, from a page's start.
    PENSTOCK_ONDEVICE Status place(u32 slot, const Request& request, NvmePages& pages) const {
        const bool own = request.memory == 0;
        if (own && request.bytes > area.slot_bytes) return Status::invalid;
        if (!own && (request.bytes > 2 * area.page_bytes || request.memory % area.page_bytes != 0)) {
            return Status::invalid;
        }
        pages.prp1 = own ? area.data_io + static_cast<u64>(slot) * area.slot_bytes : request.memory;
        if (request.bytes <= area.page_bytes) {
            pages.prp2 = 0;
        } else if (request.bytes <= 2 * area.page_bytes) {
            pages.prp2 = pages.prp1 + area.page_bytes;
        } else {
            pages.prp2 = area.lists_io + static_cast<u64>(slot) * area.list_stride;
        }
        return Status::ok;
    }

    PENSTOCK_ONDEVICE bool send(u32 ticket, const NvmeCommand& command) const {
        const u32 next = (state->tail + 1) & (entries - 1);
        if (next == state->submission_head) drain();
        if (next == state->submission_head) return false;
        slots.mark(ticket, SlotState::sent);
        NvmeCommand* entry = submission + state->tail;
        Watch<P>::writes(entry, sizeof(NvmeCommand));
        *entry = command;
        state->tail = next;
        state->submitted += 1;
        P::template store<Scope::system>(submission_doorbell, next);
        return true;
    }

    PENSTOCK_ONDEVICE void drain() const {
        u32 taken = 0;
        for (; taken < entries; ++taken) {
            const NvmeCompletion* entry = completion + state->completion_head;
            const u32 dword3 = P::template load<Scope::system>(&entry->dword[3]);
            if (nvme_phase(dword3) != state->phase) break;
            Watch<P>::reads(entry, 12);
            state->submission_head = entry->dword[2] & (entries - 1);
            state->completion_head = (state->completion_head + 1) & (entries - 1);
            if (state->completion_head == 0) state->phase ^= 1;
            accept(dword3);
        }
        if (taken != 0) P::template store<Scope::system>(completion_doorbell, state->completion_head);
    }

    PENSTOCK_ONDEVICE void accept(u32 dword3) const {
        const Status status = nvme_status(dword3);
        if (status != Status::ok) {
            state->errors += 1;
            state->last_error = dword3;
        }
        state->completed += 1;
        const u32 slot = nvme_id(dword3);
        const Finish finish = slot < slots.slots ? slots.finish(slot, status) : Finish::stray;
        if (finish == Finish::late) {
            state->late += 1;
            P::template add<Scope::device>(abandoned, ~0u);
        }
        if (finish == Finish::stray) state->stray += 1;
    }
};

}  // namespace penstock::ondevice
